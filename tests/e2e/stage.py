"""A deployed stack as the tests see it: its parts in the cloud, its jobs in Redis."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from local.cloud import push
from local.deployment import Deployment
from local.replay.jobs import FILES, ApplyChanges, app
from lowkiq_lambda.local.demo.source import bundled_history
from lowkiq_lambda.sharding import shard_for
from lowkiq_lambda.views import QueueMetrics
from tests.servers import LocalCloud, Server
from tests.waiting import eventually

PASSWORD: Final = "geheim"  # noqa: S105 - of a page that only the tests see
QUEUE: Final = ApplyChanges.queue_name
SCHEDULED: Final = (0, 1, 2, 3)
"""The shards that have a schedule at first: all but the last."""
LAST: Final = 4

_TIMEOUT: Final = 60.0
"""Seconds until a schedule that is due has fired, and its drain has done its jobs, on a busy machine."""


class Stage:
    """A stack of its own, and a history that was pushed from outside."""

    def __init__(self, cloud: LocalCloud, server: Server, packages: Path) -> None:
        self.cloud = cloud
        self.before = inventory(cloud)
        self.deployment = Deployment(cloud, f"e2e-{uuid4().hex[:8]}")
        self.deployment.upload(packages)
        self.deployment.create(
            RedisUrl=server.url,
            AppModule="jobs:app",
            ShardIndexes=_listed(SCHEDULED),
            DashboardSecretArn=self.deployment.keep_secret(PASSWORD),
        )
        self._server = server
        self._history = bundled_history()
        app.configure(redis_url=server.url)
        push(self._history)

    @property
    def metrics(self) -> QueueMetrics:
        """The queue in numbers."""
        return app.metrics()[ApplyChanges.queue_name]

    @property
    def schedules(self) -> set[str]:
        """The names of the stack's schedules."""
        listed = self._scheduler.list_schedules(GroupName=self._group)["Schedules"]
        return {schedule["Name"] for schedule in listed}

    def schedule_shards(self, shards: Sequence[int]) -> None:
        """Update the stack, so that these shards have schedules."""
        self.deployment.update(ShardIndexes=_listed(shards))

    @contextmanager
    def due_now(self, *shards: int) -> Iterator[None]:
        """Schedules that fire at once, once, each what the shard's own schedule fires."""
        names = {shard: f"now-{shard}-{uuid4().hex[:8]}" for shard in shards}
        for shard, name in names.items():
            own = self._scheduler.get_schedule(GroupName=self._group, Name=f"shard-{shard}")
            self._scheduler.create_schedule(
                GroupName=self._group,
                Name=name,
                ScheduleExpression=f"at({datetime.now(UTC):%Y-%m-%dT%H:%M:%S})",
                **{field: own[field] for field in ("FlexibleTimeWindow", "Target")},
            )
        yield
        for name in names.values():
            self._scheduler.delete_schedule(GroupName=self._group, Name=name)

    def wait_until_done(self, *shards: int, timeout: float = _TIMEOUT) -> None:
        """Wait until nothing waits in these shards; then their files are what git says."""

        def is_done() -> bool:
            each = [self.metrics.shards[shard] for shard in shards]
            return not any(shard.length or shard.busy for shard in each)

        eventually(is_done, timeout, f"the end of all jobs of {shards}")
        found = self._server.admin.hgetall(FILES)
        files = {path.decode(): blob.decode() for path, blob in found.items()}  # type: ignore[union-attr]  # is sync
        assert _of(shards, self._history.final) == _of(shards, files)

    def log_of(self, function: str) -> list[str]:
        """What the function logged, and what Lambda did about it."""
        group = f"/aws/lambda/{self.deployment.name}-{function}"
        events = self.cloud.client("logs").filter_log_events(logGroupName=group, limit=10_000)["events"]
        return [event["message"] for event in events]

    def metrics_in_log(self, function: str) -> list[dict[str, Any]]:
        """The lines of metrics about the queue that the function logged."""
        lines = [_parsed(line) for line in self.log_of(function)]
        queue = ApplyChanges.queue_name
        return [line for line in lines if isinstance(line, dict) and "_aws" in line and line.get("queue") == queue]

    def failed_events(self) -> int:
        """How many events lie in the failure queue."""
        sqs = self.cloud.client("sqs")
        url = self.deployment.resources["FailureQueue"]
        told = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])
        return int(told["Attributes"]["ApproximateNumberOfMessages"])

    @property
    def _scheduler(self) -> Any:
        return self.cloud.client("scheduler")

    @property
    def _group(self) -> str:
        return self.deployment.outputs["ScheduleGroupName"]


def inventory(cloud: LocalCloud) -> dict[str, set[str]]:
    """All that there is in the cloud, of the kinds that a stack may make, by its name."""
    asked = (
        ("cloudformation", "list_stacks", "StackSummaries", "StackName"),
        ("lambda", "list_functions", "Functions", "FunctionName"),
        ("scheduler", "list_schedules", "Schedules", "Name"),
        ("scheduler", "list_schedule_groups", "ScheduleGroups", "Name"),
        ("apigatewayv2", "get_apis", "Items", "ApiId"),
        ("iam", "list_roles", "Roles", "RoleName"),
        ("iam", "list_policies", "Policies", "PolicyName"),
        ("logs", "describe_log_groups", "logGroups", "logGroupName"),
        ("sqs", "list_queues", "QueueUrls", None),
        ("cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName"),
        ("s3", "list_buckets", "Buckets", "Name"),
        ("secretsmanager", "list_secrets", "SecretList", "Name"),
    )
    found = {}
    for service, call, listed, name in asked:
        answer = getattr(cloud.client(service), call)()
        items = [item for item in answer.get(listed, []) if not _is_deleted(item)]
        found[f"{service} {listed}"] = {item if name is None else item[name] for item in items}
    return found


def _listed(shards: Sequence[int]) -> str:
    return ",".join(map(str, shards))


def _of(shards: Sequence[int], files: Any) -> dict[str, str]:
    return {path: blob for path, blob in files.items() if shard_for(path, ApplyChanges.shards_count) in shards}


def _is_deleted(item: Any) -> bool:
    """Stacks go on being listed."""
    return isinstance(item, dict) and item.get("StackStatus") == "DELETE_COMPLETE"


def _parsed(line: str) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return None

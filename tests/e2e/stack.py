"""A deployed stack as the tests see it: its parts in the cloud, its jobs in Redis."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count, islice
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from local.cloud import push
from local.demo.source import bundled_history
from local.inventory import inventory
from local.replay.jobs import COUNTED, FILES, NEWEST, ApplyChanges, app
from lowkiq_lambda import Worker
from lowkiq_lambda.dashboard import hashed
from lowkiq_lambda.jobs.job import shard_for
from lowkiq_lambda.stack.cloud.deployment import Deployment
from lowkiq_lambda.views.queues import QueueMetrics
from lowkiq_lambda.views.shards import ShardDetails
from tests.kit.servers import LocalCloud, Server
from tests.kit.waiting import eventually

PASSWORD: Final = "streng geheim"  # noqa: S105 - of a page that only the tests see
OLGAS: Final = "olga's own word"
QUEUE: Final = ApplyChanges.queue_name
SCHEDULED: Final = (0, 1, 2, 3)
"""The shards that have a schedule at first: all but the last."""
BY_HAND, LAST = SCHEDULED[0], 4
"""The shard that operators have to do with, and the one that nothing drains for a while."""

_TIMEOUT: Final = 60.0
"""Seconds until a schedule that is due has fired, and its drain has done its jobs, on a busy machine."""
_MORE_ENVIRONMENTS: Final = 2
_ENDED_BEFORE_BEGIN: Final = "Worker process exited immediately"


class Stack:
    """A stack of our template; a history was pushed to it."""

    def __init__(self, cloud: LocalCloud, server: Server, packages: Path) -> None:
        self.cloud = cloud
        self.before = inventory(cloud)
        self.deployment = Deployment(cloud, f"e2e-{uuid4().hex[:8]}")
        self.deployment.upload(packages)
        self.deployment.create(
            RedisUrl=server.url,
            AppModule="jobs:app",
            ShardIndexes=_listed(SCHEDULED),
            DashboardAccounts=f"olga:operator:{hashed(OLGAS)}",
            DashboardSecretArn=self.deployment.keep_secret(PASSWORD),
        )
        self._server = server
        self._history = bundled_history()
        app.core.configure(redis_url=server.url)
        push(self._history)

    @property
    def metrics(self) -> QueueMetrics:
        """The queue in numbers."""
        return self.metrics_of(ApplyChanges)

    def metrics_of(self, worker: type[Worker]) -> QueueMetrics:
        """A queue in numbers."""
        return app.operate.metrics()[worker.queue_name]

    def counted(self, items: int) -> list[int]:
        """How often each of so many items was done."""
        return [int(self._server.admin.hget(COUNTED, str(item)) or 0) for item in range(items)]

    @property
    def shards(self) -> Sequence[ShardDetails]:
        """The queue's shards, as operators see them."""
        return app.operate(ApplyChanges).shards()

    @property
    def redis_url(self) -> str:
        """Where the stack's Redis is."""
        return self._server.url

    @property
    def schedules(self) -> set[str]:
        """The names of the stack's schedules."""
        return self.schedules_of(self._group)

    @property
    def enabled_schedules(self) -> set[str]:
        """The names of the stack's schedules that fire."""
        listed = self._scheduler.list_schedules(GroupName=self._group, State="ENABLED")["Schedules"]
        return {schedule["Name"] for schedule in listed}

    @property
    def own_group(self) -> str:
        """Where the schedules command keeps what it makes for the stack."""
        return f"{self.deployment.name}-schedules"

    def schedules_of(self, group: str) -> set[str]:
        """The names of a group's schedules."""
        return {schedule["Name"] for schedule in self._scheduler.list_schedules(GroupName=group)["Schedules"]}

    def schedule(self, name: str, group: str | None = None) -> dict[str, Any]:
        """One of the stack's schedules, or of another group."""
        found: dict[str, Any] = self._scheduler.get_schedule(GroupName=group or self._group, Name=name)
        return found

    def delete_group(self, group: str) -> None:
        """Take a group of schedules away, and all that is in it."""
        self._scheduler.delete_schedule_group(Name=group)

    def schedule_shards(self, shards: Sequence[int]) -> None:
        """Update the stack, so that these shards have schedules."""
        self.deployment.update(ShardIndexes=_listed(shards))

    @contextmanager
    def due_now(self, *shards: int) -> Iterator[None]:
        """The schedules of these shards fire at once."""
        with self.fired_now(*(f"shard-{shard}" for shard in shards)):
            yield

    @contextmanager
    def fired_now(self, *names: str) -> Iterator[None]:
        """Schedules that fire at once, once, each what the named one of the stack fires."""
        twins = {name: f"now-{name}-{uuid4().hex[:8]}" for name in names}
        for name, twin in twins.items():
            own = self.schedule(name)
            self._scheduler.create_schedule(
                GroupName=self._group,
                Name=twin,
                ScheduleExpression=f"at({datetime.now(UTC):%Y-%m-%dT%H:%M:%S})",
                **{field: own[field] for field in ("FlexibleTimeWindow", "Target")},
            )
        yield
        for twin in twins.values():
            self._scheduler.delete_schedule(GroupName=self._group, Name=twin)

    def invoke(self, function: str, event: object) -> Any:
        """Run a function, named as in the template's outputs, with an event; what it answers."""
        name = self.deployment.outputs[f"{function}FunctionName"]
        told, failed = self._invoke_once(name, event)
        for _ in range(_MORE_ENVIRONMENTS):
            # An update of the stack ends environments. This cloud ends those of later invocations as well, if an
            # invocation by a schedule lost its own to the update; such an environment ends before it has begun.
            if failed and _ENDED_BEFORE_BEGIN in told["errorMessage"]:
                told, failed = self._invoke_once(name, event)
        assert not failed, told
        return told

    def _invoke_once(self, name: str, event: object) -> tuple[Any, bool]:
        """What it answers, and whether it failed."""
        answer = self.cloud.client("lambda").invoke(FunctionName=name, Payload=json.dumps(event).encode())
        return json.load(answer["Payload"]), "FunctionError" in answer

    def push(self, shard: int, changes: int = 1) -> str:
        """Push changes of as many files of a shard; the last file."""
        paths = islice((path for path in _new_paths() if _shard_of(path) == shard), changes)
        jobs = [{"id": path, "score": 1, "payload": [1, None]} for path in paths]
        ApplyChanges.push_many(jobs)
        return str(jobs[-1]["id"])

    def newest(self, path: str) -> int:
        """The number of the last change that was applied to a file; 0 for none."""
        return int(self._server.admin.hget(NEWEST, path) or 0)

    def set_newest(self, path: str, number: int) -> None:
        """Let the handler take the file for one that has had this change."""
        self._server.admin.hset(NEWEST, path, str(number))

    def wait_until_done(self, *shards: int, timeout: float = _TIMEOUT) -> None:
        """Wait until nothing waits in these shards; then their files are what git says."""

        def is_done() -> bool:
            each = [self.metrics.shards[shard] for shard in shards]
            return not any(shard.length or shard.in_flight for shard in each)

        eventually(is_done, timeout, f"the end of all jobs of {shards}")
        found = self._server.admin.hgetall(FILES)
        files = {path.decode(): blob.decode() for path, blob in found.items()}  # type: ignore[union-attr]  # is sync
        assert _of(shards, self._history.final) == _of(shards, files)

    def log_of(self, function: str) -> list[str]:
        """What the function logged, and what Lambda did about it."""
        group = f"/aws/lambda/{self.deployment.name}-{function}"
        events = self.cloud.client("logs").filter_log_events(logGroupName=group, limit=10_000)["events"]
        return [event["message"] for event in events]

    def lines_of(self, function: str) -> list[dict[str, Any]]:
        """Those lines of its log that are JSON, read."""
        lines = [_parsed(line) for line in self.log_of(function)]
        return [line for line in lines if isinstance(line, dict)]

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


def _listed(shards: Sequence[int]) -> str:
    return ",".join(map(str, shards))


def _of(shards: Sequence[int], files: Any) -> dict[str, str]:
    return {path: blob for path, blob in files.items() if _shard_of(path) in shards}


def _shard_of(path: str) -> int:
    return shard_for(path, ApplyChanges.shards_count)


def _new_paths() -> Iterator[str]:
    """Files that there have never been, in any shard."""
    prefix = uuid4().hex[:8]
    return (f"{prefix}/{number}" for number in count())


def _parsed(line: str) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return None

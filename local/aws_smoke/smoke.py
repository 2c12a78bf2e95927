"""The run: each step says what it showed, and the end takes away all that was made, whatever happened."""

import hashlib
import json
import platform
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from local.aws_smoke.app.smoke import MORE_SHARDS, SHARDS, Die, Record
from local.aws_smoke.ending import Ending
from local.aws_smoke.outside import Dashboard, Pushes, SmokeFailed, judged_runs, log_lines, metric_sum, until
from local.aws_smoke.report import FAILED, GOOD, NOT_SHOWN, Step, Used
from lowkiq_lambda import Worker
from lowkiq_lambda.aws.sqs_inbox import SqsInbox
from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.stack.cloud.access import CloudAccess
from lowkiq_lambda.stack.cloud.deployment import Deployment

PREFIX: Final = "lowkiq-smoke"
INFRA: Final = Path(__file__).parents[2] / "infra"
_CACHE: Final = "elasticache"
_FUNCTIONS: Final = ("drain", "ingest", "dashboard")
_PATIENCE: Final = 900.0
"""Seconds that a step waits."""
_SOON: Final = 0.3
_START_INTERVAL: Final = 3.0
_TAGS: Final = {"made-by": "lowkiq aws-smoke"}


class Plan(NamedTuple):
    """What a run does. `parameters` are those of the app's stack; `makes_cache`: a network and a cache, too."""

    jobs: int
    parameters: Mapping[str, str]
    makes_cache: bool
    starts_drains: bool = False
    """Every few seconds, beside the schedules: for a cloud whose minutes are as long as a run."""
    alarm_patience: float = _PATIENCE
    keeps: bool = False


class Smoke:
    """One run against a cloud. `steps`: those that are over."""

    def __init__(self, cloud: CloudAccess, packages: Path, plan: Plan, say: Callable[[str], None]) -> None:
        self.name = f"{PREFIX}-{secrets.token_hex(4)}"
        self.steps: list[Step] = []
        self.ending = Ending(cloud, self.name, say)
        self._token = secrets.token_urlsafe(24)
        digest = hashlib.sha256(self._token.encode()).hexdigest()
        self.parameters = {
            "AppModule": "smoke:app",
            "ShardIndexes": _listed(SHARDS),
            "DashboardTokens": f"smoke:operator:sha256:{digest}",
            "Runtime": f"python3.{sys.version_info[1]}",
            "Architecture": "arm64" if platform.machine() in {"arm64", "aarch64"} else "x86_64",
            "LogRetentionDays": "1",
            **plan.parameters,
        }
        self._cloud, self._packages, self._plan, self._say = cloud, packages, plan, say
        self._deployment = Deployment(cloud, self.name, tags=_TAGS)
        self._used = Used()
        self._began_at = time.time()
        self._shards = SHARDS
        self._drains_started_at = 0.0
        self._dashboard = Dashboard("", self._token)
        self._pushes: Pushes

    def run(self) -> bool:
        """Go through all steps, take all away, and say whether all is good."""
        steps: list[tuple[str, Callable[[], str]]] = [
            ("deploy network", self._deploy_network),
            ("deploy cache", self._deploy_cache),
            ("deploy stack", self._deploy),
            ("push", self._push),
            ("drain", self._drain),
            ("move shards", self._move),
            ("alarm", self._alarm),
        ]
        try:
            with suppress(_StepFailed):
                for name, act in steps if self._plan.makes_cache else steps[2:]:
                    self._step(name, act)
            if "push" in {step.name for step in self.steps}:
                with suppress(_StepFailed):
                    self._step("measure", self._measure)
        finally:
            with suppress(_StepFailed):
                self._step("destroy", self._destroy)
        return all(step.result != FAILED for step in self.steps)

    @property
    def used(self) -> Used:
        """What is paid for, when all is over."""
        alive = self.ending.alive
        of_cache = alive.get(f"{self.name}-{_CACHE}", 0.0)
        return self._used._replace(stack_seconds=alive.get(self.name, 0.0), cache_seconds=of_cache)

    def _step(self, name: str, act: Callable[[], str]) -> None:
        started_at = time.monotonic()
        try:
            self._say(f"{name} ...")
            evidence = act()
        except (Exception, KeyboardInterrupt) as error:
            evidence = str(error) if isinstance(error, LowkiqError) else f"{type(error).__name__} {error}".strip()
            self._end(Step(name, time.monotonic() - started_at, FAILED, evidence))
            raise _StepFailed from error
        result = NOT_SHOWN if evidence.startswith(NOT_SHOWN) else GOOD
        self._end(Step(name, time.monotonic() - started_at, result, evidence))

    def _end(self, step: Step) -> None:
        self.steps.append(step)
        self._say(f"{step.name}: {step.result}, {step.seconds:.1f} s. {step.evidence}")

    def _deploy_network(self) -> str:
        network = self._infra("network")
        network.create()
        outputs = network.outputs
        self.parameters |= {name: outputs[name] for name in ("SubnetIds", "SecurityGroupIds")}
        self._vpc = outputs["VpcId"]
        return f"{network.name}: {len(network.resources)} resources"

    def _deploy_cache(self) -> str:
        cache = self._infra(_CACHE)
        cache.create(
            VpcId=self._vpc,
            SubnetIds=self.parameters["SubnetIds"],
            FunctionSecurityGroupId=self.parameters["SecurityGroupIds"],
            CacheName=self.name,
            UserName=self.name,
            MaxGigabytes="1",
            SnapshotDays="0",
            FinalSnapshot="false",
        )
        outputs = cache.outputs
        names = ("RedisUrl", "RedisIamUser", "RedisIamCache", "RedisIamServerless")
        self.parameters |= {name: outputs[name] for name in names}
        return f"{cache.name}: {outputs['RedisUrl']}"

    def _infra(self, kind: str) -> Deployment:
        made = Deployment(self._cloud, f"{self.name}-{kind}", INFRA / f"{kind}.yaml", _TAGS)
        self.ending.add(made)
        return made

    def _deploy(self) -> str:
        self.ending.add(self._deployment)
        self._deployment.upload(self._packages)
        self._deployment.create(**self.parameters)
        outputs, resources = self._deployment.outputs, self._deployment.resources
        is_local = self._cloud.port > 0
        url = self._deployment.dashboard_url if is_local else outputs["DashboardUrl"]
        self._dashboard = Dashboard(url, self._token, self._cloud.url if is_local else "")
        self._pushes = Pushes(SqsInbox(outputs["InboxUrl"]))
        self._until("the dashboard's answer", lambda: self._queue() is not None)
        return f"{len(resources)} resources; the dashboard at {url} answers a program with a token"

    def _push(self) -> str:
        self._pushes.push_until(self._plan.jobs)
        kind = "FIFO" if self._pushes.inbox.is_fifo else "standard"
        return f"{self._pushes.count:,} payloads of {len(self._pushes.accepted)} ids, into the {kind} inbox"

    def _drain(self) -> str:
        self._until("the end of all jobs", self._is_drained)
        queue = self._queue()
        return f"{self._verdict()}; the API has {queue['payloads']:,} done, none waiting, none in flight"

    def _move(self) -> str:
        before, calls = self._pushes.count, 0

        def has_arrived() -> bool:
            queue = self._queue()
            return bool(queue and (queue["length"] or queue["payloads"] > before))

        def is_moved() -> bool:
            nonlocal calls
            calls += 1
            body = {"queue": Record.queue_name, "shards_count": MORE_SHARDS, "reason": self.name}
            move = self._dashboard.post("queue/reshard", **body)
            return bool(move) and move["moves_to"] is None and move["shards_count"] == MORE_SHARDS

        with self._pushes.going_on(_SOON):
            self._until("a push into the queue", has_arrived)
            # Without a pause: pushes into a group that stands still wait for ten seconds, and then come again.
            self._until("the end of the move", is_moved, rest=_SOON)
        pushed = self._pushes.count - before
        # Schedules of shards that are not there yet would fail.
        self._deployment.update(ShardIndexes=_listed(MORE_SHARDS))
        self._shards = MORE_SHARDS
        self._until("the end of all jobs after the move", self._is_drained)
        way = f"from {SHARDS} to {MORE_SHARDS} by POST queue/reshard in {calls} calls, then the stack updated"
        return f"{way}; {pushed:,} payloads pushed meanwhile; {self._verdict()}"

    def _alarm(self) -> str:
        name = self._deployment.resources["DeadAlarm"]

        def has_looked() -> bool:
            self._start_drains()
            return any('"ticked"' in line for line in log_lines(self._cloud, f"{self.name}-drain", self._began_at))

        def has_died() -> bool:
            self._start_drains()
            queue = self._queue(Die)
            return bool(queue and queue["dead"])

        def rings() -> bool:
            return name in self._ringing

        # A death before the first housekeeping run of a stack is what it begins to count from.
        self._until("the first housekeeping run", has_looked)
        self._pushes.inbox.push(Die, "dies", None)
        self._until("the death of a job", has_died)
        self._drains_started_at = 0.0
        self._start_drains()
        if not self._plan.alarm_patience:
            return f"{NOT_SHOWN}: a job died, and nobody waited for {name}"
        self._until(f"the alarm {name}", rings, self._plan.alarm_patience)
        return f"a job died, and these alarms ring: {', '.join(self._ringing)}"

    @property
    def _ringing(self) -> list[str]:
        return [alarm["AlarmName"] for alarm in self._deployment.alarms if alarm["StateValue"] == "ALARM"]

    def _measure(self) -> str:
        names = [f"{self.name}-{function}" for function in _FUNCTIONS]
        calls = {name: metric_sum(self._cloud, "Invocations", name, self._began_at) for name in names}
        milliseconds = sum(metric_sum(self._cloud, "Duration", name, self._began_at) for name in names)
        lines = [line for name in names for line in log_lines(self._cloud, name, self._began_at)]
        self._used = self._used._replace(
            invocations=sum(calls.values()),
            function_seconds=milliseconds / 1_000,
            messages=calls[f"{self.name}-ingest"],
            requests=self._dashboard.requests,
            log_bytes=sum(len(line) + 1 for line in lines),
            jobs=self._pushes.count,
            schedules=MORE_SHARDS + 1,
            alarms=len(self._deployment.alarms),
        )
        each = ", ".join(f"{name.rpartition('-')[2]} {count:.0f}" for name, count in calls.items())
        return f"invocations: {each}; {milliseconds / 1_000:.1f} s of work, {self._used.log_bytes:,} bytes of logs"

    def _destroy(self) -> str:
        return f"{NOT_SHOWN}: {self.ending.keep_all()}" if self._plan.keeps else self.ending.destroy_all()

    def _queue(self, worker: type[Worker] = Record) -> Any:  # noqa: ANN401 - as of the dashboard
        answer = self._dashboard.get("queues")
        return answer and next(each for each in answer["queues"] if each["name"] == worker.queue_name)

    def _is_drained(self) -> bool:
        self._start_drains()
        queue = self._queue()
        return bool(
            queue and queue["payloads"] >= self._pushes.count and not queue["length"] and not queue["in_flight"]
        )

    def _start_drains(self) -> None:
        if not self._plan.starts_drains or time.monotonic() < self._drains_started_at + _START_INTERVAL:
            return
        self._drains_started_at = time.monotonic()
        for event in ({"tick": "only"}, *({"shard": shard} for shard in range(self._shards))):
            payload = json.dumps(event).encode()
            name = f"{self.name}-drain"
            self._cloud.client("lambda").invoke(FunctionName=name, InvocationType="Event", Payload=payload)

    def _verdict(self) -> str:
        """That of the runs in the log, when all are there. Raises SmokeFailed if a promise was broken."""

        def judged() -> Any:  # noqa: ANN401 - a verdict
            lines = log_lines(self._cloud, f"{self.name}-drain", self._began_at)
            return judged_runs(self._pushes.accepted, lines, in_order=self._pushes.inbox.is_fifo)

        with suppress(SmokeFailed):
            self._until("the log", lambda: not judged().lost, 60.0)
        verdict = judged()
        if not verdict.is_good:
            wrong = [*verdict.lost, *verdict.out_of_order, *verdict.overlaps]
            raise SmokeFailed(
                f"{len(verdict.lost)} ids lost payloads, {len(verdict.out_of_order)} came out of order, "
                f"{len(verdict.overlaps)} ran twice at once: {'; '.join(wrong[:3])}"
            )
        order = "in order" if self._pushes.inbox.is_fifo else "in no order, as a standard inbox has none"
        return f"{verdict.done:,} payloads in the log, {order}, none lost, none at once, {verdict.repeats} repeats"

    def _until(self, what: str, is_true: Callable[[], bool], seconds: float = _PATIENCE, rest: float = 0.0) -> None:
        try:
            until(what, is_true, seconds, rest or max(_SOON, self._cloud.rest))
        except SmokeFailed as error:
            if self._dashboard.trouble:
                raise SmokeFailed(f"{error}; the dashboard says: {self._dashboard.trouble}") from error
            raise


def _listed(shards: int) -> str:
    return ",".join(map(str, range(shards)))


class _StepFailed(Exception):
    """The rest cannot go on."""

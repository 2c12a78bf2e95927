"""What `lowkiq stack costs` says of the functions is what they do: an idle hour and a busy one, in small."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.simulate.choice import LOOK
from lowkiq_lambda.stack.costs.bills import (
    BUSY_LOG,
    BUSY_VISIT_LOG,
    FAILURE_LOG,
    SETTLE_LOG,
    metrics,
    tick_log,
    visit_log,
)
from lowkiq_lambda.stack.costs.month import MetricsKind, Month
from tests.aws.functions import DrainFunction, FunctionContext, overdue
from tests.kit.apps import MakeApp
from tests.kit.handlers import Broken
from tests.kit.workers import declare

ROOT = Path(__file__).parents[2]
TICK = {"tick": True}
TIMES = 12
"""Invocations that stand for an hour's."""
SLACK = 1.4
"""So much more than what is seen the calculator may say: ids, names and numbers of others are longer."""


@dataclass
class Hour:
    """Some invocations of one warm environment, and what they print."""

    drain: DrainFunction
    app: Lowkiq
    workers: list[type[Worker]]

    def play(self, event: object, times: int = TIMES) -> list[dict[str, Any]]:
        """Invoke the function so often; the lines that it prints."""
        before = len(self.drain.lines)
        for _ in range(times):
            self.drain(event)
        return self.drain.lines[before:]


def hour_of(drain: DrainFunction, make_app: MakeApp, queue_name: str, queues: int, kind: MetricsKind) -> Hour:
    """An app of so many queues, whose jobs fail that are called bad; its environment is warm."""

    def perform(batch: Batch) -> None:
        if "bad" in batch:
            raise Broken(batch)

    app = make_app()
    workers = [
        declare(app, f"{queue_name}-{number}", perform, batch_size=1, shards_count=5) for number in range(queues)
    ]
    drain.install(app, metrics=kind)
    drain(TICK)
    return Hour(drain, app, workers)


def size_of(lines: list[dict[str, Any]], drain: DrainFunction) -> float:
    """The bytes of those lines, as Lambda would have them: its requests have names of 36 letters."""
    return float(sum(len(line) + 33 * ("function_request_id" in line) for line in drain.printed[-len(lines) :]))


def deployed(line: str) -> str:
    """The line as Lambda would have it: its requests have names of 36 letters, and its code lies in one place."""
    return line.replace(str(ROOT), "/var/task").replace(FunctionContext.aws_request_id, f"{uuid4()}")


def billed(blobs: list[dict[str, Any]]) -> set[tuple[str, ...]]:
    """CloudWatch's metrics: a name under the values of a set of dimensions is one."""

    def each() -> Iterator[tuple[str, ...]]:
        for blob in blobs:
            for directive in blob["_aws"]["CloudWatchMetrics"]:
                for dimensions in directive["Dimensions"]:
                    where = tuple(f"{name}={blob[name]}" for name in sorted(dimensions))
                    yield from ((metric["Name"], *where) for metric in directive["Metrics"])

    return set(each())


@pytest.mark.parametrize("kind", ["none", "summary", "queues"])
@pytest.mark.parametrize("queues", [1, 5, 20])
def test_an_idle_hour_logs_what_is_paid_for(
    drain: DrainFunction, make_app: MakeApp, queue_name: str, queues: int, kind: MetricsKind
) -> None:
    """One line for each invocation, of the size that is said, and no metric more than is said."""
    hour = hour_of(drain, make_app, queue_name, queues, kind)
    month = Month(jobs=0, queues=queues, metrics=kind)

    for event, said in ((TICK, tick_log(month)), ({"shard": 0}, visit_log(month))):
        lines = hour.play(event)
        seen = size_of(lines, drain) / TIMES
        assert TIMES == len([line for line in lines if "_aws" not in line])
        assert seen <= said <= SLACK * seen, (event, seen)
    assert metrics(month) >= len(billed(drain.blobs))


@pytest.mark.parametrize("kind", ["summary", "queues"])
def test_a_busy_hour_logs_what_is_paid_for(
    drain: DrainFunction, make_app: MakeApp, queue_name: str, kind: MetricsKind
) -> None:
    """Jobs add no line with a summary; a failure is one line, and with `queues` a settling is one too."""
    hour = hour_of(drain, make_app, queue_name, 2, kind)
    month = Month(jobs=1, queues=2, metrics=kind)
    idle = size_of(hour.play(TICK), drain)

    for worker in hour.workers:
        worker.push_many(overdue([f"good-{number}" for number in range(100)]))
    lines = hour.play(TICK)
    settles = len([line for line in lines if "done" in line and "_aws" in line])
    work = size_of(lines, drain) - idle

    assert (kind == "queues") == (settles > 0)
    assert work <= 2 * BUSY_LOG + settles * SETTLE_LOG <= SLACK * work
    assert metrics(month) >= len(billed(drain.blobs))

    for worker in hour.workers:
        worker.push_many(overdue(["bad"]))
    failed = [line for line in hour.play(TICK, 1) if line.get("level") in ("WARNING", "ERROR")]
    assert 2 == len(failed)
    for line in failed:
        seen = len(deployed(json.dumps(line, separators=(",", ":")))) + 1
        assert seen <= FAILURE_LOG <= SLACK * seen, line


def test_a_busy_visit_of_a_shard_logs_what_is_paid_for(
    drain: DrainFunction, make_app: MakeApp, queue_name: str
) -> None:
    """Each queue with work in that shard adds so many bytes to the line of the visit."""
    hour = hour_of(drain, make_app, queue_name, 2, "summary")
    idle = size_of(hour.play({"shard": 0}, 1), drain)

    for worker in hour.workers:
        worker.push_many(overdue([f"good-{number}" for number in range(100)]))
    lines = hour.play({"shard": 0}, 1)
    work = size_of(lines, drain) - idle

    assert 1 == len(lines)
    assert work <= 2 * BUSY_VISIT_LOG <= SLACK * work, work


def test_a_look_takes_as_long_as_is_said(drain: DrainFunction, make_app: MakeApp, queue_name: str) -> None:
    """By the processor's time, of which 256 MB have a seventh; the rest is for the runtime and the way to Redis."""
    hour = hour_of(drain, make_app, queue_name, 1, "summary")
    before = time.process_time()

    hour.play(TICK, 20)

    seventh = (time.process_time() - before) / 20 * 1_769 / 256
    # A machine may be three times slower than the one that this was measured on.
    assert seventh <= 3 * LOOK, seventh

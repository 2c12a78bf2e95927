"""`max_run_time` and `max_run_items`: what a run may take, and what becomes of one that takes more."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from lowkiq_lambda import Batch, BatchJob, Lowkiq, Worker, discard_on
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.engine.run_time import RunLimits
from lowkiq_lambda.store.shard.lease_replies import NO_REQUESTS, Requests
from lowkiq_lambda.testing import ManualClock
from tests.kit.coroutines import declare_async, visit
from tests.kit.handlers import Notes
from tests.kit.iterating import Items, declare_items
from tests.kit.looks import left_behind, look
from tests.kit.workers import declare, jobs_of

SHORT = 0.01
"""Seconds by the real clock, as loops have no other."""


async def run_for_ever(_batch: Batch) -> None:
    """A handler that comes to no end by itself."""
    await asyncio.Event().wait()


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[tuple[str, object]]:
    """The warnings of runs that took too long, each with the ids that it names."""
    return [(one.getMessage(), one.__dict__["ids"]) for one in caplog.records if "max_run_time" in one.getMessage()]


@pytest.mark.parametrize("fields", [{"max_run_time": 3.0}, {"max_run_items": 3}])
def test_a_job_with_a_cursor_stops_at_the_first_yield_behind_it(
    app: Lowkiq, clock: ManualClock, queue_name: str, fields: dict[str, Any]
) -> None:
    """As at the end of a turn: it has not failed, and others that wait come first."""
    items = Items(7, lambda _job, _item: clock.advance(1.0))
    worker = declare_items(app, queue_name, items, turn=1_000.0, **fields)
    worker.push_many(jobs_of("ab"))

    assert {"later": 4, "checkpointed": 4, "done": 2} == app.drain()
    assert [("a", None), ("b", None), ("a", 3), ("b", 3), ("a", 6), ("b", 6)] == [run[:2] for run in items.runs]
    assert ([*range(7)], [*range(7)], {}) == (items.of("a"), items.of("b"), left_behind(app, worker))


def test_a_coroutine_that_takes_longer_has_failed(app: Lowkiq, queue_name: str) -> None:
    """With an error of its own, which is retried and counted as any other."""
    worker = declare_async(app, queue_name, run_for_ever, max_run_time=SHORT)
    worker.push_many(jobs_of("a"))

    assert {"retried": 1, "failed": 1} == app.drain()
    waiting = look(app, worker, "a")
    assert "ran longer than max_run_time = 0.01 s" == (waiting and waiting.error)


def test_rules_see_the_error(app: Lowkiq, queue_name: str) -> None:
    """A TimeoutError, as those of the handler's own calls are."""
    fields = {"max_run_time": timedelta(seconds=SHORT), "on_error": (discard_on(TimeoutError),)}
    declare_async(app, queue_name, run_for_ever, **fields).push_many(jobs_of("a"))
    assert {"discarded": 1, "rejected": 1} == app.drain()


def test_each_job_of_a_coroutine_has_the_time_for_itself(app: Lowkiq, queue_name: str) -> None:
    """The one that takes longer has failed, and the others of its batch are done."""

    async def perform_job(_self: Worker, job: BatchJob) -> None:
        if job.id == "b":
            await asyncio.Event().wait()

    declare(app, queue_name, Notes(), perform_job=perform_job, batch_size=3, max_run_time=SHORT).push_many(
        jobs_of("abc")
    )
    assert {"retried": 1, "failed": 1, "done": 2} == app.drain()


def test_a_timeout_of_the_handlers_own_stays_its_own(app: Lowkiq, queue_name: str) -> None:
    """Its text is not ours, and what the handler bears is no failure."""

    async def handle(batch: Batch) -> None:
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            if "b" in batch:
                raise TimeoutError("too slow") from None

    worker = declare_async(app, queue_name, handle, max_run_time=60.0)
    worker.push_many(jobs_of("ab"))

    assert {"retried": 1, "failed": 1, "done": 1} == app.drain()
    waiting = look(app, worker, "b")
    assert "too slow" == (waiting and waiting.error)


def test_a_plain_function_is_asked_to_stop_and_one_warning_names_the_id(
    app: Lowkiq, clock: ManualClock, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody can end a thread: it goes on until it looks, and what it does counts."""
    seen: list[tuple[float, bool]] = []

    def handle(batch: Batch) -> None:
        for _ in range(3):
            seen.append((batch.remaining, batch.stopping))
            clock.advance(6.0)

    worker = declare(app, queue_name, handle, max_run_time=10.0)
    worker.push_many(jobs_of("ab"))

    assert {"done": 2} == app.drain()
    assert [(10.0, False), (4.0, False), (-2.0, True)] * 2 == seen
    text = f"{queue_name}: a handler has run longer than max_run_time = 10 s"
    assert [(text, ["a"]), (text, ["b"])] == warnings_in(caplog)


def test_a_handler_that_hangs_is_warned_of_while_it_runs(
    app: Lowkiq, clock: ManualClock, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """By the thread that renews leases, once."""
    worker = declare(app, queue_name, Notes(), max_run_time=10.0)
    limits = RunLimits(worker, clock.monotonic)
    running = limits.begin(Budgeted(), ["a"])
    seen = []
    for _ in range(3):
        clock.advance(6.0)
        limits.look()
        seen.append(len(warnings_in(caplog)))
    running.end()

    assert [0, 1, 1] == seen
    assert [["a"]] == [ids for _, ids in warnings_in(caplog)]


def test_the_smaller_of_it_and_the_budget_counts(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A drain that has less time than a run may take is what the handler sees."""
    seen: list[float] = []
    worker = declare(app, queue_name, lambda batch: seen.append(batch.remaining), max_run_time=10.0)
    worker.push_many(jobs_of("a"))
    visit(app, worker, Budget(clock, 4.0))
    worker.push_many(jobs_of("a"))
    visit(app, worker, Budget(clock, 40.0))

    assert [4.0, 10.0] == seen


def test_perform_job_has_the_time_for_each_job(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Of a batch of several the second one has as much as the first."""
    seen: list[float] = []

    def perform_job(_self: Worker, job: BatchJob) -> None:
        seen.append(job.remaining)
        clock.advance(4.0)

    worker = declare(app, queue_name, Notes(), perform_job=perform_job, batch_size=3, max_run_time=10.0)
    worker.push_many(jobs_of("abc"))

    assert {"done": 3} == app.drain()
    assert [10.0] * 3 == seen


def test_a_generator_is_not_warned_of(
    app: Lowkiq, clock: ManualClock, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It stops by itself."""

    def perform_job(_self: Worker, _job: BatchJob) -> Iterator[int]:
        clock.advance(30.0)
        yield 1

    worker = declare(app, queue_name, Notes(), perform_job=perform_job, max_run_time=10.0, turn=100.0)
    worker.push_many(jobs_of("a"))
    app.drain()
    assert [] == warnings_in(caplog)


class Budgeted:
    """A drain with an hour left."""

    token = 1
    requests: Requests = NO_REQUESTS

    def remaining(self) -> float:
        """An hour."""
        return 3_600.0

    def stopping(self) -> bool:
        """Never."""
        return False

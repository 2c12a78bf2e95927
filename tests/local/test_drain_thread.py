"""What one drain thread makes of its visits: what counts as work, and what ends it."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.engine.board import ShardBoard
from lowkiq_lambda.engine.leased_shard import LeasedShard
from lowkiq_lambda.engine.shard_queue import Rests
from lowkiq_lambda.local.outage import Outage
from lowkiq_lambda.local.threads import DrainThread
from lowkiq_lambda.settings.protocols import Scheduler, State
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.workers import declare, jobs_of


def thread_of(
    app: Lowkiq, clock: ManualClock, *workers: type[Worker], scheduler: Scheduler | None = None
) -> DrainThread:
    """A thread that is not started, and a board on which all shards of the workers have work."""
    shards = [shard for worker in workers for shard in app.core.queues.agreed(worker).shards]
    board = ShardBoard(shards, clock, 1.0, Rests.of_daemon(1.0))
    board.notify(shards)
    return DrainThread(app.core.drains.drainer, board, scheduler, Outage(clock, lambda _error: None), app.config, clock)


def closing(threads: list[DrainThread]) -> Callable[[object], None]:
    """A handler with which the work of the thread is over."""
    return lambda _batch: threads[0].board.close()


def test_a7_a_visit_that_came_to_its_end_is_work(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A-7: what dies after it has not died in a row."""
    threads = list[DrainThread]()
    worker = declare(app, queue_name, closing(threads))
    worker.push_many(jobs_of("a"))
    threads.append(thread_of(app, clock, worker))

    threads[0].run()

    assert threads[0].has_worked


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_push_that_the_visit_has_found_brings_no_other_visit(
    app: Lowkiq, clock: ManualClock, queue_name: str, concurrency: int
) -> None:
    """Jobs that are pushed while others run are claimed by the same visit, and then nothing is left to look for."""
    runs = list[str]()

    def push_another(batch: Batch) -> None:
        runs.extend(batch)
        if "a" in batch:
            worker.push_many(jobs_of("b"))
            thread.board.notify(thread.board.shards)

    worker = declare(app, queue_name, push_another, shards_count=1, concurrency=concurrency)
    worker.push_many(jobs_of("a"))
    thread = thread_of(app, clock, worker)

    assert 1 == visit_all(thread)
    assert ["a", "b"] == runs


def test_a_push_that_comes_behind_the_last_claim_brings_another_visit(
    app: Lowkiq, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is heard while the visit's last call comes back."""
    runs, ids, settle = list[str](), ["b"], LeasedShard.settle

    def settle_late(shard: LeasedShard, *args: Any) -> Any:
        claim = settle(shard, *args)
        if claim is None and ids:
            worker.push_many(jobs_of(ids.pop()))
            thread.board.notify(thread.board.shards)
        return claim

    worker = declare(app, queue_name, runs.extend, shards_count=1)
    worker.push_many(jobs_of("a"))
    thread = thread_of(app, clock, worker)
    monkeypatch.setattr(LeasedShard, "settle", settle_late)

    assert 2 == visit_all(thread)
    assert ["a", "b"] == runs


def visit_all(thread: DrainThread) -> int:
    """Visit shards until none is known to have work; how many visits that took."""
    visits = 0
    while (shard := thread.board.next()) is not None:
        thread._visit(shard)
        visits += 1
    return visits


def test_a7_a_thread_that_its_shard_has_ended_may_come_back_at_once(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """A-7: the shard rests, so nothing dies of it soon: its thread need not wait, which others need."""

    def end(_batch: object) -> None:
        raise KeyboardInterrupt

    worker = declare(app, queue_name, end)
    worker.push_many(jobs_of("a"))
    thread = thread_of(app, clock, worker)

    with pytest.raises(KeyboardInterrupt):
        thread.run()

    assert thread.has_worked
    assert [True] == [thread.board.is_resting(shard) for shard in thread.board.shards]


def test_a7_what_dies_without_a_visit_has_not_worked(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A-7: nothing rests that would keep it from dying again at once."""

    class Broken:
        """A scheduler."""

        def next(self, _states: Sequence[State]) -> State | None:
            raise RuntimeError("no idea")

    thread = thread_of(app, clock, declare(app, queue_name, Notes()), scheduler=Broken())

    with pytest.raises(RuntimeError, match="no idea"):
        thread.run()

    assert not thread.has_worked


def test_a_queue_that_was_declared_anew_since_ends_no_thread(
    make_app: MakeApp, clock: ManualClock, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """P6: the log says so, nothing is at its end, and the same thread goes on with the next shard."""
    words, threads = list[BaseException](), list[DrainThread]()
    app, anew = make_app(last_words=words.append), make_app()
    gone = declare(app, f"{queue_name}-anew", Notes())
    stays = declare(app, f"{queue_name}-stays", closing(threads))
    app.operate(gone).waiting.fetch([])
    threads.append(thread_of(app, clock, gone, stays))
    anew.operate(declare(anew, f"{queue_name}-anew", Notes(), merge="never")).redeclare()
    stays.push_many(jobs_of("a"))

    with caplog.at_level(logging.ERROR):
        threads[0].run()

    assert threads[0].has_worked
    (record,) = caplog.records
    assert record.getMessage().startswith(f"shard 0 of queue '{queue_name}-anew' may not be drained here: ")
    assert [] == words

"""In which order a drain visits shards: turns, rests, and those whose next job may end the process."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from lowkiq_lambda import Batch, Lowkiq
from lowkiq_lambda.base.errors import BackendError, BackendUnavailable
from lowkiq_lambda.engine.board import RISK_PUT_OFF, ShardBoard
from lowkiq_lambda.engine.budget import Budget, VisitResult
from lowkiq_lambda.engine.loop import Loop
from lowkiq_lambda.engine.shard_queue import Rests
from lowkiq_lambda.local.outage import Outage
from lowkiq_lambda.local.threads import DrainThread
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Notes
from tests.kit.workers import declare, jobs_of

SHARD = ShardRef("queue", 1, 0)


def board_of(clock: ManualClock, *shards: ShardRef) -> ShardBoard:
    """A board with the rests of a drain."""
    return ShardBoard(shards, clock, 1.0, Rests.of_drain(1.0))


def rest_of(board: ShardBoard, clock: ManualClock) -> float:
    """For how long the shard is left alone, which passes."""
    before = clock.monotonic()
    while board.is_resting(SHARD):
        clock.advance(0.25)
    return clock.monotonic() - before


def test_a_shard_that_fails_again_rests_twice_as_long() -> None:
    """What is out of reach takes its time to say so, while the others wait: less and less often, up to a bound."""
    clock = ManualClock()
    board, rests = board_of(clock, SHARD), []
    for _ in range(6):
        board.failed(SHARD, BackendError())
        rests.append(rest_of(board, clock))

    assert pytest.approx([1, 2, 4, 8, 10, 10], abs=0.25) == rests


def test_p6_a_shard_whose_handlers_exit_rests_no_longer_each_time() -> None:
    """P6: what exits is bounded by itself, so the others of its shard wait for a short rest, always the same."""
    clock = ManualClock()
    board, rests = board_of(clock, SHARD), []
    for _ in range(6):
        board.visited(SHARD, VisitResult("exited", token=1, exit=SystemExit(3)), None)
        rests.append(rest_of(board, clock))

    assert pytest.approx([1] * 6, abs=0.25) == rests


def test_shards_that_wait_for_each_other_take_short_turns(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A visit ends after a quarter of a second where another shard has work, however much is left in its own."""
    notes = Notes(lambda _batch: clock.advance(0.1))
    for letters in ("abcdefgh", "ABCDEFGH"):
        worker = declare(app, f"{queue_name}-{letters[0]}", notes)
        worker.push_many([{"id": job_id, "due_at": clock.time() + at} for at, job_id in enumerate(letters)])
    clock.advance(60)
    app.drain()

    order = "".join(job_id for (job_id,) in notes.ids)
    assert "abcABCdefDEFghGH" == order


def test_a_threads_turn_is_short_where_another_of_its_shards_has_work(
    make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """The same for a daemon: after a quarter of a second it claims no more for a shard that keeps others waiting."""
    app = make_app()
    declare(app, queue_name, Notes(), shards_count=2)
    first, second = app.core.drains.drainer.shards()
    board = board_of(clock, first, second)
    thread = DrainThread(app.core.drains.drainer, board, None, Outage(clock, print), app.config, clock)
    board.notify([first])
    assert first == board.next()
    budget = thread._budget(first)

    clock.advance(0.3)
    assert budget.against_claim(0.0) is None
    board.notify([second])
    assert "turn over" == budget.against_claim(0.0)
    clock.advance(-0.2)
    assert budget.against_claim(0.0) is None


class Risk:
    """A queue whose only job killed its process, long before that of another queue was pushed."""

    def __init__(self, app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
        self.app, self.clock = app, clock
        self.notes = Notes()
        mortal = Mortal(app)
        self.notes.then = mortal.die
        worker = declare(app, f"{queue_name}-risk", self.notes)
        worker.push_many(jobs_of("x"))
        assert mortal.drain() is None
        outlive(app, clock, worker)
        self.notes.then = None
        self.notes.clear()
        self.worker = worker


def test_p6_what_may_end_the_process_comes_when_all_else_is_done(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """P6: a shard whose holder died is the most lagging of all, and is visited last all the same."""
    risk = Risk(app, clock, queue_name)
    healthy = declare(app, queue_name, risk.notes, shards_count=3)
    healthy.push_many(jobs_of("abcdefghi"))

    assert {"done": 10, "recovered": 1} == app.drain()

    assert ["x"] == risk.notes.ids[-1]
    assert set("abcdefghi") == {job_id for (job_id,) in risk.notes.ids[:-1]}


def test_p6_what_was_found_suspect_comes_last_too(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P6: once its jobs are back from a dead holder they run alone, still behind all other shards."""
    risk = Risk(app, clock, queue_name)
    mortal = Mortal(app)
    mortal.die_before("start")
    assert mortal.drain() is None
    outlive(app, clock, risk.worker)
    declare(app, queue_name, risk.notes).push_many(jobs_of("ab"))

    app.drain()

    assert [["a"], ["b"], ["x"]] == risk.notes.ids


def test_p6_others_that_never_end_do_not_keep_a_risky_shard_from_its_turn(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """P6: it waits for half of the drain's time and no more, where there is always something else to do."""
    risk = Risk(app, clock, queue_name)

    def go_on(batch: Batch) -> None:
        if "x" not in batch:
            clock.advance(0.1)
            endless.push_many(jobs_of([*batch]))

    risk.notes.then = go_on
    endless = declare(app, queue_name, risk.notes)
    endless.push_many(jobs_of("ab"))
    began_at = clock.monotonic()
    done_at = list[float]()
    risk.notes.then = lambda batch: done_at.append(clock.monotonic()) if "x" in batch else go_on(batch)

    app.drain(20.0)

    assert 1 == len(done_at)
    assert began_at + 10 <= done_at[0] < began_at + 11


def test_p6_a_risky_shard_waits_for_a_minute_at_most(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P6: a drain without an end, too, comes to it, however much work others have."""
    risk = Risk(app, clock, queue_name)
    healthy = declare(app, queue_name, risk.notes)
    healthy.push_many(jobs_of("a"))
    drain, budget = Loop(app.core.drains.drainer, app.core.drains.drainer.shards), Budget(clock)
    drain.board.put_off_risk(math.inf)
    drain.probe(budget)
    taken = list[str]()
    for seconds in (RISK_PUT_OFF - 0.5, 1.0, 0.0):
        shard = drain.board.next()
        assert shard is not None
        taken.append(shard.queue_name)
        clock.advance(seconds)
        drain.board.visited(shard, VisitResult("turn over", token=1), -0.1)

    assert [queue_name, queue_name, f"{queue_name}-risk"] == taken


def test_p9_what_a_dead_holder_left_does_not_look_claimed(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P9: nobody performs it, so it is as old as its time says, before and after it was put back."""
    risk = Risk(app, clock, queue_name)
    metrics = app.operate.metrics()[f"{queue_name}-risk"]
    assert (app.config.lease_ttl + 1,) * 2 == (metrics.lag, metrics.oldest_due_age)

    mortal = Mortal(app)
    mortal.die_before("start")
    assert mortal.drain() is None
    outlive(app, clock, risk.worker)
    metrics = app.operate.metrics()[f"{queue_name}-risk"]
    assert (2 * (app.config.lease_ttl + 1),) * 2 == (metrics.lag, metrics.oldest_due_age)


def test_a_shard_that_a_probe_has_reached_again_is_probed_no_more_often(
    make_app: MakeApp, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its visit failed once, and a probe was answered since: each visit of the others needs none of its own."""
    app, notes = make_app(poll_interval=600.0), Notes(lambda _batch: clock.advance(20.0 / len(notes.batches) ** 9))
    worker = declare(app, queue_name, notes, shards_count=12)
    ids = [str(number) for number in range(60)]
    worker.push_many(jobs_of(ids))
    drainer, failed, visits, probes = app.core.drains.drainer, list[ShardRef](), list[int](), list[int]()
    probe_each, visit = drainer.probe_each, drainer.visit

    def counted(shards: Sequence[ShardRef], retry_for: float) -> Mapping[ShardRef, Any]:
        probes.append(len(visits))
        return probe_each(shards, retry_for)

    def failing_once(shard: ShardRef, budget: Budget) -> VisitResult:
        visits.append(1)
        if not failed:
            failed.append(shard)
            raise BackendUnavailable
        return visit(shard, budget)

    monkeypatch.setattr(drainer, "probe_each", counted)
    monkeypatch.setattr(drainer, "visit", failing_once)
    app.drain()

    assert {*ids} == {job_id for batch in notes.batches for job_id in batch}
    # At first; once the failed one has rested; and when there is nothing left.
    assert [0, 2, len(visits)] == probes


def test_a_shard_out_of_reach_is_not_visited_before_a_probe_reaches_it(
    app: Lowkiq, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A visit would try for seconds to get it, while others that may be reached wait."""
    worker = declare(app, queue_name, Notes(), shards_count=2)
    worker.push_many(jobs_of("ab"))
    drainer, (lost, _) = app.core.drains.drainer, app.core.queues.agreed(worker).shards
    probe_each, visit, visited = drainer.probe_each, drainer.visit, list[ShardRef]()

    def without_one(shards: Sequence[ShardRef], retry_for: float) -> Mapping[ShardRef, Any]:
        return {**probe_each(shards, retry_for), **({lost: BackendUnavailable()} if lost in shards else {})}

    def noted(shard: ShardRef, budget: Budget) -> VisitResult:
        visited.append(shard)
        return visit(shard, budget)

    def wait(_drain: Loop, _budget: Budget) -> bool:
        clock.advance(0.3)
        return True

    monkeypatch.setattr(drainer, "probe_each", without_one)
    monkeypatch.setattr(drainer, "visit", noted)
    drain = Loop(drainer, drainer.shards)
    drain.is_notified = True
    drain.run(Budget(clock, 60.0), wait)

    assert lost not in visited
    assert {lost} == set(drain.errors)

"""Pauses, and holders that an operator evicts."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from lowkiq_lambda import Batch, BatchJob, Lowkiq, Worker
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.store.shard.nodes import FOREVER
from tests.kit.apps import MakeApp
from tests.kit.desk import Desk, MakeDesk
from tests.kit.workers import declare

TTL = 30.0
JOBS = [{"id": f"{n:02}"} for n in range(40)]


def let_the_lease_end(desk: Desk) -> None:
    """Its time is over, by the clock of the test and by the server's own."""
    (shard,) = desk.app.core.queues.agreed(desk.worker).shards
    desk.clock.advance(TTL + 1.0)
    desk.admin.delete(shard.key("lease"))


def evict(desk: Desk, token: int | None = None) -> bool:
    """Evict the holder of the only shard: the one there is, or that of a token."""
    (shard,) = desk.app.core.queues.agreed(desk.worker).shards
    (seen,) = desk.queue.shards()
    return desk.queue.in_flight.evict_holder(shard, seen.token if token is None else token)


def test_nobody_takes_a_paused_shard(desk: Desk) -> None:
    """Pushes go on; a pause ends when it is resumed, and who waits for work is told."""
    assert FOREVER == desk.queue.pause()
    desk.push(JOBS[:3])
    desk.drain()
    assert ([], 3) == (desk.handler.batches, len(desk.state()["waiting"]))

    sent: list[tuple[Any, ...]] = []
    desk.app.core.backend.publish = lambda *message: sent.append(message)  # type: ignore[method-assign]  # to be heard here
    desk.queue.resume()
    desk.queue.resume()
    assert {(f"lowkiq:{desk.worker.queue_name}:notify", "0")} == {*sent}
    desk.drain()
    assert desk.is_empty()


def test_a_timed_pause_ends_by_itself(desk: Desk) -> None:
    """E-86: it counts from the last call."""
    desk.push(JOBS[:1])
    desk.queue.pause(10.0)
    desk.clock.advance(5.0)
    assert desk.clock.time() + 10.0 == desk.queue.pause(10.0)
    desk.clock.advance(9.0)
    desk.drain()
    assert [] == desk.handler.batches
    desk.clock.advance(1.0)
    desk.drain()
    assert desk.is_empty()


def test_a_pause_lasts_some_time(desk: Desk) -> None:
    """What is no time to come is refused, and ends no pause that was set before."""
    desk.push(JOBS[:1])
    desk.queue.pause(60.0)

    for seconds in (0, -1, math.nan):
        with pytest.raises(ValueError, match="seconds must be more than 0"):
            desk.queue.pause(seconds)
    desk.drain()
    assert [] == desk.handler.batches


def test_a_pause_during_a_drain(desk: Desk) -> None:
    """E-86: what was claimed is finished, nothing more is claimed, and the shard is let go of."""
    desk.push(JOBS)
    desk.handler.meanwhile = lambda: desk.queue.pause(60.0)
    desk.drain()
    assert 1 == len(desk.handler.batches)
    (shard,) = desk.queue.shards()
    assert (False, True, 0) == (shard.is_held, shard.is_paused, shard.in_flight)

    desk.clock.advance(60.0)
    desk.drain()
    assert 4 == len(desk.handler.batches)
    assert desk.is_empty()


def test_a_pause_between_batches_that_were_claimed_together(desk: Desk) -> None:
    """E-86: once what was done is told, what was claimed and not begun goes back as it was."""
    desk.push(JOBS)
    desk.drain()
    desk.handler.batches.clear()

    def meanwhile() -> None:
        desk.queue.pause(60.0)
        desk.clock.advance(1.0)

    desk.push(JOBS)
    desk.handler.meanwhile = meanwhile
    desk.drain()
    assert 1 == len(desk.handler.batches)
    (shard,) = desk.queue.shards()
    assert (False, 0, 30, 0) == (shard.is_held, shard.in_flight, shard.length, shard.retries)

    desk.clock.advance(60.0)
    desk.drain()
    assert [job["id"] for job in JOBS] == [job_id for batch in desk.handler.batches for job_id in batch]
    assert desk.is_empty()


def test_a_pause_holds_for_other_processes_and_all_shards(make_app: MakeApp, make_desk: MakeDesk) -> None:
    """E-86: it lies in Redis, so it survives a deploy."""
    desk = make_desk({"shards_count": 3})
    desk.push(JOBS)
    desk.queue.pause()
    successor = make_app()
    declare(successor, desk.worker.queue_name, desk.handler, shards_count=3)
    assert {} == {outcome: n for outcome, n in successor.drain().items() if n}
    assert [True] * 3 == [shard.is_paused for shard in successor.operate(successor.workers[0]).shards()]
    desk.queue.resume()
    assert 40 == successor.drain()["done"]


def test_p1_p4_an_evicted_holder_writes_nothing_more(desk: Desk) -> None:
    """Its outcome is refused, nobody else gets the shard while it may still run, and what it ran is run again."""
    desk.push(JOBS[:2])
    evicted: list[bool] = []
    desk.handler.meanwhile = lambda: evicted.extend([evict(desk), evict(desk)])
    desk.drain()
    state = desk.state()
    assert ([True, True], {"00", "01"}, 0) == (evicted, set(state["flight"]), state["counters"]["done"])
    assert (TTL, True) == (state["lease"][1] - desk.clock.time(), state["lease"][2])

    desk.drain()
    desk.clock.advance(TTL - 1.0)
    desk.drain()
    assert [["00", "01"]] == [list(batch) for batch in desk.handler.batches]
    let_the_lease_end(desk)
    desk.drain()
    assert [["00", "01"]] * 2 == [list(batch) for batch in desk.handler.batches]
    assert desk.is_empty()


def test_p4_an_evicted_holder_cannot_renew(desk: Desk) -> None:
    """So the lease ends when it would have ended had the holder died."""
    desk.push(JOBS[:1])
    seen: list[float] = []

    def meanwhile() -> None:
        evict(desk)
        seen.append(desk.state()["lease"][1])
        desk.clock.advance(TTL / 2)

    desk.handler.meanwhile = meanwhile
    desk.drain()
    assert seen == [desk.state()["lease"][1]]


@pytest.mark.parametrize("times", [3])
def test_an_eviction_is_no_counted_crash(desk: Desk, times: int) -> None:
    """However often its holder is evicted, an id stays out of the morgue: it has done nothing."""
    desk.push([{"id": "a"}])
    for _ in range(times):
        desk.handler.meanwhile = lambda: evict(desk)
        desk.drain()
        let_the_lease_end(desk)
    desk.drain()
    assert times + 1 == len(desk.handler.batches)
    assert desk.is_empty()
    assert {} == desk.state()["morgue"]


def test_a_holder_is_evicted_by_the_number_of_its_shard(desk: Desk) -> None:
    """As stats and pages tell it."""
    desk.push(JOBS[:1])
    evicted: list[bool] = []
    desk.handler.meanwhile = lambda: evicted.append(desk.queue.in_flight.evict_holder(0, desk.queue.shards()[0].token))
    desk.drain()
    assert [True] == evicted


def test_only_the_holder_that_was_seen_is_evicted(desk: Desk) -> None:
    """Neither one that came since, nor one that has let go, nor one whose lease has ended."""
    desk.push(JOBS[:1])
    assert not evict(desk, 0)
    desk.drain()
    assert not evict(desk)
    desk.push(JOBS[:1])
    seen: list[bool] = []
    desk.handler.meanwhile = lambda: seen.append(evict(desk, desk.queue.shards()[0].token - 1))
    desk.drain()
    assert [False] == seen
    assert desk.is_empty()


def during_a_batch(desk: Desk, act: Callable[[], object], undo: Callable[[], object] = lambda: None) -> list[bool]:
    """`batch.stopping` before an operator acts, after it, and once that was undone and the lease renewed."""
    stopping: list[bool] = []

    def perform(batch: Batch) -> None:
        stopping.append(batch.stopping)
        act()
        stopping.append(batch.stopping)
        undo()
        desk.clock.advance(TTL / 3)
        desk.renew_leases()
        stopping.append(batch.stopping)

    desk.push(JOBS)
    desk.handler.then = perform
    return stopping


def test_a_batch_that_runs_long_sees_a_pause(desk: Desk) -> None:
    """E-86: with the next renewal of its lease, not only when it is settled; what was not begun goes back."""
    stopping = during_a_batch(desk, lambda: desk.queue.pause(60.0))
    desk.drain()

    assert ([False, False, True], 1) == (stopping, len(desk.handler.batches))
    (shard,) = desk.queue.shards()
    assert (False, True, 30, 0) == (shard.is_held, shard.is_paused, shard.length, shard.retries)


def test_a_pause_that_ended_while_a_batch_ran_ends_no_drain(desk: Desk) -> None:
    """The last that was told counts: a settling, or a renewal."""

    def pause() -> None:
        desk.queue.pause(60.0)
        desk.clock.advance(TTL / 3)
        desk.renew_leases()

    # Looked at before the pause ends: the renewer's own thread may be on its way, and its answer counts as well.
    stopping = during_a_batch(desk, pause, desk.queue.resume)
    desk.drain()

    assert [False, True, False] == stopping[:3]
    assert desk.is_empty()


def test_a_holder_that_is_asked_to_let_go(desk: Desk) -> None:
    """It finishes what runs, gives back the rest, and somebody else may take the shard at once."""
    asked: list[bool] = []

    def ask() -> None:
        asked.extend(desk.queue.in_flight.quiet_holder(0, token) for token in (holder_of(desk) - 1, holder_of(desk)))

    (shard,) = desk.app.core.queues.agreed(desk.worker).shards
    stopping = during_a_batch(desk, ask)
    result = desk.app.core.drains.drainer.visit(shard, Budget(desk.clock))

    assert ([False, True], [False, False, True]) == (asked, stopping)
    assert ("stopping", {"done": 10}, 30) == (result.reason, {**result.counts}, len(desk.state()["waiting"]))
    assert not desk.queue.in_flight.quiet_holder(0, holder_of(desk))
    desk.handler.then = None
    desk.drain()
    assert desk.is_empty()


def holder_of(desk: Desk) -> int:
    """The token of the only shard's last holder."""
    (seen,) = desk.queue.shards()
    return seen.token


def test_jobs_of_a_batch_that_were_not_begun_when_a_pause_came_go_back(app: Lowkiq, queue_name: str) -> None:
    """A worker that performs its jobs one by one begins no further one, and none of them has failed."""
    performed: list[str] = []

    class Each(Worker):
        shards_count = 1
        batch_size = 3

        def perform_job(self, job: BatchJob) -> None:
            performed.append(job.id)
            app.operate(Each).pause()
            for kept in app.core.drains.drainer._renewers.of(app.core.queues.agreed(Each).shards[0])._kept:
                kept.renew()

    Each.queue_name = queue_name
    app.worker(Each).push_many(JOBS[:3])

    assert {"done": 1, "returned": 2} == {outcome: n for outcome, n in app.drain().items() if n}
    assert (["00"], [-1, -1]) == (
        performed,
        [job.retry_count for job in app.operate(Each).waiting.list()],
    )

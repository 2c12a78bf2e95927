"""What people, tasks and schedules make of a queue that is resharded: nobody looks where its jobs were."""

from collections.abc import Sequence

import pytest

from lowkiq_lambda.base.errors import PushInterrupted, ShardMoving
from lowkiq_lambda.engine.queue import KNOWN_FOR
from lowkiq_lambda.operate.acts.bulk_actions import prepare, steps
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.moving import Load, MovingShards
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.jobs import FoundIds
from tests.kit.apps import MakeApp
from tests.kit.firing import MINUTE, at_noon, fired
from tests.kit.moving import Both, HandMade
from tests.kit.servers import Server
from tests.kit.workers import jobs_of

IDS = [str(number) for number in range(20)]
"""Ids of all shards."""


@pytest.fixture
def both(make_app: MakeApp, queue_name: str) -> Both:
    """Two processes with one queue."""
    return Both(make_app, queue_name)


def test_a_reader_follows_within_seconds(both: Both, clock: ManualClock) -> None:
    """Who only reads, and knows the old shards, finds all jobs in the new ones a little later, and in all lists."""
    both.worker.push_many(jobs_of(IDS))
    assert len(IDS) == both.here.operate.stats()["total"]["length"]
    both.there.operate(both.mover).reshard(to=6)
    clock.advance(KNOWN_FOR)

    queue = both.here.operate(both.worker)
    assert sorted(IDS) == sorted(job.id for job in queue.waiting.fetch(IDS))
    assert len(IDS) == len(queue.waiting.list("id")) == both.here.operate.stats()["total"]["length"]
    assert [0, 1, 2, 3, 4, 5] == [shard.index for shard in queue.shards()]
    assert 6 == len(both.here.operate.metrics()[both.name].shards)


def test_an_overview_learns_of_the_new_shards(both: Both) -> None:
    """The first page reads the declaration anyway, and shows the shards that the queue has, as the next one does."""
    both.worker.push_many(jobs_of(IDS))
    both.there.operate(both.mover).reshard(to=6)
    seen = []
    for _ in range(2):
        with both.here.operate.overview() as overview:
            (queue,) = overview.queues
            seen.append((queue.shards_count, queue.now.length, queue.mismatched))

    assert [(6, len(IDS), False)] * 2 == seen


def test_a_job_is_found_on_either_side_of_a_move(both: Both, server: Server) -> None:
    """While its group moves, a job is looked up where it was and where it will be; an action says "try again"."""
    both.worker.push_many(jobs_of(IDS))
    moving = HandMade(server, both.there, both.name)
    moving.begin(8)
    moving.close(1)
    both.worker.push_many(jobs_of(IDS, payload="new"))
    both.here.drain()

    queue = both.here.operate(both.worker)
    assert 8 + 4 == len(queue.shards())
    pushed_there = [job_id for job_id in IDS if both.here.core.queues[both.name].shards.home_of(job_id).index == 1]
    found = {job.id: [one.payload for one in job.payloads] for job in queue.waiting.fetch(pushed_there)}
    explained = [queue.explain(job_id).due_at is not None for job_id in pushed_there]

    assert pushed_there
    assert [[""]] * len(pushed_there) == [found[job_id] for job_id in pushed_there]
    assert all(explained)
    with pytest.raises(ShardMoving):
        both.here.operate(both.worker).waiting.delete(pushed_there)


def test_a_push_with_a_key_waits_for_a_shard_that_receives(both: Both, server: Server, clock: ManualClock) -> None:
    """It is tried for as long as in an outage; jobs of other shards are written, and the error says which are not."""
    both.worker.push_many(jobs_of(IDS))
    moving = HandMade(server, both.there, both.name)
    moving.begin(8)
    moving.close(1)
    homes = [both.here.core.queues[both.name].shards.home_of(job_id).index for job_id in IDS]
    began_at = clock.monotonic()

    with pytest.raises(PushInterrupted) as interrupted:
        both.worker.push_many([{"id": job_id, "payload": "new", "key": job_id} for job_id in IDS])

    moved = [position for position, home in enumerate(homes) if home == 1]
    assert moved
    assert moved == sorted((*interrupted.value.not_written, *interrupted.value.unknown))
    assert [position for position in range(len(IDS)) if position not in moved] == interrupted.value.written
    assert clock.monotonic() - began_at >= both.here.config.redis_retry_for


def test_a_job_that_has_moved_since_the_shards_were_read_is_found(both: Both, clock: ManualClock) -> None:
    """A reader goes by what it knew when it began: an id that is not where it was is looked up where it will be."""
    both.worker.push_many(jobs_of(IDS))
    resharding = both.there.operate(both.mover).resharding()
    resharding.begin(8)
    clock.advance(KNOWN_FOR)
    queue = both.here.operate(both.worker)

    assert not resharding.go_on(lambda *_: None, lambda: 0.0 if resharding.layout.moved else 1.0)

    assert sorted(IDS) == sorted(job.id for job in queue.waiting.fetch(IDS))


def test_an_id_that_two_shards_have_is_found_once(
    both: Both, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a move has brought to its new shard leaves the old one a call later."""
    both.worker.push_many(jobs_of(["job-1", "job-2"]))
    receive, found = MovingShards.receive, list[FoundIds]()

    def receive_and_look(shards: MovingShards, brought: Sequence[tuple[ShardRef, Sequence[Load]]]) -> None:
        receive(shards, brought)
        found.append(both.there.operate.find("job"))

    both.there.operate(both.mover).resharding().begin(8)
    clock.advance(KNOWN_FOR)
    monkeypatch.setattr(MovingShards, "receive", receive_and_look)
    both.there.operate(both.mover).reshard(to=8)

    assert found
    for at_once in found:
        assert [(one, ("waiting",)) for one in ("job-1", "job-2")] == [(one.id, one.places) for one in at_once.similar]


def test_an_operators_order_passes_over_shards_that_have_moved(both: Both, server: Server) -> None:
    """A pause of a queue of which a group has moved reaches all shards that have ids."""
    moving = HandMade(server, both.there, both.name)
    moving.begin(8)
    both.worker.push_many(jobs_of(IDS))
    both.here.drain()
    moving.close(0)
    moving.open(0)
    both.here.drain()

    both.here.operate(both.worker).pause()

    paused = [shard.index for shard in both.here.operate(both.worker).shards() if shard.is_paused]
    assert [1, 2, 3, *range(4, 12)] == paused


def test_a_sweep_that_began_before_is_to_be_begun_again(both: Both, server: Server) -> None:
    """A bulk action goes through lists of shards: where ids move between them meanwhile, it refuses to go on."""
    moving = HandMade(server, both.there, both.name)
    both.worker.push_many(jobs_of(IDS))
    moving.begin(8)
    both.here.core.queues.agreed(both.worker).doubt()
    runner = both.here.operate(both.worker).runner
    action = prepare(runner, "run_now")
    for group in (0, 1):
        moving.close(group)
        moving.open(group)
    both.here.core.queues.agreed(both.worker).doubt()

    with pytest.raises(ValueError, match="begin it again"):
        next(steps(both.here.operate(both.worker).runner, action))


def test_a_task_is_not_complete_while_its_items_move(both: Both) -> None:
    """A process that knows the old shards alone finds no open item there, and does not take that for the end."""
    task = both.here.task("enrol")
    with task:
        task.push_many(both.worker, jobs_of(IDS))
    both.there.operate(both.mover).reshard(to=6)

    states = [task.progress().state]
    progress = task.progress()
    both.here.drain()

    assert ["closed", "closed"] == [*states, progress.state]
    assert {"enqueued": len(IDS)} == {name: count for name, count in progress.counts.items() if count}
    assert "completed" == task.progress().state


def test_entries_fire_from_the_shard_that_their_id_has_moved_to(both: Both, clock: ManualClock) -> None:
    """No planned time fires twice or is lost, and a process that knows the old shards goes on with the new ones."""
    at_noon(clock)
    both.here.every(MINUTE, both.worker, id="nightly", name="sync")
    both.here.schedules.tick()
    at_noon(clock, MINUTE)
    first = fired(both.here.schedules.tick())
    both.there.operate(both.mover).reshard(to=6)
    at_noon(clock, 2 * MINUTE)
    while_learning = fired(both.here.schedules.tick())
    again = fired(both.here.schedules.tick())

    assert [("sync", MINUTE, "pushed")] == first
    assert [("sync", 2 * MINUTE, "merged")] == [*while_learning, *again]

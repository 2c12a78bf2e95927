"""Drains of a queue that is being resharded: nobody has jobs that are on their way, and all go over to new shards."""

from collections.abc import Callable
from functools import partial

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.engine.loop import Loop
from lowkiq_lambda.local.daemon import Daemon
from lowkiq_lambda.local.splitters import DefaultSplitter
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.moving import HandMade
from tests.kit.servers import Server
from tests.kit.waiting import eventually
from tests.kit.workers import declare, jobs_of

IDS = [str(number) for number in range(20)]
"""Ids of all shards."""


@pytest.fixture
def move(make_app: MakeApp, server: Server, queue_name: str) -> Callable[[], HandMade]:
    """Takes a move of the queue into the test's hands, which has shards by then."""
    return lambda: HandMade(server, make_app(), queue_name)


def done(app: Lowkiq) -> int:
    """How many ids a drain performs."""
    return app.drain()["done"]


def test_a_push_and_a_drain_that_knew_the_old_shards_go_over(
    make_app: MakeApp, queue_name: str, move: Callable[[], HandMade]
) -> None:
    """Who knows the old shards pushes to the new ones and drains them, and never notices."""
    app = make_app()
    worker = declare(app, queue_name, Notes(), shards_count=5)
    worker.push_many(jobs_of(IDS[:1]))
    app.drain()
    move().through(12)

    pushed = worker.push_many(jobs_of(IDS))

    assert len(IDS) == done(app)
    assert {(queue_name, 12)} == {
        (shard.queue_name, shard.shards_count) for shard in app.core.queues.agreed(worker).shards
    }
    assert all(0 <= one.shard < 12 for one in pushed)


def test_a_shard_that_receives_its_jobs_takes_pushes_and_gives_none_away(
    make_app: MakeApp, queue_name: str, move: Callable[[], HandMade]
) -> None:
    """Until all jobs of a group have come, drains find nothing to do in it, and no error; other groups go on."""
    app = make_app()
    worker = declare(app, queue_name, Notes(), shards_count=4)
    worker.push_many(jobs_of(IDS))
    assert len(IDS) == done(app)
    moving = move()
    moving.begin(8)
    moving.close(1)

    pushed = worker.push_many(jobs_of(IDS))
    waiting = {one.id for one in pushed if one.shard >= 4}
    before = done(app)
    moving.open(1)

    assert {4 + index for index in (1, 5)} == {one.shard for one in pushed if one.id in waiting}
    assert (len(IDS) - len(waiting), len(waiting)) == (before, done(app))


def test_a_drain_goes_over_while_it_runs(make_app: MakeApp, queue_name: str, move: Callable[[], HandMade]) -> None:
    """A drain that waits for more finds what is pushed to shards that came into being meanwhile."""
    app, other = make_app(), make_app()
    declare(app, queue_name, notes := Notes(), shards_count=5)
    pusher = declare(other, queue_name, Notes(), shards_count=5)
    waits: list[Loop] = []

    def wait(drain: Loop, budget: Budget) -> bool:
        waits.append(drain)
        if len(waits) == 1:
            move().through(3)
            pusher.push_many(jobs_of(IDS))
            drain.probe(budget)
        return len(waits) == 1

    drain = Loop(app.core.drains.drainer, app.core.drains.drainer.shards).run(
        Budget(app.core.drains.drainer.clock, 60.0), wait
    )

    assert (2, "empty") == (len(waits), drain.reason)
    assert sorted(IDS) == sorted(job_id for ids in notes.ids for job_id in ids)
    assert [3, 3, 3] == [shard.shards_count for shard in drain.shards]


@pytest.mark.parametrize("build_splitter", [None, DefaultSplitter], ids=["shared", "dealt"])
def test_a_daemon_deals_its_shards_anew(
    make_app: MakeApp,
    queue_name: str,
    move: Callable[[], HandMade],
    build_splitter: Callable[[], DefaultSplitter] | None,
) -> None:
    """A daemon that began with the old shards performs what is pushed while the queue moves, and after it, twice."""
    app = make_app(threads_per_node=2, poll_interval=0.1, build_splitter=build_splitter)
    other = make_app()
    declare(app, queue_name, notes := Notes(), shards_count=2)
    pusher = declare(other, queue_name, Notes(), shards_count=2)

    def has_performed(count: int) -> bool:
        return sum(map(len, notes.ids)) == count

    with Daemon(app):
        pusher.push_many(jobs_of(IDS))
        eventually(partial(has_performed, len(IDS)))
        for turn, count in enumerate((4, 3), 1):
            moving = move()
            moving.begin(count)
            # All of them before the push: by hand nothing is carried that lies in a shard when it is closed.
            for group in range(moving.layout.groups):
                moving.close(group)
            pusher.push_many(jobs_of(IDS))
            for group in range(moving.layout.groups):
                moving.open(group)
            moving.end()
            eventually(partial(has_performed, len(IDS) * (turn + 1)))

        # It hears of the end of a move when it looks at a shard that was closed.
        eventually(lambda: [3, 3, 3] == [shard.shards_count for shard in app.core.drains.drainer.shards()])

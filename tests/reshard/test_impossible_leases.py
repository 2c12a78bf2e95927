"""A move meets what no lease can be: it waits no longer than for one that can."""

from collections.abc import Callable

import pytest

from lowkiq_lambda import Lowkiq, Worker
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.moving import DeathTerms, MovingShards
from lowkiq_lambda.testing import ManualClock
from tests.kit.deaths import Mortal
from tests.kit.handlers import Notes
from tests.kit.servers import Server
from tests.kit.workers import declare
from tests.reshard.held import held

TTL = 30.0
LONGEST = TTL + 1.0
AHEAD = 3_600.0
NOW = ManualClock().time()
"""Where nobody moves the clock."""


@pytest.fixture
def worker(app: Lowkiq, queue_name: str) -> type[Worker]:
    """A queue with a job in its only shard."""
    made = declare(app, queue_name, Notes(), shards_count=1)
    made.push_many([{"id": "a", "payload": 1}])
    return made


@pytest.fixture
def mover(app: Lowkiq, worker: type[Worker]) -> MovingShards:
    """The calls of a move of that queue, which has told its shard to be still."""
    shards = MovingShards(app.core.backend, app.operate(worker).resharding().begin(2).epoch, "min", 1.0)
    shards.tell([shard_of(worker)], TTL)
    return shards


def shard_of(worker: type[Worker]) -> ShardRef:
    """The shard."""
    return ShardRef(worker.queue_name, 1, 0)


def test_a_move_gets_past_a_lease_of_a_clock_that_was_ahead(
    app: Lowkiq, worker: type[Worker], clock: ManualClock, server: Server
) -> None:
    """E-7, E-94: the holder died, and the server's clock was set right: its lease ends within a TTL and a second."""
    clock.advance(AHEAD)
    mortal = Mortal(app)
    mortal.die_before("settle")
    mortal.drain()
    clock.set_wall(clock.time() - AHEAD)
    began = clock.time()
    # It ends by the server's own clock, which does not move with the test's.
    server.admin.delete(shard_of(worker).key("lease"))

    app.operate(worker).reshard(to=2)

    assert TTL <= clock.time() - began < LONGEST + 1.0
    state = held(server.admin, [ShardRef(worker.queue_name, 2, index) for index in range(2)])
    assert ({}, ["a"]) == (state["flight"], [*state["waiting"]])


def tell(shards: MovingShards, shard: ShardRef) -> float | None:
    """For how long the shard is held, as a mover asks it that waits until nobody has it."""
    (told,) = shards.tell([shard], TTL)
    return told.held


def close(shards: MovingShards, shard: ShardRef) -> float | None:
    """None where a mover cannot close it yet."""
    return 0.0 if shards.seal(shard, DeathTerms((100, 10_000_000, 1_000.0), b"crashed", "skip")) else None


@pytest.mark.parametrize("call", [tell, close])
@pytest.mark.parametrize("where", ["until", "lease"])
def test_each_call_of_a_move_cuts_a_lease_that_ends_too_late(
    mover: MovingShards,
    worker: type[Worker],
    server: Server,
    call: Callable[[MovingShards, ShardRef], float | None],
    where: str,
) -> None:
    """In the hash and in the key, as whoever acquires it does: a mover that was frozen may come to close it first."""
    shard = shard_of(worker)
    server.admin.hset(shard.key("meta"), "ttl", TTL)
    if where == "until":
        server.admin.hset(shard.key("meta"), "until", NOW + AHEAD)
    else:
        server.admin.set(shard.key("lease"), "1", px=int(1_000 * AHEAD))

    assert (LONGEST if call is tell else None) == call(mover, shard)

    assert float(server.admin.hget(shard.key("meta"), "until") or 0) <= NOW + LONGEST
    assert server.admin.pttl(shard.key("lease")) <= 1_000 * LONGEST


def test_a_move_gives_a_lease_without_an_end_one(mover: MovingShards, worker: type[Worker], server: Server) -> None:
    """P7: it is damage, which the mover has put right, as whoever acquires the shard does."""
    shard = shard_of(worker)
    server.admin.set(shard.key("lease"), "1")

    (told,) = mover.tell([shard], TTL)

    assert 0.0 < told.held <= TTL
    assert 0 < server.admin.pttl(shard.key("lease")) <= 1_000 * TTL

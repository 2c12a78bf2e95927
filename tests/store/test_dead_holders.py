"""The lease of a process that is known to be gone: released at once, and nobody else's."""

from contextlib import closing

import pytest

from lowkiq_lambda.base.errors import LeaseLost
from lowkiq_lambda.store.shard.dead_holders import release_dead
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.notifications import Notifications
from tests.kit.claimed_shard import ClaimedShard
from tests.kit.holders import RETRY_FOR, Holder
from tests.kit.servers import Server

MAX_CRASHES = 3


def released(shard: ClaimedShard, holder: Holder, *others: ShardRef) -> list[ShardRef]:
    """The shards that were free after the holder's process was known to be gone."""
    return release_dead(shard.holders.backend, [*others, shard.shard], holder.nonce_prefix, RETRY_FOR)


def test_p2_what_a_dead_process_held_is_free_at_once_and_comes_again_alone(shard: ClaimedShard) -> None:
    """P2: no time has to pass; what was in flight is suspect, as after any death, and nothing is lost."""
    shard.push("a", "b")
    dead, _ = shard.take()
    before = shard.clock.time()

    assert [shard.shard] == released(shard, dead)
    found = []
    for _ in range(2):
        holder, claim = shard.take()
        found.append([*claim])
        holder.write([], "release")
    assert [["a"], ["b"]] == found
    assert before == shard.clock.time()


def test_p1_nothing_that_is_still_under_way_of_a_dead_process_is_applied(shard: ClaimedShard) -> None:
    """P1: its calls that reach the server late are refused, whether somebody has come since or not."""
    shard.push("a")
    dead, _ = shard.take()
    released(shard, dead)
    before = shard.now()

    for late in (dead.write, lambda: dead.renew(RETRY_FOR), lambda: dead.abandon(1.0, RETRY_FOR)):
        with pytest.raises(LeaseLost):
            late()
    assert before == shard.now()


def test_p1_a_lease_that_somebody_else_took_meanwhile_is_not_released(shard: ClaimedShard) -> None:
    """P1: the nonce tells whose it is; that the first holder died late changes nothing for the second."""
    shard.push("a")
    dead, _ = shard.take()
    shard.die()
    second, _ = shard.take()
    before = shard.now()

    assert [] == released(shard, dead)
    assert before == shard.now()
    second.write([], "release")
    assert 1 == shard.now()["counters"]["done"]


def test_p6_the_death_is_a_counted_crash_of_who_ran_alone(shard: ClaimedShard) -> None:
    """P6: the third one kills it, however soon the shard was free; its neighbour is done."""
    shard.push("a", "b")
    dead, _ = shard.take()
    released(shard, dead)
    for _ in range(MAX_CRASHES):
        dead, claim = shard.take()
        assert ["a"] == [*claim]
        dead.start("a", RETRY_FOR)
        released(shard, dead)
    holder, claim = shard.take()
    holder.write([], "release")

    assert ["b"] == [*claim]
    assert ["a"] == [*shard.now()["morgue"]]
    counters = {name: count for name, count in shard.now()["counters"].items() if count}
    assert {"done": 1, "dead": 1, "recovered": 2 + MAX_CRASHES} == counters


def test_what_was_abandoned_or_evicted_before_the_death_stays_without_suspicion(shard: ClaimedShard) -> None:
    """Its lease need not be waited for either, and what it gave up itself is no fault of its ids."""
    for give_up in (
        lambda holder: holder.abandon(0.8, RETRY_FOR),
        lambda holder: shard.operator.in_flight.evict_holder(shard.shard, holder.token),
    ):
        shard.push("a", "b")
        dead, _ = shard.take()
        give_up(dead)

        assert [shard.shard] == released(shard, dead)
        holder, claim = shard.take()
        assert ["a", "b"] == [*claim]
        holder.write([], "release")
    assert ["evicted", "stopped"] == [recovered.how for recovered in shard.operator.recovered()]


def test_a_death_that_is_told_twice_or_after_the_release_changes_nothing(shard: ClaimedShard) -> None:
    """Told again, as after a lost reply, it is answered again; a holder that had let go by itself left nothing."""
    shard.push("a")
    dead, _ = shard.take()
    assert [shard.shard] == released(shard, dead)
    before = shard.now()
    assert [shard.shard] == released(shard, dead)
    assert before == shard.now()

    holder, _ = shard.take()
    holder.write([], "release")
    before = shard.now()
    assert [] == released(shard, holder)
    assert before == shard.now()


def test_shards_that_cannot_be_asked_keep_no_other_from_being_released(shard: ClaimedShard, server: Server) -> None:
    """One that was closed since, and one that never was, are passed over."""
    closed, unknown = ShardRef(shard.shard.queue_name, 3, 0), ShardRef(shard.shard.queue_name, 3, 1)
    server.admin.hset(closed.key("meta"), mapping={"closed": 1, "generation": 1})
    shard.push("a")
    dead, _ = shard.take()

    assert [shard.shard] == released(shard, dead, closed, unknown)


def test_who_waits_for_the_shard_is_notified(shard: ClaimedShard, server: Server) -> None:
    """Another daemon need not find out by its next poll."""
    shard.push("a")
    dead, _ = shard.take()
    with closing(Notifications(server.url, [shard.shard], timeout=RETRY_FOR)) as notifications:
        notifications.open()
        released(shard, dead)
        assert [shard.shard] == notifications.receive(RETRY_FOR).shards


def test_without_a_prefix_nothing_is_released(shard: ClaimedShard) -> None:
    """Every nonce begins with nothing, so it would be the leases of all."""
    with pytest.raises(ValueError, match="the leases of all"):
        release_dead(shard.holders.backend, [shard.shard], "", RETRY_FOR)

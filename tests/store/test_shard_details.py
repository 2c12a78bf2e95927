"""Shards as their holders have them, and what decides when an id runs."""

import math
from typing import Any

from lowkiq_lambda.views.jobs import JobExplanation
from lowkiq_lambda.views.shards import ShardDetails
from tests.kit.desk import Desk, MakeDesk
from tests.kit.handlers import LATER
from tests.kit.holders import Holders
from tests.kit.servers import Server


def explain(desk: Desk, job_id: object) -> JobExplanation:
    """Of an id, as of now."""
    return desk.queue.explain(job_id)


def only(desk: Desk) -> ShardDetails:
    """The only shard."""
    (shard,) = desk.queue.shards()
    return shard


def test_a_shard_that_nobody_has_seen(desk: Desk) -> None:
    """There is nothing to tell of it."""
    assert ShardDetails(index=0, at=desk.clock.time()) == only(desk)
    assert not only(desk).is_held
    assert JobExplanation(shard=only(desk)) == explain(desk, "unknown")


def test_a_shard_tells_who_holds_it(desk: Desk) -> None:
    """While the handler runs: owner, since when, lease and token; and who had it, afterwards."""
    seen: list[Any] = []
    desk.push([{"id": 1}, {"id": 2, "delay": 60}])
    desk.handler.meanwhile = lambda: seen.extend([only(desk), explain(desk, 1), explain(desk, 2)])
    desk.drain()

    now = desk.clock.time()
    shard, first, second = seen
    assert shard.is_held
    assert (1, 1) == (shard.in_flight, shard.length)
    assert (now, desk.app.config.lease_ttl) == (shard.acquired_at, shard.lease_left)
    assert shard.owner
    assert shard.token > 0
    assert (True, None, False, now + 60) == (first.in_flight, first.due_at, second.in_flight, second.due_at)
    after = only(desk)
    assert (shard.token, shard.owner, 0, False) == (after.token, after.owner, after.in_flight, after.is_held)


def test_an_id_knows_what_comes_before_it(desk: Desk) -> None:
    """Ids that are due before it; its failures, and when it is due."""
    desk.fail([{"id": "bad"}])
    desk.push([{"id": "a"}])
    desk.clock.advance(1)
    desk.push([{"id": "b"}, {"id": "c", "delay": 5}])

    now = desk.clock.time()
    assert [0, 1, 2, 3] == [explain(desk, job_id).ahead for job_id in ("a", "b", "c", "bad")]
    bad = explain(desk, "bad")
    assert (0.0, now - 1 + LATER) == (bad.retry_count, bad.due_at)
    desk.queue.waiting.kill(everything=True)
    assert now == explain(desk, "bad").dead_since
    assert explain(desk, "bad").due_at is None


def test_suspects_come_first(make_desk: MakeDesk, server: Server) -> None:
    """What a dead holder left comes before all else, one by one, and is told so."""
    desk = make_desk()
    (shard,) = desk.app.core.queues.agreed(desk.worker).shards
    desk.push([{"id": "a"}, {"id": "b"}, {"id": "c", "delay": 500}])
    with Holders(server.url, shard, ttl=30, clock=desk.clock, new_time=desk.app.core.connections.new_time) as holders:
        holders.new().take()
        died = explain(desk, "a")
        assert died.in_flight
        desk.clock.advance(31)
        server.admin.delete(shard.key("lease"))
        assert only(desk).lost_its_holder
        holder = holders.new()
        holder.take()
        assert ["b"] == [job_id for job_id in ("a", "b") if not explain(desk, job_id).in_flight]
        assert 0 == explain(desk, "b").suspects_ahead
        desk.push([{"id": "earlier", "due_at": desk.clock.time() - 100}])
        assert (None, 1) == (explain(desk, "earlier").suspects_ahead, explain(desk, "earlier").ahead)
        holder.abandon(7.0, 1.0)
        assert only(desk).gave_up
        assert 7.0 == only(desk).lease_left


def test_pauses_and_wakes_are_told(desk: Desk) -> None:
    """As long as they count."""
    (shard,) = desk.app.core.queues.agreed(desk.worker).shards
    now = desk.clock.time()
    desk.admin.hset(shard.key("meta"), mapping={"paused_until": now + 60, "woken_until": now + 5, "woken_token": ""})
    assert (now + 60, now + 5, True) == (only(desk).paused_until, only(desk).woken_until, only(desk).is_paused)
    desk.admin.hset(shard.key("meta"), mapping={"paused_until": "inf", "woken_token": "3"})
    assert (math.inf, None) == (only(desk).paused_until, only(desk).woken_until)
    desk.admin.hset(shard.key("meta"), mapping={"closed": 1, "least_version": 1})
    assert (True, 1) == (explain(desk, 1).closed, explain(desk, 1).least_version)


def test_all_shards_are_told_in_their_order(make_desk: MakeDesk) -> None:
    """And their sums are those of the metrics."""
    desk = make_desk({"shards_count": 7})
    desk.fail([{"id": number} for number in range(20)])
    desk.push([{"id": number} for number in range(20, 60)])

    shards, metrics = desk.queue.shards(), desk.app.operate.metrics()[desk.worker.queue_name]
    assert [*range(7)] == [shard.index for shard in shards]
    assert [(one.length, one.retries, one.in_flight, one.lag) for one in metrics.shards] == [
        (one.length, one.retries, one.in_flight, one.lag) for one in shards
    ]

"""Clocks that jump, and caches that evict: neither opens a lease to others, or reverses an id."""

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
import redis

from lowkiq_lambda import Batch, Config, Lowkiq, Worker
from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.errors import LeaseLost
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.store.shard.lease_replies import Acquired, NotAcquired
from lowkiq_lambda.store.shard.nodes import GivenTime
from lowkiq_lambda.testing import ManualClock
from tests.chaos.scenario import Scenario
from tests.chaos.steps import numbered, shard_of, state_of
from tests.kit.apps import close_app
from tests.kit.holders import Holders
from tests.kit.servers import MakeServer, Server
from tests.kit.waiting import eventually

TTL = 30.0


class ByHand:
    """An app whose time, the server's too, is a clock that the test moves; `during` runs in each batch."""

    def __init__(self, url: str, queue_name: str) -> None:
        self.clock = ManualClock()
        self.app = Lowkiq(Config(redis_url=url, lease_ttl=TTL), clock=self.clock)
        self.batches: list[dict[str, list[object]]] = []
        self.during: Callable[[Batch], object] = lambda _batch: None
        fields = {"queue_name": queue_name, "shards_count": 1, "perform": lambda _self, batch: self._perform(batch)}
        self.worker: type[Worker] = self.app.worker(type("ByHand", (Worker,), fields))

    def visit(self) -> str:
        """Why a visit ended."""
        return self.app.core.drains.drainer.visit(
            self.app.core.drains.drainer.shards()[0], Budget(self.clock, 100 * TTL)
        ).reason

    def learn_the_pace(self) -> None:
        """Perform something quick, after which several batches are claimed at once."""
        self.worker.push_many(numbered("z", 1))
        self.visit()
        self.batches.clear()

    def _perform(self, batch: Batch) -> None:
        self.batches.append(dict(batch))
        self.during(batch)


@pytest.fixture
def by_hand(server: Server, queue_name: str) -> Iterator[ByHand]:
    """Such an app."""
    made = ByHand(server.url, queue_name)
    yield made
    close_app(made.app)


def test_a_wall_clock_that_jumps_ends_the_trust_in_a_lease(by_hand: ByHand) -> None:
    """E-6, E-8: the process was frozen and its monotonic clock with it: it starts nothing more, and gives back."""
    stopping: list[bool] = []

    def freeze(batch: Batch) -> None:
        stopping.append(batch.stopping)
        by_hand.clock.set_wall(by_hand.clock.time() + TTL)
        stopping.append(batch.stopping)

    by_hand.learn_the_pace()
    by_hand.during = freeze
    by_hand.worker.push_many(numbered("ab", 1, 2))
    assert "lease lost" == by_hand.visit()
    assert [False, True] == stopping
    assert [{"a": [1, 2]}] == by_hand.batches
    by_hand.during = lambda _batch: None
    assert "empty" == by_hand.visit()
    assert {"b": [1, 2]} == by_hand.batches[-1]


def test_a_monotonic_clock_that_runs_on_ends_the_trust_until_the_server_confirms(by_hand: ByHand) -> None:
    """E-6: the wall clock was put back, yet the handler is told to stop; a write that is accepted proves the lease."""
    stopping: list[bool] = []

    def oversleep(batch: Batch) -> None:
        wall = by_hand.clock.time()
        stopping.append(batch.stopping)
        by_hand.clock.advance(TTL)
        by_hand.clock.set_wall(wall)
        stopping.append(batch.stopping)

    by_hand.learn_the_pace()
    by_hand.during = oversleep
    by_hand.worker.push_many(numbered("ab", 1))
    assert "empty" == by_hand.visit()
    assert [False, True, False, True] == stopping


def test_p3_a_server_clock_that_jumps_back_reverses_nothing(by_hand: ByHand) -> None:
    """E-7: after a failover to a server whose clock is behind, payloads keep their order, and new ids their turn."""
    clock = by_hand.clock
    by_hand.worker.push_many([{"id": "a", "payload": 1}])
    clock.set_wall(clock.time() - 3_600.0)
    by_hand.worker.push_many([{"id": "a", "payload": 2}, {"id": "b", "payload": 1}])
    assert "empty" == by_hand.visit()
    assert [{"b": [1]}] == by_hand.batches
    clock.advance(3_600.0)
    assert "empty" == by_hand.visit()
    assert {"a": [1, 2]} == by_hand.batches[-1]


def test_what_a_faster_clock_queued_as_due_is_not_too_early_for_a_slower_one(by_hand: ByHand) -> None:
    """E-6: a probe finds it, and so does a drain; what waits on purpose goes on waiting."""
    clock, worker = by_hand.clock, by_hand.worker
    (shard,) = by_hand.app.core.drains.drainer.shards()
    worker.push_many([{"id": "a", "payload": 1}, {"id": "b", "payload": 1, "delay": 0.01}])
    clock.set_wall(clock.time() - 0.1)
    (state,) = by_hand.app.core.drains.drainer.probe([shard])
    assert (True, None, 0.0) == (state.has_work, state.obstacle, state.lag)
    assert "empty" == by_hand.visit()
    assert [{"a": [1]}] == by_hand.batches
    worker.push_many([{"id": "c", "payload": 1}])
    clock.set_wall(clock.time() - 0.2)
    assert not by_hand.app.core.drains.drainer.probe([shard])[0].has_work
    assert "empty" == by_hand.visit()
    assert [] == by_hand.batches[1:]


class Asking(GivenTime):
    """What a process knows that measures the time for each call."""

    def now(self) -> float | None:
        """Nothing, before it has asked."""
        return None


def test_a_measured_time_does_not_take_back_what_was_due(server: Server, scenario: Scenario) -> None:
    """E-6: whoever measures is half a round trip off, too: all that a faster clock queued as due is due to the end."""
    fast, slow = ManualClock(), ManualClock()
    slow.set_wall(fast.time() - 0.05)
    with (
        Holders(server.url, shard_of(scenario), clock=fast, new_time=GivenTime) as ahead,
        Holders(server.url, shard_of(scenario), clock=slow, new_time=Asking, ttl=TTL) as behind,
    ):
        ahead.push([{"id": job_id} for job_id in range(25)])
        behind.push([{"id": "later", "delay": 1.0}])
        holder = behind.new()
        granted = holder.take()
        assert isinstance(granted, Acquired)
        claims = [granted.claim, holder.write(), holder.write(), holder.write()]

    assert [10, 10, 5, 0] == [len(claim.deliveries) if claim else 0 for claim in claims]


class Mistaken(GivenTime):
    """What a process believes that measured a node's time wrongly: it is ten seconds behind."""

    measured = 0

    def now(self) -> float | None:
        """What it believes, until it measures again."""
        at = super().now()
        return at if at is None or self.measured > 1 else at - 10.0

    def observe(self, seconds: float, asked_at: float) -> float:
        """The right time."""
        self.measured += 1
        return super().observe(seconds, asked_at)


def test_who_is_behind_the_shard_measures_again(server: Server, scenario: Scenario) -> None:
    """E-6: a time that lies behind what the shard has seen is refused; the caller asks the server, and goes on."""
    clock, times = ManualClock(), list[Mistaken]()

    def mistaken(given: Clock) -> Mistaken:
        times.append(Mistaken(given))
        return times[-1]

    with (
        Holders(server.url, shard_of(scenario), clock=clock, new_time=GivenTime) as right,
        Holders(server.url, shard_of(scenario), clock=clock, new_time=mistaken) as wrong,
    ):
        right.push(numbered("a", 1))
        first, second = right.new(), wrong.new()
        first.take()
        first.give_back("a")
        assert isinstance(second.take(), Acquired)
        assert state_of(server, scenario)["lease"][1] == clock.time() + right.ttl
    assert 1 == times[0].measured


def test_an_evicted_lease_key_opens_the_shard_to_nobody(make_server: MakeServer, scenario: Scenario) -> None:
    """A full cache drops keys with a time to live first: the shard stays its holder's until the lease's time."""
    server = make_server(maxmemory="8mb", maxmemory_policy="volatile-lru")
    clock = ManualClock()
    with Holders(server.url, shard_of(scenario), clock=clock, new_time=GivenTime, ttl=TTL) as holders:
        holders.push(numbered("a", 1))
        holder, other = holders.new(), holders.new()
        holder.take()
        ballast = b"x" * 100_000
        for number in range(200):
            with suppress(redis.RedisError):
                server.admin.set(f"ballast {number}", ballast)
        assert not server.admin.exists(shard_of(scenario).key("lease"))
        clock.advance(TTL - 0.001)
        refused = other.take()
        assert isinstance(refused, NotAcquired)
        assert "held" == refused.reason
        assert pytest.approx(refused.until) == clock.time() + 0.001
        clock.advance(0.001)
        assert isinstance(other.take(), Acquired)
        assert holder.token < other.token


def test_p4_a_server_clock_that_jumps_forward_leaves_the_first_of_two_holders_no_write(
    server: Server, scenario: Scenario
) -> None:
    """P4: the lease ends early, key and `until`; who still trusts it is refused, and has the smaller token."""
    before, after = ManualClock(), ManualClock()
    after.advance(TTL + 1.0)
    with (
        Holders(server.url, shard_of(scenario), clock=before, new_time=GivenTime, ttl=TTL) as early,
        Holders(server.url, shard_of(scenario), clock=after, new_time=GivenTime, ttl=TTL) as late,
    ):
        early.push(numbered("a", 1))
        first, second = early.new(), late.new()
        assert isinstance(first.take(), Acquired)
        # The server keeps the end of a time to live by its own clock.
        server.admin.delete(shard_of(scenario).key("lease"))
        taken = second.take()
        assert isinstance(taken, Acquired)
        assert taken.claim is not None
        with pytest.raises(LeaseLost):
            first.renew(TTL)
        with pytest.raises(LeaseLost):
            first.write()
        assert ["a"] == [delivery.id for delivery in taken.claim.deliveries]
        assert first.token < second.token
        assert None is second.write()


def test_p1_a_replica_that_is_promoted_keeps_the_lease_to_the_same_end(
    make_server: MakeServer, scenario: Scenario
) -> None:
    """P1: a time to live travels as the time of its end: a replica that hears of it late lets it end no later."""
    primary = make_server(settings=["repl-diskless-sync-delay 0"])
    replica = make_server(settings=[f"replicaof {primary.host} {primary.port}"])
    eventually(lambda: replica.admin.info("replication").get("master_link_status") == "up")
    key = shard_of(scenario).key("lease")
    with (
        Holders(primary.url, shard_of(scenario), ttl=TTL) as before,
        Holders(replica.url, shard_of(scenario), ttl=TTL) as after,
    ):
        before.push(numbered("a", 1))
        with replica.frozen():
            assert isinstance(before.new().take(), Acquired)
            eventually(lambda: int(primary.admin.pttl(key)) < (TTL - 0.5) * 1_000)
        eventually(lambda: replica.admin.exists(key))
        assert int(replica.admin.pttl(key)) <= (TTL - 0.5) * 1_000
        primary.kill()
        replica.admin.replicaof("NO", "ONE")
        refused = after.new().take()
        assert isinstance(refused, NotAcquired)
        assert "held" == refused.reason

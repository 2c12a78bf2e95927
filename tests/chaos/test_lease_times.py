"""Calls that come late, and server clocks that were ahead: what a lease's times, and those of pushes, make of them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.lease_replies import Acquired, NotAcquired
from lowkiq_lambda.store.shard.nodes import GivenTime
from lowkiq_lambda.store.shard.scripts import Argument
from lowkiq_lambda.store.shard.session import Next
from lowkiq_lambda.store.shard.state import probe
from lowkiq_lambda.store.shard.waking import wake
from lowkiq_lambda.testing import ManualClock
from tests.chaos.scenario import Scenario
from tests.chaos.steps import numbered, shard_of, state_of
from tests.kit.holders import RETRY_FOR, Holder, Holders
from tests.kit.servers import Server

TTL = 30.0
LATE = 0.9
"""Seconds by which a call may be late that the shard still takes: less than what it would refuse."""
Call = Callable[[Holder], object]


@contextmanager
def at(server: Server, scenario: Scenario, clock: ManualClock, ttl: float = TTL) -> Iterator[Holders]:
    """Holders whose time, the server's too, is that clock's."""
    with Holders(server.url, shard_of(scenario), clock=clock, new_time=GivenTime, ttl=ttl) as holders:
        yield holders


def renew(holder: Holder) -> None:
    """Renew."""
    holder.renew(RETRY_FOR)


def settle(holder: Holder) -> None:
    """Settle a part."""
    holder.write([("a", "done")], "part")


def start(holder: Holder) -> None:
    """Note that a handler starts."""
    holder.start("a", RETRY_FOR)


@pytest.mark.parametrize("late", [renew, settle, start])
def test_p1_a_call_that_comes_late_shortens_no_lease(server: Server, scenario: Scenario, late: Call) -> None:
    """What was sent before the last renewal, and comes after it, leaves the lease as long as its holder believes."""
    clock, behind = ManualClock(), ManualClock()
    key = shard_of(scenario).key("lease")
    with at(server, scenario, clock) as holders, at(server, scenario, behind) as slow:
        holders.push(numbered("ab", 1))
        holder = holders.new()
        granted = holder.take()
        assert isinstance(granted, Acquired)
        clock.advance(5)
        behind.advance(5)
        holder.renew(RETRY_FOR)
        behind.set_wall(clock.time() - LATE)
        server.admin.pexpire(key, 1_000)
        holder._backend = slow.backend
        late(holder)

        assert clock.time() + TTL == state_of(server, scenario)["lease"][1]
        assert TTL - 5 < server.admin.pttl(key) / 1_000 <= TTL
        # A full cache drops keys with a time to live.
        server.admin.delete(key)
        clock.advance(TTL - LATE / 2)
        refused = holders.new().take()
        assert isinstance(refused, NotAcquired)
        assert "held" == refused.reason


def test_a_lease_from_a_clock_that_was_ahead_lasts_no_longer_than_others(server: Server, scenario: Scenario) -> None:
    """E-7: a holder died while the server's clock was an hour ahead: its shard is free a lease's time from now."""
    clock = ManualClock()
    shard = shard_of(scenario)
    with at(server, scenario, clock) as holders:
        holders.push(numbered("a", 1))
        holders.new().take()
        clock.set_wall(clock.time() - 3_600)
        server.admin.pexpire(shard.key("lease"), 3_600_000)
        (state,) = probe(holders.backend, [shard], 0.0)
        assert state.has_work
        assert [shard] == wake(holders.backend, [shard], 1.0, RETRY_FOR).shards

        refused = holders.new().take()
        assert isinstance(refused, NotAcquired)
        assert refused.until is not None
        assert clock.time() + TTL <= refused.until <= clock.time() + TTL + 1
        assert TTL - 5 < server.admin.pttl(shard.key("lease")) / 1_000 <= TTL + 1
        (state,) = probe(holders.backend, [shard], 0.0)
        assert ("held", refused.until) == (state.obstacle, state.next_at)
        clock.set_wall(refused.until)
        server.admin.delete(shard.key("lease"))
        assert isinstance(holders.new().take(), Acquired)


def test_p1_a_holder_that_lives_keeps_its_shard_when_the_clock_is_put_back(server: Server, scenario: Scenario) -> None:
    """E-7: whoever finds that its lease lasts too long leaves it for as long as it is believed in; renewals count."""
    clock = ManualClock()
    with at(server, scenario, clock) as holders:
        holders.push(numbered("a", 1))
        holder, other = holders.new(), holders.new()
        holder.take()
        clock.set_wall(clock.time() - 3_600)
        other.take()
        clock.advance(TTL - 1)
        holder.renew(RETRY_FOR)
        clock.advance(TTL - 0.001)
        server.admin.delete(shard_of(scenario).key("lease"))
        refused = other.take()
        assert isinstance(refused, NotAcquired)
        assert "held" == refused.reason


@pytest.mark.parametrize("ahead", [0.0, 3_600.0])
def test_push_tokens_are_forgotten_after_two_minutes_whatever_the_clock_did(
    server: Server, scenario: Scenario, ahead: float
) -> None:
    """Also after the server's clock was ahead for a while: what is kept of pushes does not grow without bound."""
    clock, shard = ManualClock(), shard_of(scenario)
    with at(server, scenario, clock) as holders:
        clock.advance(ahead)
        holders.push(numbered("a", 1))
        clock.set_wall(clock.time() - ahead)
        kept = []
        for number in range(12):
            holders.push(numbered("a", number))
            clock.advance(20)
            kept.append(sum(server.admin.hlen(shard.key(f"pushes_{turn}")) for turn in ("even", "odd")))
    assert max(kept) <= 8
    assert 4 <= kept[-1]


def test_push_tokens_last_a_minute_whatever_the_clock_did(server: Server, scenario: Scenario) -> None:
    """A push that is sent again within a minute is known, also where the server's clock was put back in between."""
    clock, shard = ManualClock(), shard_of(scenario)
    clock.set_wall(60.0 * 30_000_000 + 59.0)
    with at(server, scenario, clock) as holders:
        holders.push(numbered("a", 1))
        tokens = {field for turn in ("even", "odd") for field in server.admin.hkeys(shard.key(f"pushes_{turn}"))}
        clock.set_wall(clock.time() - 3_600)
        for _ in range(6):
            holders.push(numbered("b", 1))
            clock.advance(10)
        kept = {field for turn in ("even", "odd") for field in server.admin.hkeys(shard.key(f"pushes_{turn}"))}
    assert tokens <= kept


def checkpoint(holder: Holder) -> None:
    """Save how far a job has come."""
    holder.checkpoint("a", b"1", clears=False, retry_for=RETRY_FOR)


def release(holder: Holder) -> None:
    """Settle all as done, and let go."""
    holder.write([], "release")


def go_on(holder: Holder) -> None:
    """Settle all as done, and claim what waits."""
    holder.write([], "claim")


@contextmanager
def noting(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[Argument]]]:
    """The calls that are sent inside the block."""
    sent: list[list[Argument]] = []
    execute = Backend._execute

    def note(backend: Backend, command: Sequence[Argument]) -> object:
        # A server that does not know a script yet is sent it whole behind.
        if command[0] == "EVALSHA":
            sent.append([*command])
        return execute(backend, command)

    with monkeypatch.context() as patch:
        patch.setattr(Backend, "_execute", note)
        yield sent


@pytest.mark.parametrize("age", [0.5, 3.0], ids=["unmeasured", "measured"])
@pytest.mark.parametrize("late", [release, go_on, settle, start, checkpoint, renew])
def test_p2_a_copy_of_a_session_that_comes_behind_another_one_settles_nothing(
    server: Server, scenario: Scenario, monkeypatch: pytest.MonkeyPatch, late: Call, age: float
) -> None:
    """The late `acquire` takes the shard under its old nonce, and nobody runs its claim: no late call ends that."""
    clock = ManualClock()
    with at(server, scenario, clock) as holders:
        holders.push(numbered("a", 1))
        first = holders.new()
        with noting(monkeypatch) as sent:
            first.take()
            late(first)
        acquiring, *others = sent
        # A session that asked for the server's time first: any age does.
        measured = 3 + int(str(acquiring[2])) + 2
        acquiring[measured] = "1" if age > 1 else ""
        first.write([], "release")
        holders.push(numbered("b", 1))
        second = holders.new()
        second.take()
        second.write([], "release")
        holders.push([{"id": job_id, "due_at": clock.time() - 100} for job_id in "acd"])
        clock.advance(age)

        taken = holders.backend._execute(acquiring)
        answers = [holders.backend._execute(command) for command in others]
        clock.advance(TTL + 1)
        server.admin.delete(shard_of(scenario).key("lease"))
        recovered = holders.new().take()

        assert b"OK" == taken[0]
        assert [[b"LOST"]] * len(others) == answers
        assert isinstance(recovered, Acquired)
        assert 3 == recovered.recovered
        assert recovered.claim is not None
        assert {"a", "c", "d"} >= {delivery.id for delivery in recovered.claim.deliveries}


@pytest.mark.parametrize("late", [go_on, settle, start, checkpoint])
def test_p2_a_copy_of_an_acquire_that_its_session_has_left_behind_hands_out_nothing(
    server: Server, scenario: Scenario, monkeypatch: pytest.MonkeyPatch, late: Call
) -> None:
    """Its holder had an answer to a later attempt, and has gone on: the copy changes nothing, and names no job."""
    clock = ManualClock()
    with at(server, scenario, clock) as holders:
        holders.push(numbered("a", 1))
        holder = holders.new()
        with noting(monkeypatch) as sent:
            holder.take()
        (acquiring,) = sent
        holders.push(numbered("b", 1))
        late(holder)
        before = state_of(server, scenario)

        assert [b"STALE"] == holders.backend._execute(acquiring)
        assert before == state_of(server, scenario)


def test_p1_an_acquire_that_is_sent_again_behind_the_end_of_its_lease_hands_out_nothing(
    server: Server, scenario: Scenario
) -> None:
    """Its answer was lost, and its lease has ended: what is in flight is for whoever takes it next."""
    clock, lease = ManualClock(), shard_of(scenario).key("lease")
    with at(server, scenario, clock) as holders:
        holders.push(numbered("a", 1))
        first, second = holders.new(), holders.new()
        first.take()
        clock.advance(TTL + 1)
        server.admin.delete(lease)
        again = first.take()
        recovered = second.take()

        assert isinstance(again, Acquired)
        assert again.claim is None
        assert isinstance(recovered, Acquired)
        assert 1 == recovered.recovered
        assert recovered.claim is not None


@pytest.mark.unverified("a field is damaged by hand")
@pytest.mark.parametrize("damaged", ["payloads", "done"])
@pytest.mark.parametrize("next_step", ["release", "claim"])
def test_a_settlement_that_met_damage_half_way_lets_go_when_it_is_made_again(
    server: Server, scenario: Scenario, next_step: Next, damaged: str
) -> None:
    """It has taken the ids out of flight, and failed before its end: its repeat does what was left, and lets go."""
    clock, shard = ManualClock(), shard_of(scenario)
    with at(server, scenario, clock) as holders:
        holders.push(numbered("a", 1))
        holder = holders.new()
        holder.take()
        server.admin.hset(shard.key("meta"), damaged, "damaged")
        assert holder.write([], next_step) is None
        assert {} == state_of(server, scenario)["flight"]
        assert not server.admin.exists(shard.key("lease"))
        holders.push(numbered("b", 1))
        assert isinstance(holders.new().take(), Acquired)

"""P6: only the death of a process is held against what ran alone in it, not an outage that it lived through."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier

import msgspec
import pytest

from lowkiq_lambda.base.errors import BackendUnavailable
from lowkiq_lambda.engine.survivors import Survivors
from lowkiq_lambda.store.shard.keys import JOURNALLING
from lowkiq_lambda.store.shard.lease_replies import Acquired
from lowkiq_lambda.store.shard.nodes import GivenTime
from lowkiq_lambda.store.shard.scripts import script
from lowkiq_lambda.store.shard.session import LeaseSession
from lowkiq_lambda.testing import ManualClock
from tests.chaos.scenario import Scenario
from tests.chaos.steps import (
    child,
    disturbed,
    drain_to_the_end,
    end_lease,
    journal_of,
    kill_at,
    numbered,
    opened,
    push,
    shard_of,
    state_of,
    visit,
    wait_until_free,
)
from tests.kit.holders import RETRY_FOR, Holder, Holders
from tests.kit.servers import FaultProxy, Server
from tests.kit.waiting import eventually

TTL = 30.0


def crashes_of(server: Server, scenario: Scenario) -> int:
    """How many holders of the lone id were taken for dead."""
    return len(state_of(server, scenario)["trouble"].get("a", {}).get("crashes", []))


def drop_replies(server: Server, proxy: FaultProxy, name: str) -> None:
    """From now on nobody hears what became of the calls of a script."""
    code = script(name, (JOURNALLING,))
    server.admin.script_load(code.source)
    proxy.drop_reply_after(code.sha.encode(), times=10_000)


def make_suspect(scenario: Scenario) -> None:
    """Push an id whose process dies while it runs, so that it runs alone next."""
    push(scenario, numbered("a", 1))
    kill_at(scenario, "in handler")


def unheard_of(holders: Holders) -> Holder:
    """A holder whose lone suspect was about to run when it was heard last."""
    holders.push(numbered("a", 1))
    holder = holders.new()
    holder.take()
    holder.write([("a", "suspected", 0)])
    holder.start("a", RETRY_FOR)
    return holder


def test_p6_outages_that_outlast_the_lease_kill_nobody(
    server: Server, scenario: Scenario, fault_proxy: FaultProxy
) -> None:
    """E-43: a handler that ended well five times, and could not be settled four times, is done and not dead."""
    push(scenario, numbered("a", 1))

    def go_away() -> None:
        fault_proxy.refuse()
        fault_proxy.cut()

    away = msgspec.structs.replace(scenario, url=fault_proxy.url, redis_timeout=1.0)
    with disturbed(away, (1, 2, 3, 4), go_away) as app:
        for _ in range(20):
            # On a slow machine a visit may end before its handler begins.
            with suppress(BackendUnavailable):
                if visit(app).reason == "empty":
                    break
            fault_proxy.accept()
            wait_until_free(server, scenario)
    end = state_of(server, scenario)
    assert ({}, {}, 1) == (end["morgue"], end["trouble"], end["counters"]["done"])
    assert [[1]] * 5 == journal_of(scenario).performed()["a"]


def test_p6_a_start_whose_reply_is_lost_is_no_counted_crash(
    server: Server, scenario: Scenario, fault_proxy: FaultProxy
) -> None:
    """Nobody knows whether it was noted, and no handler ran: the next holder takes nobody for dead."""
    make_suspect(scenario)
    with opened(msgspec.structs.replace(scenario, url=fault_proxy.url)) as app:
        for _ in range(4):
            drop_replies(server, fault_proxy, "start")
            with pytest.raises(BackendUnavailable):
                visit(app)
            fault_proxy.heal()
            assert state_of(server, scenario)["trouble"]["a"]["at_risk"]
        assert {"recovered": 1, "done": 1} == app.drain()
    end = state_of(server, scenario)
    assert ({}, {}) == (end["morgue"], end["trouble"])
    assert [[1]] == journal_of(scenario).performed()["a"]


def test_p6_a_look_is_enough_to_be_heard(server: Server, scenario: Scenario, fault_proxy: FaultProxy) -> None:
    """Who could not settle says that it lives when Redis answers again, and frees the shard, before it comes back."""
    make_suspect(scenario)
    behind = msgspec.structs.replace(scenario, url=fault_proxy.url, lease_ttl=2.0)
    with opened(behind) as app, opened(scenario) as other:
        drop_replies(server, fault_proxy, "start")
        with pytest.raises(BackendUnavailable):
            visit(app)
        fault_proxy.heal()
        app.core.drains.drainer.probe(app.core.drains.drainer.shards())
        assert "empty" == visit(other).reason
    assert [False, True] == [line.repeated for line in journal_of(scenario).lines("begin")]
    assert {} == state_of(server, scenario)["trouble"]


def test_p6_a_counted_crash_is_taken_back_when_the_holder_turns_out_to_live(server: Server, scenario: Scenario) -> None:
    """Frozen for longer than its lease it is taken for dead by the next holder; thawed it says that it lives."""
    make_suspect(scenario)
    with child(scenario, stops=["in handler"]) as frozen:
        frozen.wait_at("in handler")
        frozen.freeze()
        wait_until_free(server, scenario)
        with child(scenario, stops=["in handler"]) as successor:
            successor.wait_at("in handler")
            assert 1 == crashes_of(server, scenario)
            frozen.go_on()
            frozen.thaw()
            assert "lease lost" == frozen.ended().reason
            assert 0 == crashes_of(server, scenario)
            assert state_of(server, scenario)["trouble"]["a"]["at_risk"]
            successor.kill()
    end_lease(scenario)
    with child(scenario, stops=["in handler"]) as third:
        third.wait_at("in handler")
        assert 1 == crashes_of(server, scenario)
        third.kill()
    end_lease(scenario)
    end = drain_to_the_end(server, scenario)
    assert ({}, {}) == (end["morgue"], end["trouble"])


def test_p6_a_settling_whose_reply_is_lost_leaves_nothing(
    server: Server, scenario: Scenario, fault_proxy: FaultProxy
) -> None:
    """It was written, and the next claim made, before the server stood still: that claim was only interrupted."""
    make_suspect(scenario)
    push(scenario, numbered("b", 1))
    with opened(msgspec.structs.replace(scenario, url=fault_proxy.url)) as app:
        drop_replies(server, fault_proxy, "settle")
        with pytest.raises(BackendUnavailable):
            visit(app)
        fault_proxy.heal()
        assert {"b"} == state_of(server, scenario)["flight"].keys()
        assert {"recovered": 1, "done": 1} == app.drain()
    end = state_of(server, scenario)
    assert ({}, {}, {}) == (end["morgue"], end["trouble"], end["suspects"])
    assert 2 == end["counters"]["done"]


def test_p6_a_chunk_that_was_halved_for_no_death_is_whole_again(server: Server, scenario: Scenario) -> None:
    """An id with several payloads is not searched for a culprit where no process has died."""
    clock = ManualClock()
    with Holders(server.url, shard_of(scenario), clock=clock, new_time=GivenTime, ttl=TTL) as holders:
        holders.push(numbered("a", *range(8)))
        former = [holders.new() for _ in range(3)]
        former[0].take()
        claim = former[0].write([("a", "suspected", 0)])
        assert claim is not None
        former[0].start("a", RETRY_FOR)
        sizes = [len(claim.deliveries[0].entries)]
        for holder in former[1:]:
            clock.advance(TTL)
            server.admin.delete(shard_of(scenario).key("lease"))
            granted = holder.take()
            assert isinstance(granted, Acquired)
            assert granted.claim is not None
            sizes.append(len(granted.claim.deliveries[0].entries))
            holder.start("a", RETRY_FOR)
        for holder in (former[1], former[0]):
            holder.survive(RETRY_FOR)
        claim = former[2].write([("a", "returned")])
        assert claim is not None
        sizes.append(len(claim.deliveries[0].entries))
    assert [8, 4, 2, 8] == sizes


def test_p6_what_dies_says_what_is_known(server: Server, scenario: Scenario) -> None:
    """E-50: after three processes of which nothing more was heard the payload is dead; its error says just that."""
    make_suspect(scenario)
    for number in range(3):
        with child(scenario, stops=["in handler"]) as holder:
            holder.wait_at("in handler")
            assert number == crashes_of(server, scenario)
            holder.kill()
        end_lease(scenario)
    with opened(scenario) as app:
        eventually(lambda: visit(app).reason == "empty")
    error = state_of(server, scenario)["morgue"]["a"][1]
    assert error.startswith("crashed: the process died")


def test_p6_two_threads_may_tell_that_one_holder_lives(
    server: Server, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6: after an outage one thread looks while another drains; both say so, and neither fails by the other."""
    both = Barrier(2)
    survive = LeaseSession.survive

    def survive_together(session: LeaseSession, retry_for: float) -> None:
        both.wait(30.0)
        survive(session, retry_for)

    monkeypatch.setattr(LeaseSession, "survive", survive_together)
    with Holders(server.url, shard_of(scenario)) as holders, ThreadPoolExecutor(2) as threads:
        survivors, session = Survivors(), unheard_of(holders)
        with pytest.raises(BackendUnavailable), survivors.watch(session):
            raise BackendUnavailable
        told = [threads.submit(survivors.tell, [session.shard]) for _ in range(2)]
        assert [[session.shard]] * 2 == [one.result(30.0) for one in told]
        assert [] == survivors.tell([session.shard])


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("a hook raised")])
def test_p6_a_holder_lives_whatever_ended_its_visit(server: Server, scenario: Scenario, error: BaseException) -> None:
    """P6: an error that is not one of Redis ends the visit, not the process, which says so all the same."""
    with Holders(server.url, shard_of(scenario)) as holders:
        survivors, session = Survivors(), unheard_of(holders)
        with pytest.raises(type(error)), survivors.watch(session):
            raise error
        assert [session.shard] == survivors.tell([session.shard])
    assert state_of(server, scenario)["trouble"]["a"]["at_risk"]

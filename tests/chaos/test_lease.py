"""Who holds a shard, for how long, and what becomes of a holder that lost it: E-1 to E-12, P1, P4."""

import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from lowkiq_lambda.base.errors import LeaseLost
from lowkiq_lambda.store.shard.lease_replies import Acquired, NotAcquired
from lowkiq_lambda.store.shard.scripts import script
from tests.chaos.scenario import Scenario
from tests.chaos.steps import (
    child,
    drain_to_the_end,
    journal_of,
    numbered,
    opened,
    push,
    shard_of,
    state_of,
    visit,
    wait_until_free,
)
from tests.kit.holders import RETRY_FOR, Holder, Holders
from tests.kit.servers import FaultProxy, MakeServer, Server
from tests.kit.waiting import eventually

RENEW = script("renew").sha.encode()


def test_p1_nobody_else_gets_a_shard_while_its_holder_lives(server: Server, scenario: Scenario) -> None:
    """E-2: a handler that blocks for longer than the TTL keeps its lease, as another thread renews it."""
    push(scenario, numbered("a", 1))
    with child(scenario, stops=["in handler"]) as holder, opened(scenario) as app:
        holder.wait_at("in handler")
        first_until = state_of(server, scenario)["lease"][1]
        eventually(lambda: state_of(server, scenario)["lease"][1] > first_until + 2 * scenario.lease_ttl)
        assert "held" == visit(app).reason
        holder.go_on()
        assert "empty" == holder.ended().reason
    assert {"a": [[1]]} == journal_of(scenario).performed()


def test_p4_a_holder_that_was_frozen_is_refused_after_a_takeover(server: Server, scenario: Scenario) -> None:
    """E-1, E-8: it sees that it should stop, none of its writes counts, and it says that its lease is lost."""
    scenario = msgspec.structs.replace(scenario, handler="heed")
    push(scenario, numbered("a", 1))
    with child(scenario, stops=["in handler"]) as frozen:
        frozen.wait_at("in handler")
        frozen.freeze()
        push(scenario, numbered("a", 2))
        wait_until_free(server, scenario)
        with child(scenario, stops=["in handler"]) as successor:
            successor.wait_at("in handler")
            before = state_of(server, scenario)
            frozen.go_on()
            frozen.thaw()
            assert "lease lost" == frozen.ended().reason
            after = state_of(server, scenario)
            successor.kill()
    for unchanged in ("flight", "waiting", "counters", "trouble"):
        assert before[unchanged] == after[unchanged]
    assert before["lease"][0] == after["lease"][0]
    assert [True] == [line.stopping for line in journal_of(scenario).lines("end")]
    first, second = (line.token for line in journal_of(scenario).lines("begin"))
    assert first < second
    end = drain_to_the_end(server, msgspec.structs.replace(scenario, handler="note"))
    # The successor was killed with both in its hands: they come one by one.
    assert [[1], [2]] == journal_of(scenario).performed()["a"][-2:]
    assert {} == end["morgue"] == end["trouble"]


def test_p1_p4_an_evicted_holder_keeps_others_off_but_writes_nothing(server: Server, scenario: Scenario) -> None:
    """It goes on running in its own process: nobody gets the shard before its lease has ended by itself."""
    push(scenario, numbered("a", 1))
    with child(scenario, stops=["in handler"]) as holder, opened(scenario) as app:
        holder.wait_at("in handler")
        actions, token = app.operate(app.workers[0]), state_of(server, scenario)["lease"][0]
        assert actions.in_flight.evict_holder(shard_of(scenario), token)
        until = state_of(server, scenario)["lease"][1]
        assert "held" == visit(app).reason
        holder.go_on()
        assert "lease lost" == holder.ended().reason
        assert until == state_of(server, scenario)["lease"][1]
        wait_until_free(server, scenario)
        assert "empty" == visit(app).reason
    assert {"a": [[1], [1]]} == journal_of(scenario).performed()
    end = state_of(server, scenario)
    assert (1, {}) == (end["counters"]["done"], end["trouble"])


def test_p4_a_thawed_holder_hands_nothing_more_to_its_handler(server: Server, scenario: Scenario) -> None:
    """E-8: thawed before anybody took over, it starts none of what it still has, and gives it back."""
    push(scenario, numbered("ab", 1))
    with child(scenario, stops=["after acquire"]) as frozen:
        frozen.wait_at("after acquire")
        frozen.freeze()
        wait_until_free(server, scenario)
        frozen.go_on()
        frozen.thaw()
        assert "lease lost" == frozen.ended().reason
    assert {} == journal_of(scenario).performed("begin")
    assert 2 == drain_to_the_end(server, scenario)["counters"]["done"]


def test_of_many_that_come_at_once_one_gets_the_shard(server: Server, scenario: Scenario) -> None:
    """E-9: exactly one lease is given, and the others are told to leave the shard alone."""
    push(scenario, numbered("ab", 1))
    with Holders(server.url, shard_of(scenario), ttl=30.0) as holders, ThreadPoolExecutor(8) as pool:
        barrier = threading.Barrier(8)

        def take(_: int) -> tuple[Holder, Acquired | NotAcquired]:
            holder = holders.new()
            barrier.wait()
            return holder, holder.take()

        for _ in range(10):
            answers = list(pool.map(take, range(8)))
            (winner,) = (holder for holder, answer in answers if isinstance(answer, Acquired))
            assert {"held"} == {answer.reason for _, answer in answers if isinstance(answer, NotAcquired)}
            winner.give_back("ab")


def test_a_drain_leaves_held_shards_and_goes_to_the_next(server: Server, scenario: Scenario) -> None:
    """E-9: what another holder has is passed over at once, without a busy loop."""
    scenario = msgspec.structs.replace(scenario, shards_count=3)
    push(scenario, numbered("abcdefghij", 1))
    with Holders(server.url, shard_of(scenario, 1), ttl=30.0) as holders, opened(scenario) as app:
        granted = holders.new().take()
        assert isinstance(granted, Acquired)
        assert granted.claim is not None
        held = {delivery.id for delivery in granted.claim.deliveries}
        assert {"done": 10 - len(held)} == app.drain(10.0)
    assert set("abcdefghij") - held == journal_of(scenario).performed().keys()


def test_release_by_one_who_lost_the_shard_changes_nothing(server: Server, scenario: Scenario) -> None:
    """E-4, E-5, U-9: the release compares; the next holder's token is larger, even in the same process."""
    push(scenario, numbered("ab", 1))
    with Holders(server.url, shard_of(scenario)) as holders:
        first, second = holders.new(), holders.new()
        first.take()
        wait_until_free(server, scenario)
        assert isinstance(second.take(), Acquired)
        assert 0 < first.token < second.token
        before = state_of(server, scenario)
        with pytest.raises(LeaseLost):
            first.write([], "release")
        with pytest.raises(LeaseLost):
            first.renew(RETRY_FOR)
        with pytest.raises(LeaseLost):
            first.abandon(0.1, RETRY_FOR)
        assert before == state_of(server, scenario)


def test_a_lost_reply_of_a_renewal_costs_nothing(server: Server, scenario: Scenario, fault_proxy: FaultProxy) -> None:
    """E-3: whether it counted is not known, so the next one tells; the batch goes on undisturbed."""
    push(scenario, numbered("a", 1))
    fault_proxy.drop_reply_after(RENEW, times=2)
    behind = msgspec.structs.replace(scenario, url=fault_proxy.url)
    with child(behind, stops=["in handler"]) as holder:
        holder.wait_at("in handler")
        fault_proxy.wait_dropped()
        fault_proxy.wait_dropped()
        until = state_of(server, scenario)["lease"][1]
        eventually(lambda: state_of(server, scenario)["lease"][1] > until + scenario.lease_ttl)
        holder.go_on()
        assert "empty" == holder.ended().reason
    assert {"a": [[1]]} == journal_of(scenario).performed()


def test_tokens_grow_after_all_data_is_gone(make_server: MakeServer, scenario: Scenario) -> None:
    """E-11, E-49: with the counter lost the server's clock carries the tokens on; the former holder is refused."""
    server = make_server()
    scenario = msgspec.structs.replace(scenario, url=server.url)
    with Holders(server.url, shard_of(scenario)) as holders:
        push(scenario, numbered("a", 1))
        first, second = holders.new(), holders.new()
        first.take()
        server.admin.flushall()
        with pytest.raises(LeaseLost):
            first.write([], "release")
        push(scenario, numbered("a", 1))
        second.take()
        assert 0 < first.token < second.token

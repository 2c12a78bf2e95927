"""A process with many calls at once that is killed, or frozen for longer than its lease lasts."""

import msgspec
import pytest

from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.base.errors import BackendError
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.store.shard.keys import JOURNALLING
from lowkiq_lambda.store.shard.scripts import script
from tests.chaos.scenario import Scenario
from tests.chaos.steps import (
    child,
    disturbed,
    drain_to_the_end,
    journal_of,
    kill_at,
    numbered,
    push,
    shard_of,
    state_of,
    wait_until_free,
)
from tests.kit.servers import FaultProxy, Server
from tests.kit.waiting import eventually

IDS = [f"id{number}" for number in range(60)]


@pytest.fixture
def many(scenario: Scenario) -> Scenario:
    """Twenty calls at once."""
    return msgspec.structs.replace(scenario, concurrency=20, batch_size=1, settle_interval=0.01)


@pytest.mark.parametrize(
    "point",
    ["after acquire", "in handler 15", "before settle 1", "after settle 1", "before settle 2", "after settle 2"],
)
def test_a_kill_repeats_nothing_that_was_written(server: Server, many: Scenario, point: str) -> None:
    """P1, P2: after a death around any call nothing is missing, and at most what was in flight runs again, alone."""
    push(many, numbered(IDS, 1))
    kill_at(many, point)
    in_flight = set(state_of(server, many)["flight"])
    push(many, numbered(IDS[:5], 2))
    end = drain_to_the_end(server, many)
    begun, performed = journal_of(many).performed("begin"), journal_of(many).performed()

    assert {*IDS} == {*performed}
    assert {job_id for job_id in IDS if sum(1 in numbers for numbers in begun[job_id]) > 1} <= in_flight
    assert [2] * 5 == [performed[job_id][-1][-1] for job_id in IDS[:5]]
    assert {} == end["morgue"] == end["trouble"] == end["suspects"]


@pytest.mark.parametrize("is_async", [False, True])
def test_p1_a_holder_that_was_frozen_with_twenty_calls_writes_nothing(
    server: Server, many: Scenario, *, is_async: bool
) -> None:
    """E-8: thawed after a takeover, all of its calls are told to stop, and it ends when the last of them has."""
    many = msgspec.structs.replace(many, handler="heed", is_async=is_async)
    push(many, numbered(IDS[:20], 1))
    with child(many) as frozen:
        eventually(lambda: len(journal_of(many).lines("begin")) == 20, timeout=30.0)
        frozen.freeze()
        wait_until_free(server, many)
        end = drain_to_the_end(server, msgspec.structs.replace(many, handler="note"))
        frozen.thaw()
        ended = frozen.ended()

    assert ("lease lost", {}) == (ended.reason, ended.counts)
    assert 20 == end["counters"]["done"]
    assert [True] * 20 == [line.stopping for line in journal_of(many).lines("end")[-20:]]


def test_a_kill_while_a_cancelled_call_cleans_up_loses_nothing(server: Server, many: Scenario) -> None:
    """P2: time was over, twenty calls were cancelled, and the process died before any of them had cleaned up."""
    many = msgspec.structs.replace(many, handler="heed", is_async=True, is_hard=True, visit_seconds=1.0)
    push(many, numbered(IDS[:20], 1))
    kill_at(many, "in cleanup")
    in_flight = len(state_of(server, many)["flight"])
    end = drain_to_the_end(server, msgspec.structs.replace(many, handler="note"))

    assert {*IDS[:20]} == {*journal_of(many).performed()}
    assert (20, in_flight) == (end["counters"]["done"], end["counters"]["recovered"])
    assert in_flight > 0
    assert {} == end["morgue"] == end["trouble"] == end["suspects"]


def test_p6_a_kill_of_suspects_together_kills_nobody(server: Server, many: Scenario) -> None:
    """P2, P6: what a death left runs once more side by side; after another death then, each runs alone, to its end."""
    waiting = msgspec.structs.replace(many, handler="heed")
    push(many, numbered(IDS[:20], 1))
    for kind in (b"DUE", b"TOGETHER"):
        kill_at(waiting, "in handler 20")
        assert kind == server.admin.hget(shard_of(many).key("meta"), "claim_kind")
        assert {*IDS[:20]} == state_of(server, many)["flight"].keys()
    push(many, numbered(IDS[20:], 1))
    end = drain_to_the_end(server, many)
    performed = journal_of(many).lines("end")

    assert sorted(IDS[:20]) == sorted(line.id for line in performed[:20])
    assert {*IDS} == {line.id for line in performed}
    assert {} == end["morgue"] == end["trouble"] == end["suspects"]


def test_p1_a_lost_reply_of_a_claim_beside_starts_nothing_twice(many: Scenario, fault_proxy: FaultProxy) -> None:
    """P1: the repeat is answered with all that is in flight, of which most runs already."""
    many = msgspec.structs.replace(many, url=fault_proxy.url)
    push(many, numbered(IDS, 1))
    with disturbed(
        many, [10], lambda: fault_proxy.drop_reply_after(script("settle", (JOURNALLING,)).sha.encode())
    ) as app:
        assert {"done": 60} == app.drain()
    fault_proxy.wait_dropped()

    assert {1} == {len(runs) for runs in journal_of(many).performed("begin").values()}


def test_p2_a_claim_beside_whose_reply_never_comes_loses_nothing(
    server: Server, many: Scenario, fault_proxy: FaultProxy
) -> None:
    """P2: Redis is away from then on: the visit ends with its lease, and the next one performs what was in flight."""
    away = msgspec.structs.replace(many, url=fault_proxy.url, redis_timeout=1.0)
    push(many, numbered(IDS, 1))

    def leave() -> None:
        fault_proxy.drop_reply_after(script("settle", (JOURNALLING,)).sha.encode(), times=1_000)

    with disturbed(away, [10], leave) as app, pytest.raises(BackendError):
        app.core.drains.drainer.visit(app.core.drains.drainer.shards()[0], Budget(SystemClock(), 30.0))
    fault_proxy.wait_dropped()
    end = drain_to_the_end(server, many)

    assert {*IDS} == {*journal_of(many).performed()}
    assert {} == end["morgue"] == end["trouble"] == end["suspects"]

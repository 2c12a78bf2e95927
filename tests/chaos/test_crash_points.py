"""A process killed between any two steps: E-13 to E-22."""

import msgspec
import pytest

from tests.chaos.scenario import Scenario
from tests.chaos.steps import (
    child,
    drain_to_the_end,
    end_lease,
    is_empty,
    journal_of,
    kill_at,
    numbered,
    opened,
    push,
    state_of,
    visit,
)
from tests.kit.order import is_in_order
from tests.kit.servers import Server

# The first claim is a, b and c, the second is d and e: the third settling finds nothing more.
FIRST, SECOND = "abc", "de"
POINTS = {
    "before acquire": "",
    "after acquire": "",
    "in handler": FIRST,
    "after handler": FIRST,
    "before settle": FIRST,
    "after settle": "",
    "in handler 2": SECOND,
    "before settle 2": SECOND,
    "after settle 2": "",
}
"""Each arrow, and the ids whose handlers had begun and whose outcome was not written."""

KILLS = {"in handler": 0, "before start": 0, "after start": 0, "after handler": 1, "before settle": 2}
"""Where one holder after the other dies, and the crashes that were counted before."""


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_any_point_loses_nothing_and_reverses_nothing(server: Server, scenario: Scenario, point: str) -> None:
    """E-14, E-15, E-16, E-21, E-22: all is performed in order, only what was under way twice, none is to blame."""
    # In one call, at one time: another process may take the server's time for a little earlier.
    push(scenario, [*numbered(FIRST, 1, 2), *numbered(SECOND, 1, 2)])
    kill_at(scenario, point, jobs=numbered("ad", 3))
    end = drain_to_the_end(server, scenario)
    journal = journal_of(scenario)
    begun, performed = journal.performed("begin"), journal.performed()
    for job_id in FIRST + SECOND:
        payloads = {1, 2, 3} if job_id in "ad" else {1, 2}
        assert payloads == {number for numbers in performed[job_id] for number in numbers}
        assert is_in_order(begun[job_id]), begun[job_id]
        deliveries = sum(1 for numbers in begun[job_id] if 1 in numbers)
        assert deliveries == (2 if job_id in POINTS[point] else 1)
    assert {} == end["morgue"] == end["trouble"] == end["suspects"]
    assert 0 == end["counters"]["retried"] == end["counters"]["dead"]


def test_a_repeated_delivery_says_so(server: Server, scenario: Scenario) -> None:
    """E-15: the handler can tell that an earlier delivery may have run."""
    push(scenario, numbered("a", 1))
    kill_at(scenario, "before settle")
    drain_to_the_end(server, scenario)
    assert [False, True] == [line.repeated for line in journal_of(scenario).lines("begin")]


def test_a_push_killed_before_its_write_is_absent(server: Server, scenario: Scenario) -> None:
    """E-13: what was not written is not there."""
    with child(scenario, "push", stops=["before push"], jobs=numbered("ab", 1)) as producer:
        producer.wait_at("before push")
        producer.kill()
    assert is_empty(state_of(server, scenario))


def test_a_push_killed_after_its_write_is_present_once(server: Server, scenario: Scenario) -> None:
    """E-13: what was written is there once, also after the producer started anew and pushed it again."""
    jobs = numbered("ab", 1, 2)
    with child(scenario, "push", stops=["after push"], jobs=jobs) as producer:
        producer.wait_at("after push")
        producer.kill()
    assert ["1", "2"] == [entry.payload for entry in state_of(server, scenario)["waiting"]["a"][0]]
    push(scenario, jobs)
    assert ["1", "2"] == [entry.payload for entry in state_of(server, scenario)["waiting"]["a"][0]]
    drain_to_the_end(server, scenario)
    assert {"a": [[1, 2]], "b": [[1, 2]]} == journal_of(scenario).performed()


@pytest.mark.parametrize(("point", "told"), [("before settle", "ab"), ("after settle", ""), ("in hook", "ab")])
def test_a_kill_around_a_death_leaves_each_job_in_one_place(
    server: Server, scenario: Scenario, point: str, told: str
) -> None:
    """E-17, E-18, LB-6: a job is in the queue or in the morgue, never in both, and the hook is not called twice."""
    scenario = msgspec.structs.replace(scenario, handler="fail", max_retry_count=0)
    push(scenario, numbered("ab", 1))
    with child(scenario, stops=[point]) as holder:
        holder.wait_at(point)
        state = state_of(server, scenario)
        assert set() == state["morgue"].keys() & (state["waiting"].keys() | state["flight"].keys())
        holder.kill()
    end_lease(scenario)
    end = drain_to_the_end(server, scenario)
    assert ["a", "b"] == sorted(end["morgue"])
    assert 2 == end["counters"]["dead"]
    # What a process did not come to tell is told by nobody: the hook is called at most once for a death.
    assert told == "".join(sorted(line.id for line in journal_of(scenario).lines("exhausted")))


def test_a_recovery_can_be_killed_too(server: Server, scenario: Scenario) -> None:
    """E-20: who recovered and died before it ran anything changed nothing, and nobody is blamed for it."""
    push(scenario, numbered("ab", 1, 2))
    kill_at(scenario, "in handler")
    for point in ("after acquire", "before start", "after acquire", "before start"):
        kill_at(scenario, point)
    assert {job_id: {"abandoned": True, "group": ""} for job_id in "ab"} == state_of(server, scenario)["trouble"]
    end = drain_to_the_end(server, scenario)
    assert {"a": [[1, 2]], "b": [[1, 2]]} == journal_of(scenario).performed()
    assert {} == end["morgue"] == end["trouble"]


def test_two_recoveries_at_once_are_one(server: Server, scenario: Scenario) -> None:
    """E-20: of two that come to recover at the same moment one gets the shard, and the other leaves it alone."""
    push(scenario, numbered("ab", 1, 2))
    kill_at(scenario, "in handler")
    with child(scenario, stops=["before acquire"]) as one, child(scenario, stops=["before acquire"]) as other:
        for recovering in (one, other):
            recovering.wait_at("before acquire")
        for recovering in (one, other):
            recovering.go_on()
        reasons = sorted(recovering.ended().reason for recovering in (one, other))
    assert reasons in (["empty", "held"], ["empty", "empty"])
    assert {"a": [[1, 2]], "b": [[1, 2]]} == journal_of(scenario).performed()
    assert 2 == state_of(server, scenario)["counters"]["recovered"]


def test_only_a_kill_after_the_start_of_a_lone_suspect_is_a_counted_crash(server: Server, scenario: Scenario) -> None:
    """E-50: a kill in company or before the start counts nothing; the third crash that counts kills the payload."""
    push(scenario, numbered("a", 1))
    for point, crashes in KILLS.items():
        with child(scenario, stops=[point]) as holder:
            holder.wait_at(point)
            assert crashes == len(state_of(server, scenario)["trouble"].get("a", {}).get("crashes", []))
            holder.kill()
        end_lease(scenario)
    end = drain_to_the_end(server, scenario)
    assert "crashed" in end["morgue"]["a"][1]
    assert ["a"] == [line.id for line in journal_of(scenario).lines("exhausted")]
    assert {} == end["trouble"] == end["suspects"]


def test_nobody_else_gets_the_shard_of_a_killed_holder_before_its_time(server: Server, scenario: Scenario) -> None:
    """E-22: the shard waits for one TTL, and not for ever."""
    push(scenario, numbered("a", 1))
    with child(scenario, stops=["before settle"]) as holder, opened(scenario) as app:
        holder.wait_at("before settle")
        holder.kill()
        refused = visit(app)
        assert "held" == refused.reason
        assert refused.until is not None
        assert 0 < refused.until - app.core.backend.now(app.core.drains.drainer.shards()[0]) <= scenario.lease_ttl
    drain_to_the_end(server, scenario)

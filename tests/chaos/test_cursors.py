"""Jobs with a cursor whose process is killed between any two steps, or whose saves are lost on the way."""

from collections.abc import Iterator
from itertools import groupby, pairwise

import msgspec
import pytest

from lowkiq_lambda.store.shard.scripts import script
from tests.chaos.scenario import Scenario
from tests.chaos.steps import (
    child,
    drain_to_the_end,
    end_lease,
    journal_of,
    kill_at,
    numbered,
    opened,
    push,
    state_of,
    visit,
    wait_until_free,
)
from tests.kit.servers import FaultProxy, Server
from tests.kit.stored import State

ITEMS = 6
CHECKPOINT = script("checkpoint")
IN_A_RUN = [
    "before checkpoint",
    "after checkpoint",
    "before checkpoint 2",
    "after checkpoint 2",
    "in item",
    "in item 3",
    "in cleanup",
    "before settle",
    "after settle",
]


@pytest.fixture
def long_job(scenario: Scenario) -> Scenario:
    """Jobs of six items, each of which is saved."""
    return msgspec.structs.replace(scenario, items=ITEMS)


def items_of(scenario: Scenario, job_id: str) -> list[int]:
    """The items of a job, in the order in which they were done."""
    return [line.payloads[0] for line in journal_of(scenario).lines("item") if line.id == job_id]


def runs_of(scenario: Scenario, job_id: str) -> Iterator[tuple[list[int], list[int]]]:
    """The payloads of each execution of a job, with the items that were done for them, in order."""
    done: list[int] = []
    journal = journal_of(scenario)
    # A job that was killed after its last item ends once more.
    payloads = [
        payloads for payloads, _ in groupby(line.payloads for line in journal.lines("end") if line.id == job_id)
    ]
    for item, following in pairwise([*items_of(scenario, job_id), 0]):
        done.append(item)
        if following == 0 and item == ITEMS - 1:
            yield payloads.pop(0), done
            done = []


def check_nothing_missing(scenario: Scenario, end: State, *, repeated: int) -> None:
    """Each item of each execution was done, in order, with so many of them a second time at most; nobody is blamed."""
    for job_id in {line.id for line in journal_of(scenario).lines("item")}:
        done = items_of(scenario, job_id)
        executions = len({tuple(line.payloads) for line in journal_of(scenario).lines("end") if line.id == job_id})
        assert done.count(0) >= executions > 0
        assert len(done) <= ITEMS * executions + repeated, done
        for item, following in pairwise(done):
            assert following <= item + 1, done
    assert {} == end["morgue"] == end["trouble"] == end["suspects"]
    assert 0 == end["counters"]["retried"] == end["counters"]["dead"]


@pytest.mark.parametrize("point", IN_A_RUN)
def test_a_kill_at_any_point_repeats_one_item_at_most(server: Server, long_job: Scenario, point: str) -> None:
    """P2, J-44: with each item saved none is missing; what was pushed meanwhile comes after it."""
    push(long_job, numbered("a", 1))
    kill_at(long_job, point, jobs=numbered("a", 2))

    end = drain_to_the_end(server, long_job)

    check_nothing_missing(long_job, end, repeated=1)
    # Before anything was saved the two are one job, as those of any id are.
    together = point in ("before checkpoint", "in item")
    assert ([[1, 2]] if together else [[1], [2]]) == [payloads for payloads, _ in runs_of(long_job, "a")]


@pytest.mark.parametrize("point", ["in cleanup", "before settle", "after settle", "before settle 2", "in item 4"])
def test_a_kill_around_the_end_of_a_turn_repeats_one_item_at_most(
    server: Server, long_job: Scenario, point: str
) -> None:
    """P2: between the close of a job that makes way and its settling, and after it."""
    taking_turns = msgspec.structs.replace(long_job, turn=0.0)
    push(taking_turns, numbered("ab", 1))
    kill_at(taking_turns, point, jobs=numbered("a", 2))

    end = drain_to_the_end(server, taking_turns)

    check_nothing_missing(taking_turns, end, repeated=1)
    assert [[1], [2]] == [payloads for payloads, _ in runs_of(taking_turns, "a")]
    assert [[1]] == [payloads for payloads, _ in runs_of(taking_turns, "b")]


def test_a_recovery_of_a_started_job_can_be_killed_too(server: Server, long_job: Scenario) -> None:
    """E-20: its cursor is where it was, and nobody is blamed."""
    push(long_job, numbered("a", 1))
    kill_at(long_job, "in item 3")
    for point in ("after acquire", "before start", "after start", "in item", "before checkpoint"):
        kill_at(long_job, point)
        if point == "after start":
            # Lone, and no save since: a counted crash, which its next save takes back.
            kill_at(long_job, "after checkpoint")

    end = drain_to_the_end(server, long_job)

    check_nothing_missing(long_job, end, repeated=4)


def test_p4_the_save_of_a_holder_that_was_frozen_is_refused(server: Server, long_job: Scenario) -> None:
    """E-1, E-8: after a takeover it changes nothing, and the visit says that its lease is lost."""
    push(long_job, numbered("a", 1))
    with child(long_job, stops=["before checkpoint 2"]) as frozen:
        frozen.wait_at("before checkpoint")
        frozen.freeze()
        wait_until_free(server, long_job)
        with child(long_job, stops=["before settle"]) as successor:
            successor.wait_at("before settle")
            before = state_of(server, long_job)["flight"]
            frozen.go_on()
            frozen.thaw()
            assert "lease lost" == frozen.ended().reason
            assert before == state_of(server, long_job)["flight"]
            successor.go_on()
            assert "empty" == successor.ended().reason
    assert [0, 1, 1, 2, 3, 4, 5] == items_of(long_job, "a")


def test_a_lost_reply_of_a_save_costs_nothing(server: Server, long_job: Scenario, fault_proxy: FaultProxy) -> None:
    """E-44: it is sent again under its number, and is applied once."""
    push(long_job, numbered("a", 1))
    with opened(msgspec.structs.replace(long_job, url=fault_proxy.url, lease_ttl=10.0)) as app:
        fault_proxy.drop_reply_after(CHECKPOINT.sha.encode(), times=2)
        assert {"done": 1} == visit(app).counts
        fault_proxy.wait_dropped()

    assert list(range(ITEMS)) == items_of(long_job, "a")
    assert {} == state_of(server, long_job)["flight"]


def test_a_save_that_is_never_answered_ends_the_visit(
    server: Server, long_job: Scenario, fault_proxy: FaultProxy
) -> None:
    """E-43: no outcome follows under its number, which the server would take for a repeat; the job goes on from it."""
    push(long_job, numbered("a", 1))
    behind = msgspec.structs.replace(long_job, url=fault_proxy.url, redis_timeout=1.0)
    # It is there already: the lost reply is that of a save, and not that the server does not know the script.
    server.admin.script_load(CHECKPOINT.source)
    fault_proxy.drop_reply_after(CHECKPOINT.sha.encode(), times=1_000)
    with child(behind) as holder:
        assert "BackendUnavailable" == holder.ended().error
    fault_proxy.heal()

    end = drain_to_the_end(server, long_job)

    assert list(range(ITEMS)) == items_of(long_job, "a")
    check_nothing_missing(long_job, end, repeated=0)


def test_an_item_that_kills_its_process_dies_alone(server: Server, long_job: Scenario) -> None:
    """E-50, LB-8: three counted crashes without a save between; its cursor is kept, and put back it goes on there."""
    poisoned = msgspec.structs.replace(long_job, dies_at=3)
    push(poisoned, [{"id": job_id, "payload": 1, "score": 1} for job_id in ("poison", "other")])
    for _ in range(8):
        with child(poisoned) as dying:
            if dying.code() == 0:
                break
        end_lease(poisoned)
    end = drain_to_the_end(server, poisoned)

    assert ["poison"] == [*end["morgue"]]
    assert "crashed" in end["morgue"]["poison"][1]
    assert ([0, 1, 2], list(range(ITEMS))) == (items_of(poisoned, "poison"), items_of(poisoned, "other"))
    assert [] == [line for line in journal_of(poisoned).lines("item") if line.payloads[1] != -1]

    with opened(long_job) as app:
        app.operate(app.workers[0]).morgue.requeue(["poison"])
    drain_to_the_end(server, long_job)
    assert list(range(ITEMS)) == items_of(long_job, "poison")

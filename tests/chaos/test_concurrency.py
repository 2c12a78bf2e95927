"""A process with many calls at once that is killed, or frozen for longer than its lease lasts."""

import msgspec
import pytest

from tests.chaos.scenario import Scenario
from tests.chaos.steps import child, drain_to_the_end, journal_of, kill_at, numbered, push, state_of, wait_until_free
from tests.kit.servers import Server
from tests.kit.waiting import eventually

IDS = [f"id{number}" for number in range(60)]


@pytest.fixture
def many(scenario: Scenario) -> Scenario:
    """Twenty calls at once."""
    return msgspec.structs.replace(scenario, concurrency=20, batch_size=1, ack_interval=0.01)


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


def test_p1_a_holder_that_was_frozen_with_twenty_calls_writes_nothing(server: Server, many: Scenario) -> None:
    """E-8: thawed after a takeover, all of its calls are told to stop, and it ends when the last of them has."""
    many = msgspec.structs.replace(many, handler="heed")
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

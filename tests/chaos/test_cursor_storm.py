"""A long job through processes of a second, of which every third is killed."""

from functools import partial

import msgspec

from lowkiq_lambda.jobs.progress import load_progress
from tests.chaos.scenario import Scenario
from tests.chaos.steps import child, drain_to_the_end, journal_of, numbered, push, shard_of, wait_until_free
from tests.kit.servers import Server
from tests.kit.waiting import eventually

ITEMS = 1_500


def items_of(scenario: Scenario, job_id: str) -> list[int]:
    """The items of a job, in the order in which they were done."""
    return [line.payloads[0] for line in journal_of(scenario).lines("item") if line.id == job_id]


def has_done(scenario: Scenario, items: int) -> bool:
    """Whether so many items of the long job are done."""
    return len(items_of(scenario, "long")) >= items


def repeated_items(server: Server, scenario: Scenario) -> int:
    """How many items of the job come again: what a process that is dead has done and not saved."""
    record = server.admin.hget(shard_of(scenario).key("flight"), "long")
    if not isinstance(record, bytes):
        # Its visit was over before it was killed: it had given the job back, with its cursor.
        return 0
    return max(0, items_of(scenario, "long")[-1] + 1 - saved_cursor(record))


def saved_cursor(record: bytes) -> int:
    """That of a job in flight."""
    if record[16:17] != b"p":
        return 0
    length = int.from_bytes(record[17:21])
    return int(load_progress(record[21 : 21 + length]).cursor or b"0")


def test_a_long_job_survives_processes_that_are_killed(server: Server, scenario: Scenario) -> None:
    """P2, P4, J-44: every item is done, what was saved is not repeated, others pass, and no retry is counted."""
    storm = msgspec.structs.replace(
        scenario, items=ITEMS, item_seconds=0.003, settle_interval=0.05, turn=0.2, visit_seconds=1.0
    )
    journal = journal_of(storm)
    push(storm, numbered(["long"], 1))
    kills, repeated = 0, 0
    for number in range(60):
        seen = len(items_of(storm, "long"))
        with child(storm) as process:
            if number % 3 == 1:
                eventually(partial(has_done, storm, seen + 40), timeout=30.0)
                process.kill()
                kills += 1
                # Whatever it was about to do is done by now: this is where the next one begins.
                repeated += repeated_items(server, storm)
            else:
                assert not process.ended().error
        if number == 1:
            push(storm, [*numbered(["long"], 2), *numbered(["short"], 1)])
        wait_until_free(server, storm)
        if journal.lines("end") and len(items_of(storm, "long")) >= ITEMS + repeated:
            break
    end = drain_to_the_end(server, storm)

    done = items_of(storm, "long")
    # The last kill may have hit the second payload already: it begins with the first 0 behind the first one's end.
    begin = done.index(0, done.index(ITEMS - 1))
    assert set(range(ITEMS)) == set(done[:begin]) == set(done[begin:])
    assert 2 * ITEMS + repeated == len(done)
    assert kills > 1
    assert {-1.0} == {line.payloads[1] for line in journal.lines("item")}
    # What was pushed meanwhile comes after it, and the other id within two turns: that of the killed one, and the next.
    assert [("short", [1]), ("long", [1]), ("long", [2])] == [(line.id, line.payloads) for line in journal.lines("end")]
    assert {} == end["trouble"] == end["morgue"]

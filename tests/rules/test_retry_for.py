"""`retry_for`, and retries that would lie beyond an expiry: the failure is the last."""

import logging
import re

import pytest

from lowkiq_lambda import Lowkiq, Worker, kill_on
from lowkiq_lambda.testing import ManualClock
from tests.kit.expiring import events, expiries, push
from tests.kit.handlers import Broken, Notes, raising
from tests.kit.looks import left_behind, look
from tests.kit.recording import EventRecorder
from tests.kit.workers import declare


def fail_until_over(app: Lowkiq, clock: ManualClock, worker: type[Worker]) -> list[dict[str, int]]:
    """What each drain counts, 30 seconds apart, until nothing waits."""
    counts = []
    while look(app, worker, "a"):
        counts.append(dict(app.drain()))
        clock.advance(30)
    return counts


def every_30_seconds(_worker: Worker, _count: int) -> float:
    """The delay of each retry."""
    return 30.0


RETRIED = {"retried": 1, "failed": 1}


@pytest.mark.parametrize("seconds", [60.0, 89.0])
def test_sk5_the_first_failure_says_until_when_a_payload_is_retried(
    app: Lowkiq, clock: ManualClock, queue_name: str, seconds: float
) -> None:
    """SK-5: whatever max_retry_count says; what is over is dropped, with the journal, the counters and the outcome."""
    recorder = EventRecorder()
    app.observers.append(recorder)
    notes = Notes(raising())
    worker = declare(app, queue_name, notes, retry_in=every_30_seconds, retry_for=seconds)
    push(worker, 1)

    assert [RETRIED, RETRIED, {"expired": 1}] == fail_until_over(app, clock, worker)
    assert ({"a": "expired"}, 3) == (recorder.events[-1].outcomes, len(notes.batches))
    assert [("expired", [1])] == [*events(app, worker, "expired", "dead")]
    assert ({}, {}) == (left_behind(app, worker), expiries(app, worker))


def test_the_morgue_has_it_with_its_tries_and_its_error(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """The hook learns why it died, as people do."""
    notes = Notes(raising())
    worker = declare(app, queue_name, notes, retry_in=every_30_seconds, retry_for=60, expired="kill")
    push(worker, 1)

    assert [RETRIED, RETRIED, {"dead": 1, "failed": 1}] == fail_until_over(app, clock, worker)
    assert [("a", "expired")] == [(job.id, job.why) for job in notes.dead]
    (job,) = app.operate(worker).morgue.fetch(["a"])
    assert re.fullmatch(r"expired at 20[-\dT:]+Z after 3 tries: broken", job.error or "")
    assert ["expired", "", ""] == [failure.rule for failure in job.failures]
    assert [("dead", [1]), ("expired", [1])] == [*events(app, worker, "expired", "dead")]
    assert 1 == app.operate.metrics()[queue_name].expired
    assert {} == expiries(app, worker)


def test_an_earlier_expiry_stays(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """The earlier of both holds."""
    worker = declare(app, queue_name, Notes(raising()), retry_in=every_30_seconds, retry_for=600)
    start = clock.time()
    push(worker, 1, expires_in=100)
    push(worker, 2, id_="b", expires_in=1_000)
    app.drain()

    assert [start + 100, start + 600] == sorted(expiries(app, worker).values())


def test_only_the_first_failure_sets_it(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """It is no later at the next one."""
    worker = declare(app, queue_name, Notes(raising()), retry_in=every_30_seconds, retry_for=600)
    push(worker, 1)
    start = clock.time()
    for _ in range(3):
        app.drain()
        clock.advance(30)
        assert [start + 600] == [*expiries(app, worker).values()]


def test_an_equal_push_opens_a_new_time(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """As with any expiry, none holds if either push has none; the next failure sets it again."""
    worker = declare(app, queue_name, Notes(raising()), retry_in=every_30_seconds, retry_for=600)
    push(worker, 1)
    app.drain()
    clock.advance(30)
    push(worker, 1)
    assert {} == expiries(app, worker)

    start = clock.time()
    app.drain()

    assert [start + 600] == [*expiries(app, worker).values()]


def test_the_others_of_the_id_start_anew(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """As when a rule discards the oldest one: each payload has its own time."""
    notes = Notes(lambda batch: raising()(batch) if 1 in batch["a"] else None)
    worker = declare(app, queue_name, notes, retry_in=every_30_seconds, retry_for=30)
    push(worker, 1, 2)
    app.drain()
    clock.advance(30)

    assert {"expired": 1, "done": 1} == app.drain()
    assert [{"a": [1, 2]}, {"a": [1, 2]}, {"a": [2]}] == notes.batches
    assert ({}, {}) == (left_behind(app, worker), expiries(app, worker))


@pytest.mark.parametrize(("dead_head", "ran"), [("skip", [2]), ("drop", []), ("block", [])])
def test_dead_head_says_what_becomes_of_the_others_if_it_is_killed(
    app: Lowkiq, clock: ManualClock, queue_name: str, dead_head: str, ran: list[int]
) -> None:
    """As after any failure that is the last; who unblocks the head has it run, whenever that is."""
    notes = Notes(lambda batch: raising()(batch) if 1 in batch["a"] else None)
    fields = {"retry_in": every_30_seconds, "retry_for": 10, "expired": "kill", "dead_head": dead_head}
    worker = declare(app, queue_name, notes, **fields)
    push(worker, 1, 2)
    app.drain()

    assert [{"a": [1, 2]}, *({"a": [n]} for n in ran)] == notes.batches
    assert {} == expiries(app, worker)
    if dead_head == "block":
        clock.advance(100)
        notes.then = None
        app.operate(worker).unblock(["a"], "retry")
        app.drain()
        assert {"a": [1, 2]} == notes.batches[-1]


def test_rules_decide_before(app: Lowkiq, queue_name: str) -> None:
    """A permanent error kills at once, as ever."""
    notes = Notes(raising(Broken("x")))
    worker = declare(app, queue_name, notes, retry_for=600, on_error=(kill_on(Broken),))
    push(worker, 1)

    assert {"dead": 1, "failed": 1} == app.drain()
    assert ["rule"] == [job.why for job in notes.dead]


def test_a_retry_for_within_which_nothing_is_retried_is_warned_of(
    app: Lowkiq, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """At the declaration, as it is a mistake that shows by nothing else."""
    declare(app, queue_name, Notes(), retry_in=every_30_seconds, retry_for=10)
    declare(app, f"{queue_name}-2", Notes(), retry_in=every_30_seconds, retry_for=30)

    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert ["Noting.retry_for is 10 s, and the first retry comes after 30 s: no failed job is tried again"] == warnings

"""Expiry: after its time a payload is not handed to a handler, by the server's clock."""

import logging
from datetime import UTC, datetime, timedelta

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.expiring import events, expiries, in_use, push
from tests.kit.handlers import FailingHandler, Notes, raising
from tests.kit.looks import counters, left_behind, look
from tests.kit.recording import EventRecorder
from tests.kit.workers import declare


def test_a_payload_is_not_handed_over_after_its_expiry(
    app: Lowkiq, clock: ManualClock, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """No handler runs for a window of nothing but expired ones; the journal, the counters and the log have it."""
    caplog.set_level(logging.INFO)
    recorder = EventRecorder()
    app.observers.append(recorder)
    notes = Notes()
    worker = declare(app, queue_name, notes)
    push(worker, 1, expires_in=60)
    assert [clock.time() + 60] == [*expiries(app, worker).values()]
    clock.advance(61)

    assert {"expired": 1} == app.drain()
    assert ([], {"a": "expired"}) == (notes.batches, recorder.events[-1].outcomes)
    assert (1, 1) == (counters(app, worker)["expired"], app.operate.metrics()[queue_name].expired)
    assert [("expired", [1])] == [*events(app, worker, "expired", "done", "dead")]
    assert ["jobs expired before they ran"] == [
        record.message for record in caplog.records if "expired" in record.message
    ]
    assert ({}, {}) == (left_behind(app, worker), expiries(app, worker))


@pytest.mark.parametrize(("late", "runs"), [(-0.001, True), (0.0, True), (0.001, False)])
def test_at_the_very_second_of_its_expiry_it_runs(
    app: Lowkiq, clock: ManualClock, queue_name: str, late: float, *, runs: bool
) -> None:
    """The expiry is the last moment at which it may begin."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    push(worker, 1, expires_at=datetime.fromtimestamp(clock.time() + 60, UTC))
    clock.advance(60 + late)
    app.drain()

    assert [{"a": [1]}] * runs == notes.batches


def test_who_does_not_use_it_has_nothing_of_it(app: Lowkiq, queue_name: str) -> None:
    """The first push that needs it begins it, and a claim that finds none ends it."""
    worker = declare(app, queue_name, Notes())
    push(worker, 1)
    assert in_use(app, worker) is None
    push(worker, 2, expires_in=timedelta(minutes=1))
    assert b"expiry" == in_use(app, worker)
    app.drain()
    assert {} == expiries(app, worker)
    push(worker, 3)
    app.drain()
    assert in_use(app, worker) is None


def test_payloads_of_an_id_expire_one_by_one(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Those that are over are taken out, and the others run in their order."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    push(worker, 1, expires_in=10)
    push(worker, 2)
    push(worker, 3, expires_in=20)
    push(worker, 4, expires_in=100)
    clock.advance(50)

    assert {"expired": 2, "done": 1} == app.drain()
    assert [{"a": [2, 4]}] == notes.batches
    assert ({}, {}) == (left_behind(app, worker), expiries(app, worker))


def test_the_newest_of_a_thousand_runs_if_all_others_are_over(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """In as many claims as it takes."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    worker.push_many({"id": "a", "payload": n, "expires_in": 10} for n in range(999))
    push(worker, 999)
    clock.advance(50)

    assert {"expired": 999, "done": 1} == app.drain()
    assert [{"a": [999]}] == notes.batches
    assert ({}, {}) == (left_behind(app, worker), expiries(app, worker))


def test_the_worker_says_it_for_all_pushes(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Seconds count from when a job is due; a job that says its own has its own."""
    worker = declare(app, queue_name, Notes(), expires_in=60)
    start = clock.time()
    push(worker, 1)
    push(worker, 2, id_="b", delay=100)
    push(worker, 3, id_="c", expires_in=10)

    assert [start + 10, start + 60, start + 160] == sorted(expiries(app, worker).values())


@pytest.mark.parametrize("merge", ["min", "max"])
@pytest.mark.parametrize(
    ("seconds", "left"),
    [((10, 30, 20), 30), ((30, 20, 10), 30), ((10, None, 20), None), ((None, 20, 30), None), ((10, 20, None), None)],
)
def test_equal_payloads_have_the_later_expiry_and_none_if_either_has_none(  # noqa: PLR0913, PLR0917 - the cases
    app: Lowkiq, clock: ManualClock, queue_name: str, merge: str, seconds: tuple[float | None, ...], left: float | None
) -> None:
    """Whichever of them is kept."""
    worker = declare(app, queue_name, Notes(), merge=merge)
    for score, expires_in in zip((3, 1, 2), seconds, strict=True):
        worker.push("a", 1, score=score, expires_in=expires_in)

    expected = [] if left is None else [clock.time() + left]
    assert expected == [*expiries(app, worker).values()]


def test_payloads_that_are_killed_lie_in_the_morgue_and_have_no_expiry_once_they_are_back(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """An operator who puts them back wants them done, whenever that is; the hook learns why they died."""
    notes = Notes()
    worker = declare(app, queue_name, notes, expired="kill")
    push(worker, 1, 2, expires_in=10)
    push(worker, 3)
    clock.advance(50)

    assert {"expired": 2, "done": 1} == app.drain()
    assert [("a", "expired"), ("a", "expired")] == [(job.id, job.why) for job in notes.dead]
    assert ["expired", "dead", "expired", "dead"] == [kind for kind, _ in events(app, worker, "expired", "dead")]
    (job,) = app.operate(worker).morgue.fetch(["a"])
    assert (job.error or "").startswith("expired at 20")
    assert (job.error or "").endswith(" before it ran")
    app.operate(worker).morgue.requeue(["a"])
    app.drain()
    assert [{"a": [3]}, {"a": [1, 2]}] == notes.batches
    assert ({}, {}) == (left_behind(app, worker), expiries(app, worker))


def test_failing_clears_nothing(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Through a retry it stays, and an equal payload that comes meanwhile joins as ever."""
    handler = FailingHandler()
    handler.failing = {"a"}
    worker = declare(app, queue_name, handler)
    push(worker, 1, expires_in=100)
    app.drain()

    assert [clock.time() + 100] == [*expiries(app, worker).values()]
    clock.advance(101)
    assert {"expired": 1} == app.drain()
    assert (1, None) == (len(handler.batches), look(app, worker, "a"))


def test_deleted_payloads_leave_no_expiry(app: Lowkiq, queue_name: str) -> None:
    """As those that are done, dead or superseded."""
    worker = declare(app, queue_name, Notes())
    push(worker, *range(12), expires_in=100)
    push(worker, 1, id_="b", expires_in=100)
    app.operate(worker).waiting.delete(["a"])
    app.operate(worker).waiting.delete(everything=True)
    assert {} == expiries(app, worker)


def test_a_later_version_takes_the_expiry_of_the_one_that_it_replaces(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """With merge="latest" it goes with its payload; what is over is dealt with, so nothing older runs after it."""
    notes = Notes()
    worker = declare(app, queue_name, notes, merge="latest")
    push(worker, 1, score=1, expires_in=10)
    push(worker, 2, score=2, expires_in=20)
    assert [clock.time() + 20] == [*expiries(app, worker).values()]
    clock.advance(30)
    assert {"expired": 1} == app.drain()
    push(worker, 1, score=1)

    assert {} == app.drain()
    assert ([], {}) == (notes.batches, expiries(app, worker))


def test_later_pushes_are_fresh(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Of an id that has failed, and then expired, nothing is left: not its count, not its error."""
    notes = Notes(raising())
    worker = declare(app, queue_name, notes, retry_in=lambda _self, _count: 10)
    push(worker, 1, expires_in=15)
    app.drain()
    clock.advance(20)
    app.drain()
    push(worker, 2)

    waiting = look(app, worker, "a")
    assert (-1, None) == (waiting and waiting.retry_count, waiting and waiting.error)

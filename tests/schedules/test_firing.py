"""What a tick fires: each planned time once, whoever ticks, and as the entry says."""

from collections.abc import Sequence

import pytest

from lowkiq_lambda import BackendUnavailable, Lowkiq
from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.store.shard.backend import Call
from lowkiq_lambda.store.shard.scripts import Reply
from lowkiq_lambda.store.shard.timetables import FireReply
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.firing import MINUTE, NOON, at_noon, fired, outcomes, records
from tests.kit.handlers import Notes
from tests.kit.workers import declare, shard_of


def test_x5_a_new_entry_fires_first_at_its_next_planned_time(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """X-5: and not for the time before it was first seen."""
    worker = declare(app, queue_name, Notes())
    app.every(MINUTE, worker, id="poll")
    at_noon(clock, 59.0)
    ticked = app.schedules.tick()
    assert ([], 1.0) == (fired(ticked), ticked.next_in)
    clock.advance(1.0)
    assert [("poll", 60.0, "pushed")] == fired(app.schedules.tick())


def test_x4_a_planned_time_fires_once_whoever_ticks(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """X-4, C-11: the second of two processes changes nothing, nor does the same one again."""
    apps = [make_app(), make_app()]
    workers = [declare(app, queue_name, Notes()) for app in apps]
    at_noon(clock)
    for app, worker in zip(apps, workers, strict=True):
        app.every(MINUTE, worker, id="poll")
        app.schedules.tick()
    clock.advance(60.0)
    assert [[("poll", 60.0, "pushed")], [], []] == [fired(app.schedules.tick()) for app in [*apps, *apps[:1]]]


def test_x4_a_copy_of_a_firing_that_comes_late_changes_nothing(
    app: Lowkiq, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-4: neither while the job waits, nor when it is done; the history has the time once."""
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    app.every(MINUTE, worker, id="poll")
    app.schedules.tick()
    clock.advance(60.0)
    sent: list[Call] = []
    run_each = app.core.backend.run_each

    def noting(calls: Sequence[Call]) -> list[Reply | LowkiqError]:
        sent.extend(calls)
        return run_each(calls)

    with monkeypatch.context() as patch:
        patch.setattr(app.core.backend, "run_each", noting)
        app.schedules.tick()
    firings = [call for call in sent if call[0] == "fire"]
    assert 1 == len(firings)

    for _ in range(2):
        (reply,) = run_each(firings)
        assert not isinstance(reply, LowkiqError)
        assert b"ALREADY" == FireReply.of(reply).status
        app.drain()

    assert (1, 0) == (app.operate.metrics()[queue_name].payloads, app.operate.metrics()[queue_name].length)
    assert [(60.0, "pushed")] == outcomes(app, worker, "poll")


def test_x23_the_job_has_the_planned_time_as_its_score(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """X-1, X-23: the handler reads it there; the payload is the entry's."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    at_noon(clock)
    app.every(MINUTE, worker, id="poll", payload={"full": True})
    app.schedules.tick()
    clock.advance(90.0)
    app.schedules.tick()
    (job,) = app.operate(worker).waiting.fetch(["poll"])
    assert ([({"full": True}, NOON + 60.0)], NOON + 60.0) == ([*job.payloads], job.due_at)
    assert {"done": 1} == {name: count for name, count in app.drain().items() if count}


def test_x8_the_last_ten_decisions_are_kept(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """X-8, X-2: whatever became of them; ten are as many as a page shows, and no setting has to say so."""
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    app.every(MINUTE, worker, id="poll")
    app.schedules.tick()
    for _ in range(12):
        clock.advance(60.0)
        app.schedules.tick()

    merged = [(60.0 * minute, "merged") for minute in range(3, 13)]
    assert merged == outcomes(app, worker, "poll")


def test_a_firing_into_a_waiting_id_merges(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """L-27: the id keeps its time; equal payloads are one."""
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    app.every(MINUTE, worker, id="poll")
    app.schedules.tick()
    for _ in range(2):
        clock.advance(60.0)
        app.schedules.tick()
    assert [(60.0, "pushed"), (120.0, "merged")] == outcomes(app, worker, "poll")
    (job,) = app.operate(worker).waiting.fetch(["poll"])
    assert (1, NOON + 60.0) == (len(job.payloads), job.due_at)


def test_jitter_moves_the_job_and_not_the_score(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """By the same seconds, whoever fires it."""
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    app.every(MINUTE, worker, id="poll", jitter=30.0)
    app.schedules.tick()
    clock.advance(60.0)
    app.schedules.tick()
    (entry,) = app.schedules.declared
    (job,) = app.operate(worker).waiting.fetch(["poll"])
    assert (NOON + 60.0, NOON + 60.0 + entry.jitter_of(NOON + 60.0)) == (job.payloads[0].score, job.due_at)


def test_nothing_is_kept_where_no_entry_is(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A queue without entries has no key for them, ticked or not."""
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    assert [] == fired(app.schedules.tick())
    shard = shard_of(app, worker, "poll")
    assert not app.core.backend.client.exists(shard.keys[0].replace(":due", ":timetable"))
    assert {} == records(app, worker)


@pytest.mark.parametrize(
    ("missed", "expected"),
    [
        ("once", [("poll", 10_800.0, "pushed")]),
        ("skip", [("poll", 10_800.0, "pushed")]),
        ("all", [("poll", 3_600.0 * hours, "pushed" if hours == 1 else "merged") for hours in (1, 2, 3)]),
    ],
)
def test_x6_missed_times_fire_as_the_entry_says(
    app: Lowkiq, clock: ManualClock, queue_name: str, missed: str, expected: list[tuple[str, float, str]]
) -> None:
    """X-6, C-8: after three hours in which nobody ticked."""
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    app.every(3_600, worker, id="poll", missed=missed, grace=10_800.0)  # type: ignore[arg-type]  # a parameter of the test
    app.schedules.tick()
    clock.advance(10_810.0)
    assert expected == fired(app.schedules.tick())
    assert [] == fired(app.schedules.tick())


def test_x6_what_is_too_late_never_fires(
    app: Lowkiq, clock: ManualClock, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """X-6: it is decided, noted and logged, so that nobody fires it later."""
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    app.every(3_600, worker, id="poll", grace=60.0)
    app.schedules.tick()
    clock.advance(3_700.0)
    ticked = app.schedules.tick()
    assert ([], 1) == (fired(ticked), ticked.missed)
    assert [(3_600.0, "missed")] == outcomes(app, worker, "poll")
    said = f"no process looked at entry 'poll' of {queue_name!r} in time; planned times that were missed: 1"
    assert [said] == caplog.messages
    assert 0 == app.schedules.tick().missed


def test_what_a_newer_time_replaced_is_told(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """X-6: by the tick, and by the history, with the decision that let it go; too late or replaced."""
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    app.every(20.0, worker, id="poll", grace=60.0)
    app.every(20.0, worker, id="poll", name="all", missed="all", grace=60.0)
    app.schedules.tick()
    clock.advance(60.0)
    ticked = app.schedules.tick()
    assert (0, 2, 2) == (ticked.missed, ticked.replaced, ticked.summary()["replaced"])
    clock.advance(600.0 + 10.0)
    app.schedules.tick()
    clock.advance(10.0)
    app.schedules.tick()
    history = app.schedules.history(worker, "poll")
    assert [(680.0, 0), (660.0, 29), (60.0, 2)] == [(one.planned - NOON, one.let_go) for one in history]
    caught_up = [one for one in app.schedules.history(worker, "all") if one.outcome == "missed"]
    assert [(600.0, 26)] == [(one.planned - NOON, one.let_go) for one in caught_up]


@pytest.mark.parametrize(("seconds", "missed"), [(60.0, 0), (10_800.0, 100)])
def test_x6_an_absence_is_told_of_an_entry_each_second(
    app: Lowkiq, clock: ManualClock, queue_name: str, seconds: float, missed: int
) -> None:
    """X-6: as many as a decision lists, though these are of the last two minutes; the rhythm of ticks is none."""
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    app.every(1.0, worker, id="poll")
    app.schedules.tick()
    clock.advance(seconds)
    ticked = app.schedules.tick()
    assert ([("poll", seconds, "pushed")], missed) == (fired(ticked), ticked.missed)


def test_a_firing_starts_a_drain_of_an_idle_shard(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """As a push does, where the settings ask for it; once in a window."""
    started: list[tuple[str, int]] = []
    app = make_app(wake_function=lambda queue, shard: started.append((queue, shard)))
    worker = declare(app, queue_name, Notes())
    at_noon(clock)
    for name in ("a", "b"):
        app.every(MINUTE, worker, id=name)
    app.schedules.tick()
    clock.advance(60.0)
    assert 2 == len(fired(app.schedules.tick()))
    assert [(queue_name, 0)] == started


def test_x4_a_time_whose_answer_was_lost_is_not_decided_again(
    app: Lowkiq, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-4: nobody knows whether it was, and the shard tells the next look: its job has been done by then."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    at_noon(clock)
    app.every(MINUTE, worker, id="poll")
    app.schedules.tick()
    clock.advance(MINUTE)
    run_each = app.core.backend.run_each

    def lose(calls: Sequence[Call]) -> list[Reply | LowkiqError]:
        replies = run_each(calls)
        return [BackendUnavailable()] * len(replies) if calls[0][0] == "fire" else replies

    with monkeypatch.context() as patched:
        patched.setattr(app.core.backend, "run_each", lose)
        ticked = app.schedules.tick()
    app.drain()

    assert ([], 1) == ([*ticked.fired], len(ticked.problems))
    assert [] == fired(app.schedules.tick())
    app.drain()
    assert [["poll"]] == [[*batch] for batch in notes.batches]
    assert [(60.0, "pushed")] == outcomes(app, worker, "poll")

"""What observers are told of each settling."""

import logging

import pytest

from lowkiq_lambda import Batch, Lowkiq
from lowkiq_lambda.settings.protocols import SettledEvent
from lowkiq_lambda.testing import ManualClock
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Notes
from tests.kit.iterating import Items, declare_items
from tests.kit.recording import EventRecorder
from tests.kit.workers import declare, jobs_of


@pytest.fixture
def recorder(app: Lowkiq) -> EventRecorder:
    """That of the app."""
    made = EventRecorder()
    app.observers.append(made)
    return made


def test_an_event_names_each_id_with_its_outcome(
    app: Lowkiq, recorder: EventRecorder, clock: ManualClock, queue_name: str
) -> None:
    """And says where, when, under which token, and how long the batches took and had waited."""
    tokens: list[int] = []

    def perform(batch: Batch) -> None:
        tokens.append(batch.token)
        clock.advance(2.0)
        batch.fail("b", "is broken")

    worker = declare(app, queue_name, perform, batch_size=4)
    worker.push_many(jobs_of("abc"))
    clock.advance(1.0)
    app.drain()

    (event,) = recorder.events
    assert {"a": "done", "b": "retried", "c": "done"} == event.outcomes
    assert {"done": 2, "retried": 1, "failed": 1} == event.counts
    assert (queue_name, 0, tokens, clock.time()) == (event.queue_name, event.shard, [event.token], event.at)
    assert ([2.0], [1.0]) == (event.took, event.waited)
    assert event.outcomes is event.outcomes


def test_ids_of_a_failed_batch_are_suspected_and_each_settling_is_an_event(
    app: Lowkiq, recorder: EventRecorder, queue_name: str
) -> None:
    """An id stands in each event in which something became of it."""

    def perform(batch: Batch) -> None:
        if len(batch) > 1:
            raise ValueError("somebody is broken")

    declare(app, queue_name, perform, batch_size=2).push_many(jobs_of("ab"))
    app.drain()
    assert [{"a": "suspected", "b": "suspected"}, {"a": "done"}, {"b": "done"}] == [
        event.outcomes for event in recorder.events
    ]


def test_what_a_dead_holder_left_is_counted(
    app: Lowkiq, recorder: EventRecorder, clock: ManualClock, queue_name: str
) -> None:
    """The ids that were recovered are in no claim of anybody, so only their number is told."""
    mortal, notes = Mortal(app), Notes()
    notes.then = mortal.die
    worker = declare(app, queue_name, notes, batch_size=2)
    worker.push_many(jobs_of("ab"))
    mortal.drain()
    outlive(app, clock, worker)
    notes.then = lambda _batch: None
    app.drain()

    assert [({"recovered": 2}, {}), ({"done": 1}, {"a": "done"}), ({"done": 1}, {"b": "done"})] == [
        (event.counts, event.outcomes) for event in recorder.events
    ]


@pytest.mark.parametrize("error", [OSError("the standard output is closed"), SystemExit(3)], ids=repr)
def test_an_observer_that_raises_keeps_nothing_from_the_next(
    app: Lowkiq, queue_name: str, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    """P6: it is logged, and the others are told."""

    class Broken:
        def settled(self, _event: SettledEvent) -> None:
            raise error

    recorder = EventRecorder()
    app.observers += [Broken(), recorder]
    declare(app, queue_name, Notes()).push_many(jobs_of("a"))
    with caplog.at_level(logging.ERROR):
        app.drain()

    assert ({"a": "done"}, True) == (recorder.events[0].outcomes, "the observer of settlings raised" in caplog.text)


def test_no_list_of_ids_is_made_where_nobody_asks(app: Lowkiq, recorder: EventRecorder, queue_name: str) -> None:
    """The outcomes are made when they are read first."""
    declare(app, queue_name, Notes()).push_many(jobs_of("a"))
    app.drain()
    (event,) = recorder.events
    assert "outcomes" not in vars(event)
    assert {"a": "done"} == event.outcomes
    assert "outcomes" in vars(event)


def test_an_event_tells_of_runs_of_jobs_with_a_cursor(
    app: Lowkiq, recorder: EventRecorder, clock: ManualClock, queue_name: str
) -> None:
    """J-22, J-23: a start, a stop, a resume, an end, and an end without items; other jobs have none."""
    items = Items(3)
    worker = declare_items(app, queue_name, items, max_run_items=2, resume_in=5)
    plain = declare(app, f"{queue_name}-plain", Notes())
    worker.push_many(jobs_of("a"))
    plain.push_many(jobs_of("a"))
    app.drain()
    clock.advance(5)
    app.drain()
    items.count = 0
    worker.push_many(jobs_of("b"))
    app.drain()

    told = [
        (job_id, event.outcomes[job_id], run.resumed, run.items, run.progress.items, run.progress.interruptions)
        for event in recorder.events
        for job_id, run in event.cursor_runs.items()
    ]
    assert [("a", "later", False, 2, 2, 1), ("a", "done", True, 1, 3, 1), ("b", "done", False, 0, 0, 0)] == told
    assert 4 == len(recorder.events)

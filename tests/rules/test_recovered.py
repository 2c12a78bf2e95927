"""The recovered list and the biography of an id: what became of jobs whose holder is gone (C-16, X-41, X-42, X-43)."""

import pytest

from lowkiq_lambda import Batch, Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Notes, failing
from tests.kit.workers import declare, jobs_of


@pytest.fixture
def notes() -> Notes:
    """The test's handler."""
    return Notes()


def test_c16_x43_what_a_dead_holder_left_is_listed(
    app: Lowkiq, clock: ManualClock, queue_name: str, notes: Notes
) -> None:
    """C-16, X-43: whose it was and since when, and where each id is now: no lost job is overlooked."""
    mortal = Mortal(app)
    notes.then = mortal.die
    worker = declare(app, queue_name, notes, batch_size=3, max_retry_count=0)
    worker.push_many(jobs_of("abc"))
    began = clock.time()
    mortal.drain()
    outlive(app, clock, worker)
    notes.then = failing("b")
    app.drain()
    worker.push_many([{"id": "c", "due_at": clock.time() + 60}])

    (recovered,) = app.operate(worker).recovered()
    assert ("died", ["a", "b", "c"], 0) == (recovered.how, sorted(recovered.ids), recovered.more)
    assert {"a": "gone", "b": "morgue", "c": "waiting"} == recovered.now
    assert ([], [], 0) == (recovered.crash_counted, recovered.dead, recovered.shard)
    assert recovered.owner
    assert recovered.token > 0
    assert recovered.held_since is not None
    assert began <= recovered.held_since <= recovered.at


def test_x41_a_third_counted_crash_is_listed_with_what_it_killed(
    app: Lowkiq, clock: ManualClock, queue_name: str, notes: Notes
) -> None:
    """X-41: nothing is guessed from timers: an ended lease is a fact, and so is who ran alone under it."""
    mortal = Mortal(app)
    notes.then = mortal.die
    worker = declare(app, queue_name, notes)
    worker.push_many(jobs_of("a"))
    for _ in range(5):
        mortal.drain()
        outlive(app, clock, worker)

    newest, *_, oldest = app.operate(worker).recovered()
    assert ((["a"], ["a"]), ([], [])) == ((newest.crash_counted, newest.dead), (oldest.crash_counted, oldest.dead))
    assert {"a": "morgue"} == newest.now


def test_x42_what_was_recovered_can_be_hurried_or_deleted(
    app: Lowkiq, clock: ManualClock, queue_name: str, notes: Notes
) -> None:
    """X-42: the ids of the list are what the actions take; those that are done by now are left alone."""
    mortal = Mortal(app)
    notes.then = mortal.die
    worker = declare(app, queue_name, notes, batch_size=2)
    worker.push_many(jobs_of("ab"))
    mortal.drain()
    outlive(app, clock, worker)
    app.operate(worker).pause(60)
    notes.then = failing("a", "b")
    clock.advance(61)
    app.drain()
    (recovered,) = app.operate(worker).recovered()

    assert 1 == app.operate(worker).waiting.run_now([job_id for job_id in recovered.ids if job_id == "a"])
    assert 1 == app.operate(worker).waiting.delete([job_id for job_id in recovered.ids if job_id == "b"])
    assert {"a": "waiting", "b": "gone"} == app.operate(worker).recovered()[0].now


def test_an_evicted_holder_and_one_that_stopped_are_told_apart(
    app: Lowkiq, clock: ManualClock, queue_name: str, notes: Notes
) -> None:
    """What is put back after an eviction is the operator's doing, and no crash."""

    def evict(batch: Batch) -> None:
        app.operate(worker).in_flight.evict_holder(0, batch.token)

    notes.then = evict
    worker = declare(app, queue_name, notes)
    worker.push_many(jobs_of("a"))
    app.drain()
    notes.then = None
    outlive(app, clock, worker)
    app.drain()

    assert ["evicted"] == [recovered.how for recovered in app.operate(worker).recovered()]


def test_a_biography_tells_what_happened_to_an_id(
    app: Lowkiq, clock: ManualClock, queue_name: str, notes: Notes
) -> None:
    """Pushes and what they joined, claims with their token, outcomes, and from when on that is complete."""
    worker = declare(app, queue_name, notes, batch_size=2)
    before = app.operate(worker).biography("a")
    app.operate(worker).journal("all")
    worker.push_many([{"id": "a", "payload": 1}, {"id": "a", "payload": 1}, {"id": "b"}])
    notes.then = failing("a")
    app.drain()
    clock.advance(100)
    notes.then = None
    app.drain()
    worker.push_many(jobs_of("a"))

    life = app.operate(worker).biography("a")
    assert ("gone", [], None, None) == (before.now, before.events, before.since, before.trouble_since)
    assert [
        ("pushed", [1]),
        ("pushed", [2]),
        ("joined", [1, 2]),
        ("claimed", [1]),
        ("retried", []),
        ("claimed", [1]),
        ("done", []),
        ("pushed", [4]),
    ] == [(event.kind, event.arrivals) for event in life.events]
    assert life.events[3].token == life.events[4].token != life.events[5].token
    assert ("waiting", 1) == (life.now, life.events[3].payloads)
    assert life.since is not None
    assert life.since <= life.events[0].at


def test_a_biography_tells_of_deaths_and_of_failures(
    app: Lowkiq, clock: ManualClock, queue_name: str, notes: Notes
) -> None:
    """Where only trouble is written: recoveries, the morgue, and the last errors."""
    mortal = Mortal(app)
    notes.then = mortal.die
    worker = declare(app, queue_name, notes, max_retry_count=0)
    worker.push_many(jobs_of("a"))
    mortal.drain()
    outlive(app, clock, worker)
    notes.then = failing("a")
    app.drain()

    life = app.operate(worker).biography("a")
    assert ["recovered", "dead"] == [event.kind for event in life.events]
    assert ("morgue", 1, None) == (life.now, len(life.failures), life.since)

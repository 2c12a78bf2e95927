"""The context of a handler: its time, its lease and its delivery."""

import sys
import threading
from contextvars import ContextVar

import pytest

from lowkiq_lambda import Batch, Later, Lowkiq
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Notes, failing
from tests.kit.looks import left_behind
from tests.kit.workers import declare, jobs_of


def put_off(_batch: Batch) -> None:
    """The other side cannot be asked now."""
    raise Later(10)


def leave(_batch: Batch) -> None:
    """As a handler that calls `sys.exit`."""
    sys.exit(1)


def test_repeated_tells_of_a_death_until_the_payloads_end(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """E-15: a run that asks whether the dead one did its work, and fails or is put off, is not the last to ask."""
    mortal, notes = Mortal(app), Notes()
    notes.then = mortal.die
    worker = declare(app, queue_name, notes)
    worker.push_many(jobs_of("a"))
    mortal.drain()
    outlive(app, clock, worker)
    for notes.then in (failing("a"), put_off, None):
        app.drain()
        clock.advance(60)
    worker.push_many(jobs_of("a"))
    app.drain()

    assert [False, True, True, True, False] == [job.repeated for (job,) in notes.jobs]


def test_an_ordinary_failure_is_no_repeat(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """E-15: its outcome is known, and `retry_count` says so."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    worker.push_many(jobs_of("a"))
    for notes.then in (failing("a"), None):
        app.drain()
        clock.advance(60)

    assert [(False, -1), (False, 0)] == [(job.repeated, job.retry_count) for (job,) in notes.jobs]


def test_repeated_tells_of_a_handler_that_ended_its_process(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """E-15: it has run in part, and has counted no failure."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    worker.push_many(jobs_of("a"))
    notes.then = leave
    with pytest.raises(SystemExit):
        app.drain()
    clock.advance(60)
    notes.then = None
    app.drain()

    assert [False, True] == [job.repeated for (job,) in notes.jobs]


def test_repeated_tells_of_all_that_was_in_the_hands_of_the_dead(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """E-15: an id that ends its process comes in smaller chunks; each of them says so, and a later push does not."""
    mortal, notes = Mortal(app), Notes()
    notes.then = mortal.die
    worker = declare(app, queue_name, notes)
    worker.push_many([{"id": "a", "payload": number} for number in (1, 2, 3)])
    for _ in range(2):
        mortal.drain()
        outlive(app, clock, worker)
    notes.then = None
    app.drain()
    worker.push_many([{"id": "a", "payload": 4}])
    app.drain()

    assert [
        (False, [1, 2, 3]),
        (True, [1, 2, 3]),
        (True, [1]),
        (True, [2, 3]),
        (False, [4]),
    ] == [(job.repeated, list(job.payloads)) for (job,) in notes.jobs]


def test_remaining_counts_down_the_budget(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """`batch.remaining` is the seconds that the drain has left, now."""
    seen: list[float] = []

    def take_two_seconds(batch: Batch) -> None:
        clock.advance(2)
        seen.extend([batch.remaining, batch.job("a").remaining])

    declare(app, queue_name, take_two_seconds).push_many(jobs_of("a"))
    app.drain(seconds=5)

    assert [3.0, 3.0] == seen


def test_stopping_follows_the_stop_signal(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """`batch.stopping` is set once the process wants to end, and nothing new starts."""
    stop, seen = threading.Event(), list[bool]()

    def stop_in_the_middle(batch: Batch) -> None:
        seen.append(batch.stopping)
        stop.set()
        seen.append(batch.stopping)

    worker = declare(app, queue_name, stop_in_the_middle)
    worker.push_many(jobs_of("ab"))
    result = app.core.drains.drainer.visit(
        app.core.queues.agreed(worker).shards[0], Budget(clock, stopping=stop.is_set)
    )

    assert ([False, True], "stopping", {"done": 1}) == (seen, result.reason, result.counts)


def test_stopping_is_set_when_the_lease_cannot_be_trusted(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """E-8: a handler that wakes after its lease's trust has ended sees it, by either clock."""
    seen: list[bool] = []

    def oversleep(batch: Batch) -> None:
        seen.append(batch.stopping)
        clock.set_wall(clock.time() + 28)
        seen.append(batch.stopping)

    worker = declare(app, queue_name, oversleep, batch_size=2)
    worker.push_many(jobs_of("abcd"))
    result = app.core.drains.drainer.visit(app.core.queues.agreed(worker).shards[0], Budget(clock))

    # Nobody else had come, so what was finished is settled; the rest waits for a lease that can be trusted.
    assert ([False, True], "lease lost", {"done": 2, "returned": 2}) == (seen, result.reason, result.counts)
    assert {"due": 2, "jobs": 2} == left_behind(app, worker)


def test_token_is_the_lease_and_grows(make_app: MakeApp, queue_name: str) -> None:
    """P4: the handler reads its fencing token, the same through a visit, larger with each later one."""
    tokens: list[int] = []
    for _ in range(3):
        app = make_app()
        worker = declare(app, queue_name, lambda batch: tokens.append(batch.token))
        worker.push_many(jobs_of("ab"))
        app.drain()

    assert tokens[::2] == tokens[1::2]
    assert tokens[::2] == sorted(set(tokens))


def test_context_variables_of_a_plain_handler_end_with_its_batch(app: Lowkiq, queue_name: str) -> None:
    """One after the other, too, each batch sees what was set around the drain, and what it sets nobody sees."""
    variable = ContextVar("variable", default="nothing")
    seen: list[str] = []

    def note(_batch: Batch) -> None:
        seen.append(variable.get())
        variable.set("of another batch")

    declare(app, queue_name, note).push_many(jobs_of("abc"))
    variable.set("of the drain")
    app.drain()

    assert ["of the drain"] * 3 == seen
    assert "of the drain" == variable.get()

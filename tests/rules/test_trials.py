"""What is tried in an outage: when the outcome of it is written, and what becomes of the ids that wait behind it."""

from collections.abc import Callable
from typing import Any

import pytest

from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.engine.outage import BATCHES
from lowkiq_lambda.testing import ManualClock
from tests.kit.beside import Declare, declare_coroutines
from tests.kit.handlers import Broken, Notes
from tests.kit.looks import look
from tests.kit.waiting import eventually
from tests.kit.workers import declare, jobs_of

LETTERS = "abcde"
TRIED = BATCHES - 1
"""The first batch of which ids are tried."""


@pytest.fixture(params=[declare, declare_coroutines])
def push(request: pytest.FixtureRequest, app: Lowkiq, queue_name: str) -> Callable[[Notes], type[Worker]]:
    """Declares a worker of one call at a time, and pushes the jobs of four batches."""
    declare_kind: Declare = request.param

    def push_for(notes: Notes) -> type[Worker]:
        worker = declare_kind(app, queue_name, notes, batch_size=len(LETTERS), concurrency=1)
        # Batches are known to be fast, so the first claim brings all of them.
        app.core.drains.drainer._settings.of(app.core.queues.agreed(worker)).timing.observe_run(0.0)
        worker.push_many(jobs_of([f"{batch}{letter}" for batch in range(TRIED + 2) for letter in LETTERS]))
        return worker

    return push_for


def failures_of(app: Lowkiq, worker: type[Worker], job_id: str) -> float:
    """How many failures of it count; 0 while it is on its way from one place to another."""
    job = look(app, worker, job_id)
    return job.retry_count + 1 if job else 0


def renew(app: Lowkiq) -> None:
    """As the thread does that renews the leases of what runs."""
    for visit in [*app.core.drains.drainer._running]:
        visit.session.renew(0.0)


def test_p2_a_slow_failure_is_settled_while_others_are_tried(
    app: Lowkiq, clock: ManualClock, push: Callable[[Notes], type[Worker]]
) -> None:
    """P2: were the process to die, no more would be repeated than has ended within `settle_interval`."""
    counted: list[float] = []

    def then(batch: Batch) -> None:
        if len(batch) == 1:
            clock.advance(1)
        if list(batch) == [f"{TRIED}b"]:
            counted.append(eventually(lambda: failures_of(app, worker, f"{TRIED}a")))
            notes.then = None
        raise Broken

    notes = Notes(then)
    worker = push(notes)
    app.drain()

    assert [1] == counted


def test_an_id_that_is_cancelled_before_it_is_tried_holds_up_no_other(
    app: Lowkiq, push: Callable[[Notes], type[Worker]]
) -> None:
    """Each of the others runs for itself at once, and none waits for the claim to end."""

    def then(batch: Batch) -> None:
        if list(batch) == [f"{TRIED}a"]:
            app.operate(worker).cancel([f"{TRIED}b"])
            renew(app)
        raise Broken

    notes = Notes(then)
    worker = push(notes)
    counts: dict[str, Any] = app.drain()

    assert (1, 0) == (counts.get("cancelled"), counts.get("returned", 0))
    assert [[f"{TRIED}{letter}"] for letter in "acde"] == [
        batch for batch in notes.ids if len(batch) == 1 and batch[0][0] == str(TRIED)
    ]

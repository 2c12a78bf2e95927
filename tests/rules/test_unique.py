"""Pushes that are stored only if their id has no work: each cell of the table in docs/repeats.md."""

from typing import Any

import pytest

from lowkiq_lambda import Lowkiq, Worker
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Notes
from tests.kit.looks import left_behind
from tests.kit.workers import declare


def payloads_of(notes: Notes) -> list[Any]:
    """What ran, batch by batch."""
    return [payloads for batch in notes.batches for payloads in batch.values()]


@pytest.mark.parametrize("unless", ["waiting", "busy"])
def test_a_push_is_dropped_while_its_id_waits(app: Lowkiq, clock: ManualClock, queue_name: str, unless: str) -> None:
    """It is not stored, and says why and when its id is due; once the id is done, the next one is stored."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    later = clock.time() + 60
    first = worker.push(7, "a", due_at=later, unless=unless)
    second = worker.push(7, "b", unless=unless)
    clock.advance(61)
    app.drain()
    third = worker.push(7, "c", unless=unless)
    app.drain()

    assert ["", "waiting", ""] == [one.dropped for one in (first, second, third)]
    assert (later, False) == (second.due_at, second.merged)
    assert ([["a"], ["c"]], {}) == (payloads_of(notes), left_behind(app, worker))


def test_a_push_that_replaces_leaves_one_payload(app: Lowkiq, queue_name: str) -> None:
    """What waits is superseded by it."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    worker.push_many([{"id": 7, "payload": n} for n in range(3)])

    pushed = worker.push(7, "new", on_conflict="replace")
    app.drain()

    assert (True, "") == (pushed.merged, pushed.dropped)
    assert ([["new"]], {}) == (payloads_of(notes), left_behind(app, worker))

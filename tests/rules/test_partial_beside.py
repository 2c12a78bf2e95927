"""Payloads that are marked as done, beside what else holds back or moves their ids."""

from typing import Any

import pytest

from lowkiq_lambda import Lowkiq, Rate
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Notes, failing
from tests.kit.looks import left_behind
from tests.kit.marking import marking, push_payloads
from tests.kit.workers import declare

RATE = Rate(2, per=60)


def of(job_id: str, notes: Notes) -> list[list[Any]]:
    """The payloads of each delivery of the id."""
    return [batch[job_id] for batch in notes.batches if job_id in batch]


@pytest.mark.parametrize(
    "fields",
    [
        {"tenants": "spread"},
        {"tenants": "home", "tenant_rate": RATE},
        {"max_running": 1},
        {"rate": RATE},
        {"rate": RATE, "merge": "never", "batch_size": 2},
    ],
    ids=", ".join,
)
def test_limits_hold_back_what_is_left_alone(
    app: Lowkiq, clock: ManualClock, queue_name: str, fields: dict[str, Any]
) -> None:
    """P3: an id that failed spends another begin for its retry, with the payloads that were not marked."""
    notes = Notes(marking(0, then=failing("t:a", "t:b")))
    worker = declare(app, queue_name, notes, **fields)
    for job_id in ("t:a", "t:b", "t:c"):
        push_payloads(worker, 1, 2, 3, job_id=job_id)
    for _ in range(4):
        app.drain()
        clock.advance(120)
        notes.then = None

    assert [[1, 2, 3], [2, 3]] == of("t:a", notes) == of("t:b", notes)
    assert [[1, 2, 3]] == of("t:c", notes)
    assert {} == left_behind(app, worker)


@pytest.mark.parametrize("to", [1, 5])
def test_a_move_carries_what_is_left(app: Lowkiq, clock: ManualClock, queue_name: str, to: int) -> None:
    """P3, P7: the retry, its count and its payloads are in the new shard; what was marked is in none."""
    notes = Notes(marking(0, 1, then=failing("a")))
    worker = declare(app, queue_name, notes, shards_count=3, merge="never")
    push_payloads(worker, 1, 2, 3, 4)
    app.drain()
    app.operate(worker).reshard(to=to)
    push_payloads(worker, 5)
    clock.advance(120)
    notes.then = None
    app.drain()

    assert [(-1, [1, 2, 3, 4]), (0, [3, 4, 5])] == [(job.retry_count, list(job.payloads)) for (job,) in notes.jobs]
    assert {} == left_behind(app, worker)

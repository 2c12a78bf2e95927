"""What an operator did before a move to another number of shards can be undone after it."""

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from lowkiq_lambda.operate.acts.bulk_progress import Changed
from lowkiq_lambda.operate.queue_operations import QueueOperations
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import FailingHandler
from tests.kit.workers import declare

Act: TypeAlias = Callable[[QueueOperations], Changed]
IDS = [f"id {number}" for number in range(40)]


@pytest.mark.parametrize("to", [1, 5])
@pytest.mark.parametrize(
    "act",
    [
        lambda queue: queue.waiting.delete(everything=True),
        lambda queue: queue.waiting.kill(everything=True),
        lambda queue: queue.morgue.requeue(everything=True, order="last"),
        lambda queue: queue.morgue.delete(everything=True),
        lambda queue: queue.waiting.run_now(everything=True),
    ],
    ids=["delete", "kill", "requeue", "delete the dead", "run now"],
)
def test_rows_go_with_their_ids(make_app: MakeApp, clock: ManualClock, queue_name: str, act: Act, to: int) -> None:
    """All ids come back as they were, and the undo can be undone, whatever shards the queue has by then."""
    app, handler = make_app(), FailingHandler()
    worker = declare(app, handler=handler, queue_name=queue_name, shards_count=3)
    queue = app.operate(worker)

    def look() -> dict[str, Any]:
        return {
            "waiting": {
                job.id: ([*job.payloads], job.due_at and round(job.due_at, 3), job.retry_count, job.error)
                for job in app.operate(worker).waiting.list(limit=1_000)
            },
            "dead": {job.id: ([*job.payloads], job.error) for job in app.operate(worker).morgue.list(limit=1_000)},
        }

    jobs = [{"id": job_id, "payload": n, "score": n} for job_id in IDS for n in (2, 1)]
    worker.push_many([{**job, "id": f"dead {job['id']}"} for job in jobs])
    handler.failing = {f"dead {job_id}" for job_id in IDS}
    app.drain()
    queue.waiting.kill(everything=True)
    worker.push_many(jobs)
    handler.failing = {*IDS}
    app.drain()
    handler.failing = set()
    before = look()
    changed = act(queue)
    after = look()
    clock.advance(150.0)

    queue.reshard(to=to)
    moved = app.operate(worker)

    undone = moved.undo(changed.action_id)
    assert (len(IDS), {}) == (undone.restored, undone.skipped)
    assert before == look()
    redone = moved.undo(undone.action_id)
    assert (len(IDS), {}) == (redone.restored, redone.skipped)
    assert {name: part.keys() for name, part in after.items()} == {name: part.keys() for name, part in look().items()}

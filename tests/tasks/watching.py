"""What tests see of tasks."""

from typing import TYPE_CHECKING, TypeAlias, cast

from lowkiq_lambda import Lowkiq, Worker
from lowkiq_lambda.declare.worker import count_of
from lowkiq_lambda.store.shard.keys import TRACKING, ShardRef, TasksRef
from lowkiq_lambda.tasks.task import Task
from lowkiq_lambda.testing import ManualClock
from tests.kit.tracking import check_items

if TYPE_CHECKING:
    import redis

Counts: TypeAlias = dict[str, int]


def counts(task: Task) -> Counts:
    """Items by status, without those that there are none of."""
    return {status: count for status, count in task.progress().counts.items() if count}


def statuses(task: Task) -> dict[int, str]:
    """The status of each item by its number."""
    found: dict[int, str] = {}
    after = None
    while True:
        page = task.items(after=after, limit=100)
        found |= {item.number: item.status for item in page.items}
        after = page.next
        if after is None:
            return found


def check_shards(app: Lowkiq, worker: type[Worker]) -> None:
    """Raises AssertionError where items and jobs of the worker's queue contradict each other."""
    for index in range(count_of(worker)):
        check_items(
            cast("redis.Redis", app.core.backend.client),
            ShardRef(worker.queue_name, count_of(worker), index, (TRACKING,)),
        )


def forget_tasks(app: Lowkiq) -> None:
    """As if there had never been any."""
    app.core.backend.client.delete(*TasksRef().keys)


def close_unlooked(task: Task, clock: ManualClock) -> None:
    """Close it and die, before the look whether it is complete."""
    now = clock.time()
    task._operations.records.change(task.id, lambda record: record.changed(closed_at=now))

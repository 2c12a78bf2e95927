"""Whether the code that asks is the handler of an item of a task."""

from typing import TYPE_CHECKING

from lowkiq_lambda.engine.batch import running
from lowkiq_lambda.store.shard.keys import TRACKING
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import ReplyShape
from lowkiq_lambda.tasks.record import id_bytes

if TYPE_CHECKING:
    from lowkiq_lambda.core import Core


class TaskRunsReply(ReplyShape, frozen=True):
    """What task_runs.lua answers."""

    scripts = ("task_runs",)
    runs: int


def runs_in(core: "Core", task_id: str) -> bool:
    """Whether a handler of this thread, or coroutine, has an item of the task in flight. Raises BackendError."""
    queue_name, batch = running.get() or ("", None)
    queue = core.queues.get(queue_name)
    if queue is None or batch is None or batch.is_closed:
        return False
    ids = [*batch]
    # A batch is of one shard.
    shard = queue.shards.home_of(ids[0]).using((TRACKING,))
    reader = ShardReader(core.backend, core.config.retry_for)
    (reply,) = reader.ask_each("task_runs", [(shard, (id_bytes(task_id), *ids))])
    return bool(TaskRunsReply.of(reply).runs)

"""Takes what waits for a cancelled task out of its shards: bounded calls, each harmless to repeat."""

import secrets
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from lowkiq_lambda.base.errors import ShardClosed, ShardMoving, is_of_move
from lowkiq_lambda.engine.queue import Queue
from lowkiq_lambda.store.shard.action_replies import BYTES_AT_ONCE, PAYLOADS_AT_ONCE, ActionReply
from lowkiq_lambda.store.shard.keys import TRACKING, ShardRef
from lowkiq_lambda.tasks.items import TaskItems

if TYPE_CHECKING:
    from lowkiq_lambda.store.shard.backend import Backend
    from lowkiq_lambda.store.shard.scripts import Argument

AT_ONCE: Final = 100
"""Items that one call looks at."""
_EVERY_ARRIVAL: Final = 2**48


def withdraw(items: TaskItems, queues: Sequence[Queue], remaining: Callable[[], float]) -> bool:
    """Take the task's items off what waits, as far as the time allows; whether all of these queues were.

    Not those that are on their way from one shard to another. Raises QueueMismatch, BackendError.
    """
    # A list, as each is tried. In this order: what leaves a shard behind this look comes to one of a later look.
    withdrawn = [
        _withdraw_from(items, queue, shard, remaining)
        for queue in queues
        for shard in items.shards_of(queue.worker.queue_name)
    ]
    return all(withdrawn)


def _withdraw_from(items: TaskItems, queue: Queue, shard: ShardRef, remaining: Callable[[], float]) -> bool:
    after = b""
    while remaining() > 0:
        page = items.refs_in(shard, "enqueued", after, AT_ONCE)
        if not page:
            return True
        after = page[-1].number
        try:
            _cancel(items, queue, shard.using((TRACKING,)), [*{one.id: None for one in page}])
        except (ShardClosed, ShardMoving) as error:
            if not is_of_move(error):
                raise
            return False
    return False


def _cancel(items: TaskItems, queue: Queue, shard: ShardRef, ids: Sequence[bytes]) -> None:
    backend: Backend = items.reader.backend
    left, resume, is_sooner = ids, b"", False
    while left:
        token, bounds = secrets.token_hex(12), (_EVERY_ARRIVAL, PAYLOADS_AT_ONCE, BYTES_AT_ONCE)
        args: list[Argument] = [token, queue.worker.merge, *bounds, resume, items.task, *left]
        reply = backend.run("task_cancel", shard, args, retry_for=items.reader.retry_for)
        done = ActionReply.of(reply)
        left, resume, is_sooner = left[done.finished :], done.resume, is_sooner or bool(done.is_sooner)
    if is_sooner:
        backend.publish(shard.channel, str(shard.number))

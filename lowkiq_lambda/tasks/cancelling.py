"""Takes what waits for a cancelled task out of its shards: bounded calls, each harmless to repeat."""

import secrets
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from lowkiq_lambda.base.errors import ShardClosed, ShardMoving, is_of_move
from lowkiq_lambda.engine.queue import Queue
from lowkiq_lambda.store.shard.action_replies import BYTES_AT_ONCE, PAYLOADS_AT_ONCE, ActionReply
from lowkiq_lambda.store.shard.keys import REQUESTS, TRACKING, ShardRef
from lowkiq_lambda.store.shard.notifications import ask_holder
from lowkiq_lambda.tasks.items import TaskItems

if TYPE_CHECKING:
    from lowkiq_lambda.store.shard.backend import Backend
    from lowkiq_lambda.store.shard.scripts import Argument
    from lowkiq_lambda.tasks.views import Status

AT_ONCE: Final = 100
"""Items that one call looks at."""
_EVERY_ARRIVAL: Final = 2**48


def withdraw(items: TaskItems, queues: Sequence[Queue], remaining: Callable[[], float], *, stops_running: bool) -> bool:
    """Take the task's items off what waits, as far as the time allows; whether all of these queues were.

    Not those that are on their way from one shard to another. With `stops_running` the holders of what runs for the
    task alone are asked to end it. Raises QueueMismatch, BackendError.
    """
    # First what waits: what comes back to wait behind that look is deleted by the duty.
    statuses: tuple[Status, ...] = ("enqueued", "running") if stops_running else ("enqueued",)
    # A list, as each is tried. In this order: what leaves a shard behind this look comes to one of a later look.
    withdrawn = [
        _withdraw_from(items, queue, shard, remaining, statuses)
        for queue in queues
        for shard in items.shards_of(queue.worker.queue_name)
    ]
    return all(withdrawn)


def _withdraw_from(
    items: TaskItems, queue: Queue, shard: ShardRef, remaining: Callable[[], float], statuses: "Sequence[Status]"
) -> bool:
    left, after = [*statuses], b""
    while remaining() > 0:
        page = items.refs_in(shard, left[0], after, AT_ONCE)
        if not page:
            left, after = left[1:], b""
            if not left:
                return True
            continue
        after = page[-1].number
        try:
            _cancel(items, queue, shard, [*{one.id: None for one in page}], stops_running="running" in statuses)
        except (ShardClosed, ShardMoving) as error:
            if not is_of_move(error):
                raise
            return False
    return False


def _cancel(items: TaskItems, queue: Queue, shard: ShardRef, ids: Sequence[bytes], *, stops_running: bool) -> None:
    backend: Backend = items.reader.backend
    shard = shard.using((TRACKING, REQUESTS) if stops_running else (TRACKING,))
    left, resume, is_sooner, words = ids, b"", False, dict[str, str]()
    while left:
        token, bounds = secrets.token_hex(12), (_EVERY_ARRIVAL, PAYLOADS_AT_ONCE, BYTES_AT_ONCE)
        task = items.task + b"r" * stops_running
        args: list[Argument] = [token, queue.worker.merge, *bounds, resume, task, *left]
        reply = backend.run("task_cancel", shard, args, retry_for=items.reader.retry_for)
        done = ActionReply.of(reply)
        left, resume, is_sooner = left[done.finished :], done.resume, is_sooner or bool(done.is_sooner)
        words |= done.by_id()
    if is_sooner:
        backend.publish(shard.channel, str(shard.number))
    # A run that a full shard cannot ask for ends by itself, or is asked by the duty.
    if words:
        ask_holder(backend, shard, words.values())

"""A move of a queue to another number of shards, for pages and API: how far it is, and the steps of an operator.

A step carries for a few seconds only. Housekeeping goes on with the rest, or the next step does.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from lowkiq_lambda.dashboard import activity
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.reshard.group import Remaining
from lowkiq_lambda.store.shard.layout import Layout
from lowkiq_lambda.views.shards import ShardDetails

CARRIES_FOR: Final = 3.0
"""Seconds for which a request carries. A group that begins within them tells drains and housekeeping of the move."""
BUSY: Final = "Nothing was turned round: a group is under way. Try again in a few seconds."
_MICROS: Final = 1_000_000


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """Where a queue is on its way from `shards_count` shards to `moves_to`; null where it is not on its way.

    `groups`: how many move one after the other; `moved`: those that have. `ids_left`: waiting and dead ids in the old
    shards, counted now. `began_at`, `changed_at`: Unix seconds of the beginning, or of the turn, and of the last step.
    `is_returning`: the move was turned round.
    """

    queue: str
    shards_count: int
    moves_to: int | None
    groups: int = 0
    moved: int = 0
    ids_left: int = 0
    began_at: float | None = None
    changed_at: float | None = None
    is_returning: bool = False


def move_of(queue: str, layout: Layout, shards: Sequence[ShardDetails]) -> Move:
    """Where the queue is, by its layout and its shards as they were read with it."""
    if not layout.is_moving:
        return Move(queue=queue, shards_count=layout.after, moves_to=None)
    return Move(
        queue=queue,
        shards_count=layout.before,
        moves_to=layout.after,
        groups=layout.groups,
        moved=layout.groups - len(layout.left),
        ids_left=sum(shard.length + shard.morgue_length for shard in shards if shard.index < layout.before),
        # Epochs are times of the server's clock.
        began_at=layout.epoch / _MICROS,
        changed_at=layout.at,
        is_returning=layout.is_returning,
    )


def read_move(context: RequestContext, worker: type[Worker[Any]]) -> Move:
    """Where the queue of the worker is now. Raises LowkiqError."""
    queries = context.app.operate(worker)
    return move_of(worker.queue_name, queries.reader.shards.layout, queries.shards())


def begin(context: RequestContext, worker: type[Worker[Any]], to: int) -> None:
    """Begin a move, or go on with the one that leads there. Raises ValueError for the number, and LowkiqError."""
    resharding = context.app.operate(worker).resharding()
    before = resharding.layout
    begun = resharding.begin(to)
    if begun.epoch != before.epoch:
        way = f"from {begun.before} to {begun.after} shards"
        activity.note(context, "reshard", worker.queue_name, way, begun.after)
    _carry(context, worker)


def go_on(context: RequestContext, worker: type[Worker[Any]]) -> None:
    """Go on with the move for some seconds, if there is one. Raises LowkiqError."""
    layout = context.app.operate(worker).resharding().layout
    if layout.is_moving:
        way = f"goes on from {layout.before} to {layout.after} shards"
        activity.note(context, "reshard", worker.queue_name, way, layout.after)
    _carry(context, worker)


def turn_round(context: RequestContext, worker: type[Worker[Any]]) -> bool:
    """Turn the move round, if there is one; False if a group was under way for too long. Raises LowkiqError."""
    resharding = context.app.operate(worker).resharding()
    before = resharding.layout
    turned = resharding.abort(lambda *_: None, _budget(context))
    context.app.core.queues.of(worker).doubt()
    if turned.epoch != before.epoch and turned.is_returning:
        way = f"turned round, from {turned.before} to {turned.after} shards"
        activity.note(context, "reshard", worker.queue_name, way, turned.after)
    return turned.is_returning or not turned.is_moving


def _carry(context: RequestContext, worker: type[Worker[Any]]) -> None:
    context.app.operate(worker).resharding().go_on(lambda *_: None, _budget(context))
    # This process is to show the shards that there are now.
    context.app.core.queues.of(worker).doubt()


def _budget(context: RequestContext) -> Remaining:
    clock = context.app.core.clock
    ends_at = clock.monotonic() + CARRIES_FOR
    return lambda: ends_at - clock.monotonic()

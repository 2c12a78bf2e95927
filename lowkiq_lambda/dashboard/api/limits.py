"""Operations on the limits of a queue."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from lowkiq_lambda.dashboard import activity
from lowkiq_lambda.dashboard.api.actions import WholeQueue
from lowkiq_lambda.dashboard.api.requests import QueueName, QueueParams, worker_named
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.jobs.rate import Rate
from lowkiq_lambda.operate.presentation.limit_words import change_words


class RateParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """At most `ids` begin in any `per` seconds."""

    ids: Annotated[int, Meta(ge=1, le=2**53)]
    per: Annotated[float, Meta(ge=0.1, le=1e9)]


class LimitsParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of a queue. Null: no such limit. A limit that is absent stays as it is."""

    queue: QueueName
    max_running: Annotated[int, Meta(ge=1, le=100_000)] | UnsetType | None = UNSET
    rate: RateParams | UnsetType | None = UNSET


class RateResponse(msgspec.Struct, frozen=True, kw_only=True):
    """At most `ids` begin in any `per` seconds."""

    ids: int
    per: float


class PermitResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A visit that has a permit. `until`: the end of the permit unless it is prolonged, in Unix seconds."""

    shard: int
    until: float


class WaitResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A queue that this one waits for, and the number of its shards that are visited now."""

    queue: str
    running: int


class LimitsResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a queue at the time `at`. Times are Unix seconds by the server's clock.

    `max_running`, `rate`: the limits that count; null: no such limit. `is_set`: an operator set one of them.
    `permits`: visits that have one of the permits. `offered`: shards that a free permit is kept for. `wait_list`:
    shards that wait, the next one first. `ids_left`: the number of ids that may begin now; null without a rate.
    `next_id_at`: the time when another id may begin, if none may now. `waits_for`: the queues that this one waits for.
    `undone`: shards that the last change has not reached; make it again.
    """

    queue: str
    at: float
    max_running: int | None
    rate: RateResponse | None
    is_set: bool
    permits: list[PermitResponse]
    offered: list[int]
    wait_list: list[int]
    ids_left: int | None
    next_id_at: float | None
    waits_for: list[WaitResponse]
    undone: list[int]


def limits(context: RequestContext, params: QueueParams) -> LimitsResponse:
    """Get the limits of a queue, the visits that have its permits, and the shards that wait."""
    return _response(context, worker_named(context, params.queue))


def set_limits(context: RequestContext, params: LimitsParams) -> LimitsResponse:
    """Set limits of a queue. They count instead of those that code declares, until they are reset."""
    worker = worker_named(context, params.queue)
    changes: dict[str, Any] = {}
    if not isinstance(params.max_running, UnsetType):
        changes["max_running"] = params.max_running
    if not isinstance(params.rate, UnsetType):
        changes["rate"] = params.rate and Rate(params.rate.ids, per=params.rate.per)
    if changes:
        context.app.operate(worker).limits.set(**changes)
        activity.note(context, "set limits", params.queue, change_words(changes), _shards(context, params.queue))
    return _response(context, worker)


def reset(context: RequestContext, params: WholeQueue) -> LimitsResponse:
    """Have the limits that code declares count again."""
    worker = worker_named(context, params.queue)
    context.app.operate(worker).limits.reset()
    activity.note(context, "reset limits", params.queue, "all shards", _shards(context, params.queue))
    return _response(context, worker)


def _shards(context: RequestContext, queue: str) -> int:
    return len(context.app.core.queues[queue].shards)


def _response(context: RequestContext, worker: type[Worker[Any]]) -> LimitsResponse:
    view = context.app.operate(worker).limits.explain()
    return LimitsResponse(
        queue=view.queue_name,
        at=view.at,
        max_running=view.max_running,
        rate=None if view.rate is None else RateResponse(ids=view.rate.ids, per=view.rate.per),
        is_set=view.is_set,
        permits=[PermitResponse(shard=permit.shard, until=permit.until) for permit in view.permits],
        offered=[*view.offered],
        wait_list=[*view.wait_list],
        ids_left=view.ids_left,
        next_id_at=view.next_id_at,
        waits_for=[WaitResponse(queue=wait.queue_name, running=wait.running) for wait in view.waits_for],
        undone=[*view.undone],
    )

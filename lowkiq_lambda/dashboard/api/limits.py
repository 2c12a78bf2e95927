"""Operations on the limits of a queue."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from lowkiq_lambda.dashboard import activity
from lowkiq_lambda.dashboard.api.requests import QueueAct, QueueParams, worker_named
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.jobs.rate import Rate
from lowkiq_lambda.operate.presentation.limit_words import change_words
from lowkiq_lambda.operate.presentation.limits import LimitsResponse, limits_response


class RateParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """At most `ids` begin in any `per` seconds."""

    ids: Annotated[int, Meta(ge=1, le=2**53)]
    per: Annotated[float, Meta(ge=0.1, le=1e9)]


class LimitsParams(QueueAct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of a queue. Null: no such limit. A limit that is absent stays as it is."""

    max_running: Annotated[int, Meta(ge=1, le=100_000)] | UnsetType | None = UNSET
    rate: RateParams | UnsetType | None = UNSET


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


def reset(context: RequestContext, params: QueueAct) -> LimitsResponse:
    """Have the limits that code declares count again."""
    worker = worker_named(context, params.queue)
    context.app.operate(worker).limits.reset()
    activity.note(context, "reset limits", params.queue, "all shards", _shards(context, params.queue))
    return _response(context, worker)


def _shards(context: RequestContext, queue: str) -> int:
    return len(context.app.core.queues[queue].shards)


def _response(context: RequestContext, worker: type[Worker[Any]]) -> LimitsResponse:
    return limits_response(context.app.operate(worker).limits.explain())

"""Operations on how much of a queue runs at once: its limits, and the number of its shards."""

from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from lowkiq_lambda.base.errors import BackendError, LowkiqError, QueueMismatch
from lowkiq_lambda.dashboard import activity, moving
from lowkiq_lambda.dashboard.api.operations import ApiError
from lowkiq_lambda.dashboard.api.requests import QueueAct, QueueParams, worker_named
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.declare.declaring import MAX_SHARDS
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


class Reshard(QueueAct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A queue, and the number of shards that it is to have."""

    shards_count: Annotated[int, Meta(ge=1, le=MAX_SHARDS, description="The new number of shards.")]


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


def state(context: RequestContext, params: QueueParams) -> moving.Move:
    """Get whether a queue is on its way to another number of shards, and how far it has come."""
    return moving.read_move(context, worker_named(context, params.queue))


def reshard(context: RequestContext, params: Reshard) -> moving.Move:
    """Begin a move to another number of shards, or go on with it. Housekeeping carries what does not fit in the call.

    A call with another number than that of a move that is under way is refused; `turn_round` ends that move.
    """
    worker = worker_named(context, params.queue)
    try:
        moving.begin(context, worker, params.shards_count)
    except (BackendError, QueueMismatch):
        raise
    except LowkiqError as error:
        raise ApiError(HTTPStatus.CONFLICT, "shards_changed", str(error)) from error
    return moving.read_move(context, worker)


def turn_round(context: RequestContext, params: QueueAct) -> moving.Move:
    """Turn a move round: the groups that have moved walk back, after two minutes of rest.

    It may be asked for where nothing is left to do.
    """
    worker = worker_named(context, params.queue)
    try:
        is_turned = moving.turn_round(context, worker)
    except (BackendError, QueueMismatch):
        raise
    except LowkiqError as error:
        raise ApiError(HTTPStatus.CONFLICT, "shards_changed", str(error)) from error
    if not is_turned:
        raise ApiError(HTTPStatus.CONFLICT, "shards_changed", moving.BUSY)
    return moving.read_move(context, worker)


def _shards(context: RequestContext, queue: str) -> int:
    return len(context.app.core.queues[queue].shards)


def _response(context: RequestContext, worker: type[Worker[Any]]) -> LimitsResponse:
    return limits_response(context.app.operate(worker).limits.explain())

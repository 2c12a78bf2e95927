"""Operations on how much of a queue runs at once: its limits, and the number of its shards."""

from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from lowkiq_lambda.base.errors import BackendError, DeclarationError, LowkiqError, QueueMismatch
from lowkiq_lambda.dashboard import activity, moving
from lowkiq_lambda.dashboard.api.operations import ApiError
from lowkiq_lambda.dashboard.api.requests import QueueAct, QueueParams, ReasonedAct, worker_named
from lowkiq_lambda.dashboard.context import NO_LIMITER, RequestContext
from lowkiq_lambda.declare.declaring import MAX_SHARDS
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.jobs.limiting import with_numbers
from lowkiq_lambda.jobs.rate import Rate
from lowkiq_lambda.operate.inspect.activity import OF_NO_QUEUE
from lowkiq_lambda.operate.presentation.limit_words import change_words
from lowkiq_lambda.operate.presentation.limits import (
    LimiterResponse,
    LimitsResponse,
    limiter_response,
    limits_response,
)

if TYPE_CHECKING:
    from lowkiq_lambda.limiters.limiter import Limiter


class RateParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """At most `ids` begin in any `per` seconds."""

    ids: Annotated[int, Meta(ge=1, le=2**53)]
    per: Annotated[float, Meta(ge=0.1, le=1e9)]


class LimitsParams(QueueAct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of a queue. Null: no such limit. A limit that is absent stays as it is."""

    max_running: Annotated[int, Meta(ge=1, le=100_000)] | UnsetType | None = UNSET
    rate: RateParams | UnsetType | None = UNSET


class LimiterParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The key of limiters."""

    key: Annotated[str, Meta(max_length=200, description="The key whose use is read. Default: the empty one.")] = ""


class LimiterAct(ReasonedAct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A limiter of handlers."""

    name: Annotated[str, Meta(min_length=1, max_length=200, description="Its name, as code declares it.")]


class SetLimiter(LimiterAct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A limit of the kind that code declares."""

    most: Annotated[int, Meta(ge=1, le=2**53, description="Points or places.")]
    seconds: Annotated[float, Meta(ge=0.1, le=1e9, description="Their period, or how long a place is held.")]


class LimitersResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The limiters that the code of the app declares."""

    limiters: list[LimiterResponse]


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


def limiters(context: RequestContext, params: LimiterParams) -> LimitersResponse:
    """Get the limiters that handlers ask, each with the use of one key."""
    declared = context.app.operate.limiters()
    try:
        return LimitersResponse(limiters=[limiter_response(limiter.explain(params.key)) for limiter in declared])
    except ValueError as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, "bad_parameter", f"{error}") from error


def set_limiter(context: RequestContext, params: SetLimiter) -> LimiterResponse:
    """Set the limit of a limiter. It counts instead of that of code, in all processes within a second."""
    limiter = _limiter_named(context, params.name)
    try:
        limit = with_numbers(limiter.limit, params.most, params.seconds)
    except DeclarationError as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, "bad_body", str(error)) from error
    limiter.set(limit)
    activity.note(context, "set limiter", OF_NO_QUEUE, f"{limiter.name}: {limit!r}", 1)
    return limiter_response(limiter.explain())


def reset_limiter(context: RequestContext, params: LimiterAct) -> LimiterResponse:
    """Have the limit that code declares count again."""
    limiter = _limiter_named(context, params.name)
    limiter.reset()
    activity.note(context, "reset limiter", OF_NO_QUEUE, limiter.name, 1)
    return limiter_response(limiter.explain())


def _limiter_named(context: RequestContext, name: str) -> "Limiter":
    limiter = context.limiter_named(name)
    if limiter is None:
        raise ApiError(HTTPStatus.NOT_FOUND, "unknown_limiter", NO_LIMITER)
    return limiter


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

"""Moves of a queue to another number of shards."""

from http import HTTPStatus
from typing import Annotated

from msgspec import Meta

from lowkiq_lambda.base.errors import BackendError, LowkiqError, QueueMismatch
from lowkiq_lambda.dashboard import moving
from lowkiq_lambda.dashboard.api.operations import ApiError
from lowkiq_lambda.dashboard.api.requests import QueueAct, QueueParams, worker_named
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.declare.declaring import MAX_SHARDS


class Reshard(QueueAct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A queue, and the number of shards that it is to have."""

    shards_count: Annotated[int, Meta(ge=1, le=MAX_SHARDS, description="The new number of shards.")]


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

"""Payloads of an id as an edit names them, and the edit of one."""

from http import HTTPStatus
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from lowkiq_lambda.base.errors import JobError
from lowkiq_lambda.dashboard.api.operations import ApiError
from lowkiq_lambda.dashboard.api.requests import QueueName, worker_named
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.editing import NOT_ALLOWED, NotSeen, PayloadEdit, edit_payload, is_seen
from lowkiq_lambda.operate.acts.editing import EditRefused
from lowkiq_lambda.operate.presentation.payload_json import payload_json
from lowkiq_lambda.views.activity import LONGEST_REASON


class JobOfPayloads(msgspec.Struct, frozen=True, kw_only=True):
    """A job of a queue."""

    queue: QueueName
    id: Annotated[str, Meta(min_length=1, max_length=65_536, description="The id of the job.")]


class EditablePayload(msgspec.Struct, frozen=True, kw_only=True):
    """A payload; null if the app hides parts of it, for then it cannot be edited. `digest`: SHA-1 of its bytes."""

    place: Literal["waiting", "dead"]
    arrival: int
    score: float
    digest: str
    payload: msgspec.Raw | None


class PayloadsResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The payloads of the job that wait, then those that are dead."""

    payloads: list[EditablePayload]


class EditParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another payload for the place of one. `digest`: the `digest` of the payload that was looked at."""

    queue: QueueName
    id: Annotated[str, Meta(min_length=1, max_length=65_536)]
    arrival: Annotated[int, Meta(ge=0, lt=2**48)]
    payload: Any
    reason: Annotated[str, Meta(min_length=1, max_length=LONGEST_REASON)]
    digest: Annotated[str, Meta(min_length=40, max_length=40)] | msgspec.UnsetType = msgspec.UNSET
    keep_cursor: bool = False


class EditResult(msgspec.Struct, frozen=True, kw_only=True):
    """The place of the payload, and whether it has become one with an equal one. `action_id`: as of other actions."""

    place: Literal["waiting", "dead"]
    merged: bool
    action_id: str | None


def payloads(context: RequestContext, params: JobOfPayloads) -> PayloadsResponse:
    """Get the payloads of a job with the arrival numbers by which an edit names them."""
    worker = worker_named(context, params.queue)
    try:
        listed = context.app.operate(worker).payloads(params.id)
    except JobError as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, "bad_parameter", f"Invalid id: {error}.") from error
    return PayloadsResponse(
        payloads=[
            EditablePayload(
                place=one.place,
                arrival=one.arrival,
                score=one.score,
                digest=one.digest,
                payload=msgspec.Raw(payload_json(one.payload))
                if is_seen(context, params.queue, params.id, one.payload)
                else None,
            )
            for one in listed
        ]
    )


def edit(context: RequestContext, params: EditParams) -> EditResult:
    """Put another payload in the place of one that waits or is dead. It needs a right of its own."""
    worker = worker_named(context, params.queue)
    if context.visitor is None or not context.visitor.may_edit:
        raise ApiError(HTTPStatus.FORBIDDEN, "forbidden", NOT_ALLOWED)
    try:
        digest = None if isinstance(params.digest, msgspec.UnsetType) else params.digest
        how = PayloadEdit(params.id, params.arrival, params.payload, params.reason, digest, params.keep_cursor)
        edited = edit_payload(context, worker, how)
    except NotSeen as error:
        raise ApiError(HTTPStatus.FORBIDDEN, "forbidden", str(error)) from error
    except EditRefused as error:
        raise ApiError(HTTPStatus.CONFLICT, "changed", str(error)) from error
    except (JobError, ValueError) as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, "bad_body", str(error)) from error
    return EditResult(place=edited.place, merged=edited.merged, action_id=edited.action_id or None)

"""Edits a payload for a visitor who may, unless a mask hides it from them, with a line in the activity."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from lowkiq_lambda.dashboard import activity
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.operate.acts.editing import Edited, EditRefused, StoredPayload, checked_reason
from lowkiq_lambda.operate.presentation.formatting import visible
from lowkiq_lambda.operate.presentation.masking import Masking

NOT_ALLOWED = "You may not edit payloads: that is a right of its own, which editors have."


class NotSeen(ValueError):
    """A mask hides parts of the payload, and what is not seen cannot be edited."""


def is_seen(context: RequestContext, queue_name: str, job_id: str, payload: object) -> bool:
    """Whether the visitor sees the payload as it is."""
    return not isinstance(payload, bytes) and Masking(context.mask, queue_name).shows(job_id, payload)


class PayloadEdit(NamedTuple):
    """An edit as a visitor asks for it. `digest`: that of the payload that they saw."""

    job_id: str
    arrival: int
    payload: object
    reason: str
    digest: str | None
    keep_cursor: bool


def edit_payload(context: RequestContext, worker: type[Worker[Any]], edit: PayloadEdit) -> Edited:
    """Edit it. Raises ValueError, of which NotSeen, EditRefused and JobError are some, and BackendError."""
    reason, queue = checked_reason(edit.reason), context.app.operate(worker)
    job_id, arrival, name = edit.job_id, edit.arrival, worker.queue_name
    old = _of_number(queue.payloads(job_id), arrival)
    if old is not None and not is_seen(context, name, job_id, old.payload):
        raise NotSeen("The app hides parts of this payload from this page, and what is not seen cannot be edited.")
    if old is None:
        raise EditRefused(f"Payload {arrival} of {job_id!r} neither waits nor lies in the morgue any more: look again.")
    edited = queue.edit(
        job_id,
        arrival,
        edit.payload,
        reason=reason,
        keep_cursor=edit.keep_cursor,
        digest=edit.digest or old.digest,
        by=context.visitor_name,
    )
    activity.note(context, "edit", name, f"payload {arrival} of {visible(job_id)}", 1, action_id=edited.action_id)
    return edited


def _of_number(payloads: Sequence[StoredPayload], arrival: int) -> StoredPayload | None:
    return next((one for one in payloads if one.arrival == arrival), None)

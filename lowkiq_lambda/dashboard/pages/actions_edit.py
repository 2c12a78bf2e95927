"""The form that edits a payload, and the edit."""

from collections.abc import Mapping

import msgspec
from starlette.responses import Response

from lowkiq_lambda.base.errors import JobError
from lowkiq_lambda.dashboard.context import NO_QUEUE, RequestContext
from lowkiq_lambda.dashboard.editing import NOT_ALLOWED, NotSeen, PayloadEdit, edit_payload, is_seen
from lowkiq_lambda.dashboard.pages.rows import shown_id
from lowkiq_lambda.operate.acts.editing import EditRefused
from lowkiq_lambda.operate.presentation.payload_json import payload_json

_MOST = 20
"""Payloads on the page."""


class PayloadForm(msgspec.Struct, frozen=True, kw_only=True):
    """A payload as the page has it. `text`: None if the app hides parts of it."""

    place: str
    arrival: int
    score: float
    digest: str
    text: str | None


def ask(context: RequestContext) -> Response:
    """The page with a form for each payload of an id."""
    worker, job_id = context.worker_named(context.query.get("queue", "")), context.query.get("id", "")
    if worker is None:
        return context.refuse(404, NO_QUEUE)
    if context.visitor is None or not context.visitor.may_edit:
        return context.refuse(403, NOT_ALLOWED)
    try:
        listed = context.app.operate(worker).payloads(job_id)
    except JobError as error:
        return context.refuse(400, f"Invalid id: {error}.")
    forms = [
        PayloadForm(
            place=one.place,
            arrival=one.arrival,
            score=one.score,
            digest=one.digest,
            text=msgspec.json.format(payload_json(one.payload), indent=2).decode(errors="replace")
            if is_seen(context, worker.queue_name, job_id, one.payload)
            else None,
        )
        for one in listed[:_MOST]
    ]
    return context.render(
        "actions_edit.html",
        queue=worker.queue_name,
        id=job_id,
        name=shown_id(job_id),
        forms=forms,
        more=len(listed) - len(forms),
    )


def act(context: RequestContext) -> Response:
    """Edit; a redirect to the job."""
    worker, job_id = context.worker_named(context.form.get("queue", "")), context.form.get("id", "")
    if worker is None:
        return context.refuse(404, NO_QUEUE)
    if context.visitor is None or not context.visitor.may_edit:
        return context.refuse(403, NOT_ALLOWED)
    try:
        edit_payload(context, worker, _edit_of(context.form, job_id))
    except NotSeen as error:
        return context.refuse(403, str(error))
    except (JobError, ValueError) as error:
        return context.refuse(409 if isinstance(error, EditRefused) else 400, f"Nothing was changed. {error}")
    return context.redirect("job", queue=worker.queue_name, id=job_id)


def _edit_of(form: Mapping[str, str], job_id: str) -> PayloadEdit:
    """The edit that the form asks for. Raises ValueError."""
    arrival = form.get("arrival", "")
    if not (arrival.isascii() and arrival.isdigit()):
        raise ValueError("The form has no arrival number.")
    try:
        payload = msgspec.json.decode(form.get("payload", "").encode())
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise ValueError(f"The payload is not JSON: {error}.") from error
    keeps_cursor, digest = form.get("keep_cursor") == "1", form.get("seen") or None
    return PayloadEdit(job_id, int(arrival), payload, form.get("reason", ""), digest, keeps_cursor)

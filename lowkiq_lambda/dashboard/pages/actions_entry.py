"""The form that makes a schedule entry at run time, or replaces one: tried first, then saved."""

from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, Final

import msgspec
from starlette.responses import Response

from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.dashboard import activity
from lowkiq_lambda.dashboard.context import NO_ACTION, NO_QUEUE, RequestContext
from lowkiq_lambda.dashboard.durations import seconds_of
from lowkiq_lambda.dashboard.editing import is_seen
from lowkiq_lambda.dashboard.entries import named_view, payload_of, target
from lowkiq_lambda.dashboard.pages.schedules import NO_ENTRY
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.operate.presentation.moments import moment_of
from lowkiq_lambda.operate.presentation.payload_json import payload_json
from lowkiq_lambda.schedules.entry import OPTIONS, ScheduleEntry
from lowkiq_lambda.schedules.times import Times, parse_at, parse_times
from lowkiq_lambda.schedules.zones import zone_of

FIELDS: Final = ("name", "id", "kind", "times", "tz", "payload", "off", "reason")
NOT_AT_RUN_TIME: Final = "Code declares this entry, so only code changes it."
TAKEN: Final = "The queue has an entry of this name: choose another, or change that one on its page."
_BLANK: Final[Mapping[str, str]] = {**dict.fromkeys(FIELDS, ""), "kind": "cron", "tz": "UTC"}
_TRIED: Final = 5
"""Planned times that a try shows."""


class FieldError(Exception):
    """A field that cannot be; its text is a sentence for people."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


def ask(context: RequestContext) -> Response:
    """The form: of a run-time entry, or for a new one."""
    worker, name = context.worker_named(context.query.get("queue", "")), context.query.get("name", "")
    if worker is None:
        return context.refuse(404, NO_QUEUE)
    if not name:
        return _form(context, worker, _BLANK, None)
    try:
        entry = _replaced(context, worker, name)
    except FieldError as error:
        return context.refuse(400, str(error))
    if entry is None:
        return context.refuse(404, NO_ENTRY)
    fields = {
        **_BLANK,
        "name": entry.name,
        "id": entry.id,
        "kind": entry.times.kind,
        "times": entry.times.text,
        "tz": entry.tz,
        "off": "" if entry.enabled else "1",
        "payload": msgspec.json.format(payload_json(entry.payload), indent=2).decode(errors="replace")
        if _is_seen(context, entry)
        else "",
    }
    return _form(context, worker, fields, entry)


def act(context: RequestContext) -> Response:
    """Tries the entry, which changes nothing, or saves it and leads to its page."""
    form, do = context.form, context.form.get("do", "")
    worker = context.worker_named(form.get("queue", ""))
    if worker is None:
        return context.refuse(404, NO_QUEUE)
    if do not in {"try", "save"}:
        return context.refuse(400, NO_ACTION)
    fields = {field: form.get(field, "") for field in FIELDS}
    replaced: ScheduleEntry | None = None
    try:
        if old_name := form.get("replaces", ""):
            fields["name"] = old_name
            replaced = _replaced(context, worker, old_name)
        if replaced is None:
            _check_free(context, worker, fields["name"].strip())
        entry = _draft(context, worker, fields, replaced)
        if do == "try":
            return _form(
                context, worker, fields, replaced, tried=[*islice(entry.times.after(context.site.now()), _TRIED)]
            )
        context.app.schedules.put_entry(worker, entry)
    except FieldError as error:
        return _form(context, worker, fields, replaced, wrong={error.field: str(error)}, status=400)
    except DeclarationError as error:
        return _form(context, worker, fields, replaced, wrong={"": str(error)}, status=400)
    times = {entry.times.kind: entry.times.text}
    activity.note(context, "put", worker.queue_name, target(entry.name), 1, job=entry.id, **times)
    return context.redirect("schedule", queue=worker.queue_name, name=entry.name)


def _form(
    context: RequestContext,
    worker: type[Worker[Any]],
    fields: Mapping[str, str],
    replaced: ScheduleEntry | None,
    *,
    status: int = 200,
    **more: object,
) -> Response:
    return context.render(
        "actions_entry.html",
        status,
        queue=worker.queue_name,
        fields=fields,
        is_new=replaced is None,
        is_hidden=replaced is not None and not _is_seen(context, replaced),
        **{"wrong": {}, "tried": None, **more},
    )


def _replaced(context: RequestContext, worker: type[Worker[Any]], name: str) -> ScheduleEntry | None:
    """The run-time entry of that name; None if there is none. Raises FieldError if code declares it."""
    view = named_view(context, worker, name)
    if view is not None and view.source != "run time":
        raise FieldError("name", NOT_AT_RUN_TIME)
    return view.entry if view else None


def _check_free(context: RequestContext, worker: type[Worker[Any]], name: str) -> None:
    if named_view(context, worker, name) is not None:
        raise FieldError("name", TAKEN)


def _is_seen(context: RequestContext, entry: ScheduleEntry) -> bool:
    return is_seen(context, entry.queue_name, entry.id, payload_of(context, entry))


def _draft(
    context: RequestContext, worker: type[Worker[Any]], fields: Mapping[str, str], replaced: ScheduleEntry | None
) -> ScheduleEntry:
    """The entry of the form; options that the form does not have stay. Raises FieldError, DeclarationError."""
    for field, sentence in (("name", "Give the entry a name."), ("id", "Give the id of the job.")):
        if not fields[field].strip():
            raise FieldError(field, sentence)
    times = _times(fields, context.site.now())
    options = {option: getattr(replaced, option) for option in OPTIONS} if replaced else {}
    is_kept = replaced is not None and not fields["payload"].strip() and not _is_seen(context, replaced)
    if not is_kept:
        options["payload"] = _payload(fields["payload"])
    options["enabled"] = not fields["off"]
    return context.app.schedules.draft(worker, times, id=fields["id"].strip(), name=fields["name"].strip(), **options)


def _times(fields: Mapping[str, str], now: float) -> Times:
    tz, text = fields["tz"].strip() or "UTC", fields["times"].strip()
    try:
        zone_of(tz)
    except DeclarationError as error:
        raise FieldError("tz", str(error)) from error
    if fields["kind"] == "every":
        with suppress(ValueError):
            seconds = seconds_of(text)
            text = text if seconds is None else f"{seconds!r}"
    try:
        is_once = fields["kind"] == "at"
        times = parse_at(moment_of(text, now, ahead=True), tz) if is_once else parse_times(fields["kind"], text, tz)
        times.check()
    except (DeclarationError, ValueError) as error:
        raise FieldError("times", str(error)) from error
    return times


def _payload(text: str) -> object:
    if not text.strip():
        return ""
    try:
        return msgspec.json.decode(text.encode())
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise FieldError("payload", f"The payload is not JSON: {error}.") from error

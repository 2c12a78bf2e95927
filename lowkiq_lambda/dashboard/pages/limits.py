"""The limits of a queue: their values, the shards with permits and on the wait list; and the form that changes them."""

from collections.abc import Mapping
from typing import Final

from starlette.responses import Response

from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.dashboard import activity
from lowkiq_lambda.dashboard.context import NO_ACTION, NO_QUEUE, RequestContext
from lowkiq_lambda.dashboard.durations import seconds_of
from lowkiq_lambda.dashboard.pages.parts import chosen_worker, no_queue
from lowkiq_lambda.declare.declared_limits import check_max_running
from lowkiq_lambda.jobs.rate import Rate
from lowkiq_lambda.operate.presentation.limit_words import change_words
from lowkiq_lambda.operate.presentation.limits import limiter_response
from lowkiq_lambda.views.limits import LimitsView

_FIELDS: Final = ("permits", "ids", "per")
_LONGEST: Final = 100
"""Characters of a refused field that the form shows again."""


def show(context: RequestContext) -> Response:
    """The page, or its live region."""
    worker = chosen_worker(context)
    if worker is None:
        return no_queue(context)
    key = context.query.get("key", "")
    try:
        limiters = [limiter_response(limiter.explain(key)) for limiter in context.app.operate.limiters()]
    except ValueError as error:
        return context.refuse(400, str(error))
    return context.render(
        "limits_live.html" if context.is_partial else "limits.html",
        queue=worker.queue_name,
        limits=context.app.operate(worker).limits.explain(),
        shards=context.app.operate(worker).shards(),
        weight=worker.weight,
        key=key,
        limiters=limiters,
    )


def ask(context: RequestContext) -> Response:
    """The form, or the question whether to reset; nothing is changed yet."""
    worker, do = chosen_worker(context), context.query.get("do", "")
    if worker is None:
        return no_queue(context)
    if do not in {"set", "reset"}:
        return context.refuse(400, NO_ACTION)
    limits = context.app.operate(worker).limits.explain()
    typed = {name: context.query[name] for name in _FIELDS if name in context.query}
    return context.render(
        "actions_limits.html",
        queue=worker.queue_name,
        do=do,
        limits=limits,
        fields={**dict.fromkeys(_FIELDS, ""), **typed} if typed else _fields(limits),
        wrong=_wrong(typed) if typed else "",
        declared=worker,
        reason=context.query.get("reason", ""),
    )


def act(context: RequestContext) -> Response:
    """Changes the limits, and redirects to the page that shows them."""
    form, queue = context.form, context.form.get("queue", "")
    worker, do = context.worker_named(queue), form.get("do", "")
    if worker is None:
        return context.refuse(404, NO_QUEUE)
    limits, shards = context.app.operate(worker).limits, len(context.app.core.queues[queue].shards)
    if do == "reset":
        limits.reset()
        activity.note(context, "reset limits", queue, "all shards", shards)
        return context.redirect("limits", queue=queue)
    if do != "set":
        return context.refuse(400, NO_ACTION)
    typed = {name: form.get(name, "").strip() for name in _FIELDS}
    if _wrong(typed):
        again = {name: value[:_LONGEST] for name, value in typed.items()}
        return context.redirect("actions/limits", queue=queue, do="set", reason=context.reason, **again)
    most, rate = _most(typed["permits"]), _rate(typed["ids"], typed["per"])
    limits.set(max_running=most, rate=rate)
    activity.note(context, "set limits", queue, change_words({"max_running": most, "rate": rate}), shards)
    return context.redirect("limits", queue=queue)


def _fields(limits: LimitsView) -> dict[str, str]:
    """What the form shows first: the limits that count."""
    return {
        "permits": "" if limits.max_running is None else str(limits.max_running),
        "ids": "" if limits.rate is None else str(limits.rate.ids),
        "per": "" if limits.rate is None else f"{limits.rate.per:.3f}".rstrip("0").rstrip(".") + " s",
    }


def _wrong(typed: Mapping[str, str]) -> str:
    """Why the fields are refused; empty if they are not."""
    try:
        _most(typed.get("permits", ""))
        _rate(typed.get("ids", ""), typed.get("per", ""))
    except (ValueError, DeclarationError) as error:
        return str(error)
    return ""


def _most(text: str) -> int | None:
    """Raises DeclarationError."""
    if not text:
        return None
    most = int(text) if text.isdecimal() else text
    check_max_running("The number of shards", most)
    return int(most)


def _rate(ids: str, per: str) -> Rate | None:
    """Raises ValueError, DeclarationError."""
    if not ids and not per:
        return None
    if not ids.isdecimal():
        raise ValueError(f"The number of ids must be a whole number, not {ids!r}.")
    seconds = seconds_of(per)
    if seconds is None:
        raise ValueError("A rate needs a duration, such as 60 s.")
    return Rate(int(ids), per=seconds)

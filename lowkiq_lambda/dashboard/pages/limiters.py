"""The form that changes a limiter of handlers; the page Limits has their table."""

from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.dashboard import activity
from lowkiq_lambda.dashboard.context import NO_ACTION, NO_LIMITER, RequestContext
from lowkiq_lambda.dashboard.durations import seconds_of
from lowkiq_lambda.jobs.limiting import Limit, with_numbers
from lowkiq_lambda.operate.inspect.activity import OF_NO_QUEUE
from lowkiq_lambda.operate.presentation.limits import limiter_response

if TYPE_CHECKING:
    from lowkiq_lambda.limiters.limiter import Limiter

_LONGEST: Final = 100
"""Characters of a refused field that the form shows again."""


def ask(context: RequestContext) -> Response:
    """The form, or the question whether to reset; nothing is changed yet."""
    limiter, do = context.limiter_named(context.query.get("name", "")), context.query.get("do", "")
    if limiter is None:
        return context.refuse(404, NO_LIMITER)
    if do not in {"set", "reset"}:
        return context.refuse(400, NO_ACTION)
    view = limiter_response(limiter.explain())
    typed = {name: context.query[name] for name in ("most", "seconds") if name in context.query}
    return context.render(
        "actions_limiter.html",
        queue=context.query.get("queue", ""),
        do=do,
        limiter=view,
        fields={"most": str(view.most), "seconds": f"{view.seconds:g} s", **typed},
        wrong=_wrong(limiter, typed.get("most", ""), typed.get("seconds", "")) if typed else "",
        reason=context.query.get("reason", ""),
    )


def act(context: RequestContext) -> Response:
    """Changes the limiter, and redirects to the page that shows it."""
    form = context.form
    limiter, do, queue = context.limiter_named(form.get("name", "")), form.get("do", ""), form.get("queue", "")
    if limiter is None:
        return context.refuse(404, NO_LIMITER)
    if do not in {"set", "reset"}:
        return context.refuse(400, NO_ACTION)
    if do == "reset":
        limiter.reset()
        activity.note(context, "reset limiter", OF_NO_QUEUE, limiter.name, 1)
        return context.redirect("limits", queue=queue)
    most, seconds = form.get("most", "").strip()[:_LONGEST], form.get("seconds", "").strip()[:_LONGEST]
    if _wrong(limiter, most, seconds):
        again = {"most": most, "seconds": seconds, "reason": context.reason}
        return context.redirect("actions/limiter", queue=queue, name=limiter.name, do="set", **again)
    limit = _limit(limiter, most, seconds)
    limiter.set(limit)
    activity.note(context, "set limiter", OF_NO_QUEUE, f"{limiter.name}: {limit!r}", 1)
    return context.redirect("limits", queue=queue)


def _wrong(limiter: "Limiter", most: str, seconds: str) -> str:
    """Why the fields are refused; empty if they are not."""
    try:
        _limit(limiter, most, seconds)
    except (ValueError, DeclarationError) as error:
        return str(error)
    return ""


def _limit(limiter: "Limiter", most: str, seconds: str) -> Limit:
    """Raises ValueError, DeclarationError."""
    if not most.isdecimal():
        raise ValueError(f"The number must be a whole number, not {most!r}.")
    length = seconds_of(seconds)
    if length is None:
        raise ValueError("A limiter needs a duration, such as 60 s.")
    return with_numbers(limiter.limit, int(most), length)

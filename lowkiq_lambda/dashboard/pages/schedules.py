"""Schedule entries: all of them, one of them, and the actions on one."""

from collections.abc import Mapping
from typing import Final

import msgspec
from starlette.responses import Response

from lowkiq_lambda.dashboard import audit
from lowkiq_lambda.dashboard.context import NO_QUEUE, RequestContext
from lowkiq_lambda.dashboard.entries import explained, named_view, target, upcoming, views
from lowkiq_lambda.errors import NoSuchEntry

NO_ENTRY: Final = "The queue has no schedule entry of this name."
NO_ACTION: Final = "The dashboard has no such action."
UNATTENDED: Final = 180.0
"""Seconds without a look after which the page warns: looks come once a minute."""


class EntryWords(msgspec.Struct, frozen=True, kw_only=True):
    """The texts of an action on an entry."""

    title: str
    button: str
    effect: str


ACTIONS: Final[Mapping[str, EntryWords]] = {
    "enable": EntryWords(
        title="Switch the entry on",
        button="Switch on",
        effect="It fires at its next planned time. Planned times that came while it was off never fire.",
    ),
    "disable": EntryWords(
        title="Switch the entry off",
        button="Switch off",
        effect="It does not fire until it is switched on again. A job that it has pushed stays.",
    ),
    "run_now": EntryWords(
        title="Run the entry now",
        button="Run now",
        effect="Its job is pushed now. Its planned times do not change.",
    ),
}


def show(context: RequestContext) -> Response:
    """The page of all entries."""
    found = views(context)
    return context.render(
        "schedules.html", entries=[(view, explained(view)) for view in found], unseen=_unseen(context)
    )


def one(context: RequestContext) -> Response:
    """The page of one entry."""
    queue, name = context.query.get("queue", ""), context.query.get("name", "")
    worker = context.worker_named(queue)
    if worker is None:
        return context.refuse(404, NO_QUEUE)
    view = named_view(context, worker, name)
    if view is None:
        return context.refuse(404, NO_ENTRY)
    return context.render("schedule.html", view=view, explained=explained(view), upcoming=upcoming(view))


def ask(context: RequestContext) -> Response:
    """The confirmation page; nothing is changed yet."""
    queue, name, do = (context.query.get(field, "") for field in ("queue", "name", "do"))
    words, worker = ACTIONS.get(do), context.worker_named(queue)
    if worker is None or words is None:
        return context.refuse(404, NO_QUEUE) if words else context.refuse(400, NO_ACTION)
    view = named_view(context, worker, name)
    if view is None:
        return context.refuse(404, NO_ENTRY)
    return context.render("actions_schedule.html", view=view, do=do, words=words)


def act(context: RequestContext) -> Response:
    """Runs the action, and redirects to the page of the entry."""
    queue, name, do = (context.form.get(field, "") for field in ("queue", "name", "do"))
    worker = context.worker_named(queue)
    if worker is None or do not in ACTIONS:
        return context.refuse(404, NO_QUEUE) if do in ACTIONS else context.refuse(400, NO_ACTION)
    schedules = context.app.schedules
    try:
        if do == "run_now":
            schedules.run_now(worker, name)
        elif do == "enable":
            schedules.enable(worker, name)
        else:
            schedules.disable(worker, name)
    except NoSuchEntry:
        return context.refuse(404, NO_ENTRY)
    audit.note(context, do.replace("_", " "), queue, target(name), 1)
    return context.redirect("schedule", queue=queue, name=name)


def _unseen(context: RequestContext) -> float | None:
    """For how many seconds no process has looked at the entries, if that is too long; infinite: none ever did."""
    if not context.app.fires_schedules:
        return None
    (state,) = context.app.schedules.duty_states()
    if state.last_run is None:
        return float("inf")
    passed = context.site.now() - state.last_run
    return passed if passed > UNATTENDED else None

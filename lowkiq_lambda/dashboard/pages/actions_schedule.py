"""Actions on one schedule entry, on several, or on all of a queue."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.responses import Response

from lowkiq_lambda.base.errors import NoSuchEntry
from lowkiq_lambda.dashboard import activity
from lowkiq_lambda.dashboard.context import NO_ACTION, NO_QUEUE, RequestContext
from lowkiq_lambda.dashboard.entries import named_view, remove_entries, run_entries, switch_all, target
from lowkiq_lambda.dashboard.pages.schedules import NO_ENTRY
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.schedules.records import ScheduleView

NOT_MADE: Final = "Code declares this entry, so only code removes it. Switched off, it does not fire."


class EntryWords(msgspec.Struct, frozen=True, kw_only=True):
    """The texts of an action. `of_all`: whether it is one on all entries of a queue; `of_ticked`: on those ticked."""

    title: str
    button: str
    effect: str
    is_danger: bool = False
    of_all: bool = False
    of_ticked: bool = False


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
    "remove": EntryWords(
        title="Remove the entry",
        button="Remove",
        effect="It never fires again, and its history is gone. This cannot be undone. A job that it has pushed stays.",
        is_danger=True,
    ),
    "enable_all": EntryWords(
        title="Switch all entries on",
        button="Switch all on",
        effect="Each fires at its next planned time. Planned times that came while an entry was off never fire.",
        of_all=True,
    ),
    "disable_all": EntryWords(
        title="Switch all entries off",
        button="Switch all off",
        effect="None fires until it is switched on again. Jobs that they have pushed stay.",
        of_all=True,
    ),
    "run_all": EntryWords(
        title="Run all entries now",
        button="Run all now",
        effect="The job of each that is on is pushed, delayed within its jitter. Planned times do not change.",
        of_all=True,
    ),
    "remove_all": EntryWords(
        title="Remove the entries made at run time",
        button="Remove",
        effect="They never fire again, and their histories are gone. This cannot be undone. Entries of code stay.",
        is_danger=True,
        of_all=True,
    ),
    "enable_ticked": EntryWords(
        title="Switch the selected entries on",
        button="Switch on",
        effect="Each fires at its next planned time. Planned times that came while an entry was off never fire.",
        of_ticked=True,
    ),
    "disable_ticked": EntryWords(
        title="Switch the selected entries off",
        button="Switch off",
        effect="None fires until it is switched on again. Jobs that they have pushed stay.",
        of_ticked=True,
    ),
}
_ON: Final = frozenset({"enable_all", "enable_ticked"})
_LISTED: Final = frozenset({"run_all", "remove_all"})
_OTHERS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("enable_all", "enable_ticked"), "are on already"),
    **dict.fromkeys(("disable_all", "disable_ticked"), "are off already"),
    "run_all": "are off, or cannot fire",
    "remove_all": "are of code",
}
"""Why an act leaves the other entries as they are."""
NONE_TICKED: Final = "No entry is selected: tick some, then choose what to do."


def ask(context: RequestContext) -> Response:
    """The confirmation page; nothing is changed yet."""
    queue, name, do = (context.query.get(field, "") for field in ("queue", "name", "do"))
    words, worker = ACTIONS.get(do), context.worker_named(queue)
    if worker is None or words is None:
        return context.refuse(404, NO_QUEUE) if words else context.refuse(400, NO_ACTION)
    if words.of_all or words.of_ticked:
        return _ask_for_several(context, worker, do, words)
    view = named_view(context, worker, name)
    if view is None:
        return context.refuse(404, NO_ENTRY)
    if do == "remove" and view.source != "run time":
        return context.refuse(400, NOT_MADE)
    return context.render("actions_schedule.html", view=view, queue=queue, do=do, words=words, names=[])


def act(context: RequestContext) -> Response:
    """Runs the action, and redirects to a page that shows its effect."""
    queue, name, do = (context.form.get(field, "") for field in ("queue", "name", "do"))
    words, worker = ACTIONS.get(do), context.worker_named(queue)
    if worker is None or words is None:
        return context.refuse(404, NO_QUEUE) if words else context.refuse(400, NO_ACTION)
    try:
        if words.of_all or words.of_ticked:
            names = None if words.of_all else context.form.getlist("names")
            if names == []:
                return context.refuse(400, NONE_TICKED)
            if do == "run_all":
                run_entries(context, worker)
            elif do == "remove_all":
                remove_entries(context, worker)
            else:
                switch_all(context, worker, names, on=do in _ON)
            return context.redirect("schedules")
        _run(context, worker, name, do)
    except NoSuchEntry as error:
        return context.refuse(404, str(error))
    activity.note(context, do.replace("_", " "), queue, target(name), 1)
    return context.redirect("schedules") if do == "remove" else context.redirect("schedule", queue=queue, name=name)


def _ask_for_several(context: RequestContext, worker: type[Worker[Any]], do: str, words: EntryWords) -> Response:
    names = context.request.query_params.getlist("names")
    entries = [view for view in context.app.schedules.all(worker) if words.of_all or view.name in names]
    if not entries and words.of_ticked:
        return context.refuse(400, NONE_TICKED)
    changing = [view for view in entries if _changes(do, view)]
    is_listed = words.of_ticked or do in _LISTED
    return context.render(
        "actions_schedule.html",
        view=None,
        queue=worker.queue_name,
        do=do,
        words=words,
        changing=len(changing),
        count=len(entries),
        names=[view.name for view in (entries if words.of_ticked else changing)] if is_listed else [],
        others=_OTHERS[do],
    )


def _changes(do: str, view: ScheduleView) -> bool:
    """Whether the act changes something of the entry."""
    if do == "remove_all":
        return view.source == "run time"
    if do == "run_all":
        return view.entry is not None and view.is_on and not view.problem
    return view.is_on != (do in _ON)


def _run(context: RequestContext, worker: type[Worker[Any]], name: str, do: str) -> None:
    schedules = context.app.schedules
    if do == "run_now":
        schedules.run(name, worker=worker)
    elif do == "remove":
        schedules.remove(worker, name)
    elif do == "enable":
        schedules.enable(worker, name)
    else:
        schedules.disable(worker, name)

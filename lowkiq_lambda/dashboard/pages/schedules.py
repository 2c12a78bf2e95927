"""Schedule entries: all of them, and one of them."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Final

import msgspec
from starlette.responses import Response

from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.dashboard.context import NO_QUEUE, RequestContext
from lowkiq_lambda.dashboard.entries import (
    explained,
    named_view,
    payload_of,
    planned_times,
    problem_of,
    unattended,
    views,
    why_unattended,
)
from lowkiq_lambda.dashboard.pages.payloads import PayloadRenderer, RenderedPayload
from lowkiq_lambda.jobs.job import ScoredPayload
from lowkiq_lambda.schedules.clock_changes import PlannedTime
from lowkiq_lambda.schedules.records import ScheduleView
from lowkiq_lambda.schedules.zones import local_text, zone_of

NO_ENTRY: Final = "The queue has no schedule entry of this name."

OUTCOMES: Final[Mapping[str, str]] = {
    "pushed": "a new job",
    "merged": "its payload joined the job that was waiting",
    "busy": "nothing was pushed: the id was waiting or in flight",
    "missed": "too late: it never fires",
    "run now": "somebody had it run; its planned times stayed",
}
"""What the outcomes in a history mean."""


class EntryLine(msgspec.Struct, frozen=True, kw_only=True):
    """An entry in the list. `next_local`: its next planned time by the clocks of its own zone; empty for UTC."""

    view: ScheduleView
    explained: str
    problem: str | None
    next_local: str


class QueueEntries(msgspec.Struct, frozen=True, kw_only=True):
    """The entries of a queue. `has_made`: some were made at run time."""

    name: str
    lines: list[EntryLine]
    has_made: bool


class UpcomingLine(msgspec.Struct, frozen=True, kw_only=True):
    """A planned time. `local`: by the clocks of the entry's own zone; empty for UTC."""

    planned: PlannedTime
    local: str


def show(context: RequestContext) -> Response:
    """The page of all entries."""
    entries = views(context)
    # Other code checks for itself that a process fires its entries.
    is_own = any(view.source != "other code" for view in entries)
    unseen = unattended(context, entries) if is_own else None
    skipped = context.app.core.queues.all_current()[1]
    return context.render(
        "schedules.html",
        queues=[*_by_queue(context, entries)],
        without_entries=sorted(
            {worker.queue_name for worker in context.app.workers}
            - {view.queue_name for view in entries}
            - skipped.keys()
        ),
        unseen=unseen,
        why_unseen=why_unattended(context) if unseen else "",
        skipped=skipped,
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
    problem = problem_of(context, view)
    return context.render(
        "schedule.html",
        view=view,
        explained=explained(view),
        problem=problem,
        zone=_zone(view),
        payload=_payload(context, view),
        upcoming=[
            UpcomingLine(planned=planned, local=_local(view, planned.at) if planned.comes else "")
            for planned in planned_times(context, view)
        ],
        why_none=_why_none(view, problem),
        outcomes=OUTCOMES,
    )


def _by_queue(context: RequestContext, entries: list[ScheduleView]) -> Iterator[QueueEntries]:
    for name, group in groupby(entries, lambda view: view.queue_name):
        lines = [
            EntryLine(
                view=view,
                explained=explained(view),
                problem=problem_of(context, view),
                next_local="" if view.next is None else _local(view, view.next),
            )
            for view in group
        ]
        yield QueueEntries(name=name, lines=lines, has_made=any(line.view.source == "run time" for line in lines))


def _local(view: ScheduleView, at: float) -> str:
    zone = _zone(view)
    return local_text(at, zone) if zone else ""


def _zone(view: ScheduleView) -> str:
    """The zone of the entry's times; empty for UTC, and for one that is not known here: a declaration looks up none."""
    if view.entry is None or view.entry.tz == "UTC":
        return ""
    try:
        zone_of(view.entry.tz)
    except DeclarationError:
        return ""
    return view.entry.tz


def _payload(context: RequestContext, view: ScheduleView) -> RenderedPayload | None:
    """Of the job that the entry pushes, masked."""
    if view.entry is None:
        return None
    scored = ScoredPayload(payload_of(context, view.entry), score=0.0)
    return PayloadRenderer(context, view.queue_name).whole(view.entry.id, scored)


def _why_none(view: ScheduleView, problem: str | None) -> str:
    """Why the entry has no next planned time, for people."""
    if problem:
        return "None, as it cannot fire."
    if view.entry is None:
        return "The code that declares the entry knows them; this dashboard's code does not."
    if not view.is_on:
        return "None, as it is off. Switched on, it goes on with the first planned time that is then to come."
    if view.last is None:
        return "None: its only planned time had passed before the entry was there, and nothing fires for the past."
    return "None: its only planned time has passed. The entry does nothing any more."

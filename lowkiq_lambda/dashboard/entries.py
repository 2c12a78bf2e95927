"""Schedule entries for pages and the API."""

from itertools import islice
from typing import Final

from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.errors import DeclarationError, QueueMismatch
from lowkiq_lambda.schedules.records import ScheduleView
from lowkiq_lambda.worker import Worker

UPCOMING: Final = 10
"""Planned times that one entry is shown with."""


def views(context: RequestContext) -> list[ScheduleView]:
    """The entries of all queues that agree with the app. Raises BackendError."""
    agreed = []
    for worker in context.app.workers:
        try:
            context.app.queue_of(worker)
        except QueueMismatch:
            # The overview tells of it; the others have their entries here.
            continue
        agreed.append(worker)
    return context.app.schedules.all(*agreed) if agreed else []


def named_view(context: RequestContext, worker: type[Worker], name: str) -> ScheduleView | None:
    """The entry of that name; None if the queue has none. Raises QueueMismatch, BackendError."""
    return next((view for view in context.app.schedules.all(worker) if view.name == name), None)


def upcoming(view: ScheduleView) -> list[float]:
    """The next planned times of an entry that is on, in Unix seconds."""
    if view.entry is None or view.next is None:
        return []
    try:
        return [view.next, *islice(view.entry.times.after(view.next), UPCOMING - 1)]
    except DeclarationError:
        return []


def target(name: str) -> str:
    """What the audit log calls an entry."""
    return f"schedule entry {name!r}"


def explained(view: ScheduleView) -> str:
    """The times of an entry in English, or as they are written."""
    if view.entry is None:
        return ""
    try:
        return view.entry.times.explain()
    except DeclarationError:
        return view.entry.times.text

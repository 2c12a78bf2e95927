"""Schedule entries for pages and the API."""

import math
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.dashboard import activity
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.schedules.clock_changes import PlannedTime, with_remarks
from lowkiq_lambda.schedules.entry import ScheduleEntry
from lowkiq_lambda.schedules.records import ScheduleView
from lowkiq_lambda.schedules.run_time import Cleared
from lowkiq_lambda.store.shard.codec import dump_json, load_json

UPCOMING: Final = 10
"""Planned times that one entry is shown with."""
_NAMED: Final = 10
"""Entries that the activity log names where several are switched."""
UNATTENDED: Final = 180.0
"""Seconds without a look after which pages warn: looks come once a minute."""
NOTED_EVERY: Final = 300.0
"""Seconds after which a shard notes again that an entry is declared."""


def views(context: RequestContext) -> list[ScheduleView]:
    """The entries of all queues that agree with the app. Raises BackendError."""
    queues, _ = context.app.core.queues.all_current()
    return context.app.schedules.all(*(queue.worker for queue in queues.values())) if queues else []


def named_view(context: RequestContext, worker: type[Worker[Any]], name: str) -> ScheduleView | None:
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


def planned_times(context: RequestContext, view: ScheduleView) -> Sequence[PlannedTime]:
    """The same, with what changes of the clocks do to them."""
    planned = upcoming(view)
    if view.entry is None or not planned:
        return []
    return with_remarks(view.entry.times, planned, min(context.site.now(), planned[0] - 1))


def switch_all(
    context: RequestContext, worker: type[Worker[Any]], names: Sequence[str] | None = None, *, on: bool
) -> None:
    """Switch all entries of the queue, or those of the names, and note in the activity log how many that changed.

    Raises BackendError, and NoSuchEntry before any is switched.
    """
    schedules = context.app.schedules
    changed = sum(view.is_on != on for view in schedules.all(worker) if names is None or view.name in names)
    (schedules.enable_all if on else schedules.disable_all)(worker, names)
    activity.note(context, "enable" if on else "disable", worker.queue_name, targets(names), changed)


def run_entries(context: RequestContext, worker: type[Worker[Any]]) -> list[Pushed]:
    """Push the jobs of all entries of the queue that are on, and note that. Raises what a push raises."""
    pushed = context.app.schedules.run(all=True, worker=worker)
    activity.note(context, "run now", worker.queue_name, targets(None), len(pushed))
    return pushed


def remove_entries(context: RequestContext, worker: type[Worker[Any]]) -> Cleared:
    """Remove all entries of the queue that were made at run time, and note that. Raises BackendError."""
    cleared = context.app.schedules.remove_all(worker)
    activity.note(context, "remove", worker.queue_name, targets(None), len(cleared.removed))
    return cleared


def unattended(context: RequestContext, entries: Sequence[ScheduleView] | None = None) -> float | None:
    """For how many seconds no process has looked at the app's entries, if that is too long; infinite: none ever did.

    It goes by the traces of daemons and housekeeping runs, whatever this process itself is set to. `entries`: all
    entries, which are read here where they are needed. Raises BackendError.
    """
    now = context.site.now()
    (state,) = context.app.schedules.duty_states()
    looked_at = -math.inf if state.last_run is None else state.last_run
    if now - looked_at <= UNATTENDED:
        return None
    # Code that declares other entries beside these has another duty, and a call of `tick` has none.
    own = (view for view in (views(context) if entries is None else entries) if view.source != "other code")
    noted_at = max((view.seen_at for view in own if view.seen_at is not None), default=-math.inf)
    if noted_at > looked_at and now - noted_at <= UNATTENDED + NOTED_EVERY:
        return None
    return now - max(looked_at, noted_at)


def why_unattended(context: RequestContext) -> str:
    """What to do where no process looks, in a sentence."""
    app = context.app
    if app.config.schedules is False:
        return (
            "For this dashboard LOWKIQ_SCHEDULES is false: a daemon or a function with that setting fires nothing. "
            "Run one without it."
        )
    if not app.core.housekeeping.fires_schedules:
        return (
            "The code declares no entry, so a daemon or a housekeeping run fires those made at run time only where "
            "LOWKIQ_SCHEDULES is true."
        )
    return "Run a daemon or a stack that does housekeeping, with a LOWKIQ_SCHEDULES that is not false."


def payload_of(context: RequestContext, entry: ScheduleEntry) -> object:
    """The payload as the handler gets it, which is what a mask is written for; None where it cannot be stored."""
    config = context.app.config
    dump, load = config.dump_payload or dump_json, config.load_payload or load_json
    try:
        return load(dump(entry.payload))
    except Exception:  # noqa: BLE001 - an app's codec may raise anything, and then the entry's problem says so
        return None


def target(name: str) -> str:
    """What the activity log calls an entry."""
    return f"schedule entry {name!r}"


def targets(names: Sequence[str] | None) -> str:
    """What the activity log calls several of them, or all."""
    if names is None:
        return "all schedule entries"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"schedule entries {', '.join(map(repr, names[:_NAMED]))}{more}"


def problem_of(context: RequestContext, view: ScheduleView) -> str | None:
    """Why the entry cannot fire, in a sentence, or None."""
    return view.problem or (context.app.schedules.problem_of(view.entry) if view.entry else None)


def explained(view: ScheduleView) -> str:
    """The times of an entry in English, or as they are written."""
    if view.entry is None:
        return ""
    try:
        return view.entry.times.explain()
    except DeclarationError:
        return view.entry.times.text

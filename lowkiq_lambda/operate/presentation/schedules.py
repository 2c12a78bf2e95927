"""Schedule entries as JSON, for the API and for the command line."""

from typing import Any

import msgspec

from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.schedules.records import ScheduleView, Source
from lowkiq_lambda.schedules.schedules import Schedules


class EntryResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule entry. Times are Unix seconds; null: never, or unknown.

    `source`: the app's code, run time, or code that this app does not have; then its declaration, `id` to
    `description`, is unknown and null. `is_switched`: somebody switched it on or off, which counts more than `enabled`
    in its declaration. `times`: as the server keeps them; `declared`: as people declare them. `last`: the newest
    planned time that was decided; `next`: the next one, null if the entry is off. `seen_at`: when code last declared
    it. `problem`: why it does not fire.
    """

    queue: str
    name: str
    source: Source
    is_on: bool
    is_switched: bool
    last: float | None
    next: float | None
    seen_at: float | None
    problem: str | None
    id: str | None = None
    kind: str | None = None
    times: str | None = None
    declared: str | None = None
    tz: str | None = None
    missed: str | None = None
    grace: float | None = None
    overlap: str | None = None
    jitter: float | None = None
    expires_in: float | None = None
    enabled: bool | None = None
    description: str | None = None


class RanNow(msgspec.Struct, frozen=True, kw_only=True):
    """The job that was pushed. `merged`: the id was waiting already; `due_at`: when it is due, in Unix seconds."""

    id: str
    merged: bool
    due_at: float


class RanAll(msgspec.Struct, frozen=True):
    """The jobs that were pushed: those of entries that are on and can fire."""

    pushed: list[RanNow]


class RemovedAll(msgspec.Struct, frozen=True):
    """The names of the entries that were removed, and of those that stay because code declares them."""

    removed: list[str]
    kept: list[str]


class Removed(msgspec.Struct, frozen=True):
    """Whether it was removed."""

    removed: bool


def ran(pushed: Pushed) -> RanNow:
    """The job of an entry that was run."""
    return RanNow(id=pushed.id, merged=pushed.merged, due_at=pushed.due_at)


def entry_fields(schedules: Schedules, view: ScheduleView) -> dict[str, Any]:
    """The fields of an EntryResponse."""
    entry = view.entry
    names = ("is_on", "is_switched", "last", "next", "seen_at", "source", "name")
    fields = {"queue": view.queue_name, **{name: getattr(view, name) for name in names}}
    fields["problem"] = view.problem or (schedules.problem_of(entry) if entry else None)
    if entry is None:
        return fields
    options = ("id", "tz", "missed", "grace", "overlap", "jitter", "expires_in", "enabled", "description")
    times = {"kind": entry.times.kind, "times": entry.times.text, "declared": entry.times.declared}
    return {**fields, **times, **{name: getattr(entry, name) for name in options}}

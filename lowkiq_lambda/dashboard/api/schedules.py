"""Operations on schedule entries."""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from lowkiq_lambda.base.errors import DeclarationError, NoSuchEntry
from lowkiq_lambda.dashboard import activity
from lowkiq_lambda.dashboard.api.operations import ApiError
from lowkiq_lambda.dashboard.api.requests import QueueAct, QueueName, worker_named
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.entries import (
    named_view,
    payload_of,
    remove_entries,
    run_entries,
    switch_all,
    target,
    upcoming,
    views,
)
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.operate.presentation.jobs import serializer_for
from lowkiq_lambda.operate.presentation.moments import moment_of
from lowkiq_lambda.operate.presentation.schedules import (
    EntryResponse,
    RanAll,
    RanNow,
    Removed,
    RemovedAll,
    entry_fields,
    ran,
)
from lowkiq_lambda.schedules.cron import LONGEST_TEXT
from lowkiq_lambda.schedules.misfire import Missed, Overlap
from lowkiq_lambda.schedules.records import ScheduleView

UNKNOWN: Final = "unknown_entry"
EntryName: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200, description="The name of a schedule entry.")]

Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=366 * 86_400, description="Seconds.")]
_TIMES: Final = ("cron", "every", "offset", "at")


class SchedulesParams(msgspec.Struct, frozen=True, kw_only=True):
    """The entries of one queue, or of all."""

    queue: QueueName | UnsetType = UNSET


class EntryParams(msgspec.Struct, frozen=True, kw_only=True):
    """One entry."""

    queue: QueueName
    name: EntryName


class OneEntry(QueueAct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A schedule entry."""

    name: EntryName


class AllEntries(QueueAct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All schedule entries of a queue."""


class SeveralEntries(QueueAct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All schedule entries of a queue, or those of the `names`."""

    names: Annotated[list[EntryName], Meta(min_length=1, max_length=1_000)] | UnsetType = UNSET


class FiringResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A decision about a planned time. Times are Unix seconds. `let_go`: how many earlier planned times never fire."""

    planned: float
    at: float
    outcome: str
    let_go: int


class OneEntryResponse(EntryResponse, frozen=True, kw_only=True):
    """The same, with its next ten planned times, its last ten decisions, newest first, and the payload of its job.

    `payload`, `unreadable`, `left_out` and `mask_failed` as in a payload; none of them if the declaration is unknown.
    """

    upcoming: list[float]
    history: list[FiringResponse]
    payload: msgspec.Raw | UnsetType = UNSET
    unreadable: bytes | UnsetType = UNSET
    left_out: int | UnsetType = UNSET
    mask_failed: bool | UnsetType = UNSET


class Switched(msgspec.Struct, frozen=True):
    """Whether the entries are on now."""

    is_on: bool


def schedules(context: RequestContext, params: SchedulesParams) -> list[EntryResponse]:
    """Get the schedule entries of a queue, or of all queues that agree with the app."""
    return [EntryResponse(**entry_fields(context.app.schedules, view)) for view in _views(context, params)]


def schedule(context: RequestContext, params: EntryParams) -> OneEntryResponse:
    """Get a schedule entry with its next planned times and its history."""
    return one_entry(context, worker_named(context, params.queue), params.name)


def enable(context: RequestContext, params: OneEntry) -> Switched:
    """Switch an entry on. Planned times that came while it was off never fire."""
    return _switch(context, params, on=True)


def disable(context: RequestContext, params: OneEntry) -> Switched:
    """Switch an entry off until it is switched on again."""
    return _switch(context, params, on=False)


def enable_all(context: RequestContext, params: SeveralEntries) -> Switched:
    """Switch all entries of a queue on, or those of some names. With a name that is unknown none is switched."""
    return _switch_several(context, params, on=True)


def disable_all(context: RequestContext, params: SeveralEntries) -> Switched:
    """Switch all entries of a queue off, or those of some names. With a name that is unknown none is switched."""
    return _switch_several(context, params, on=False)


def run_now(context: RequestContext, params: OneEntry) -> RanNow:
    """Push the job of an entry now. Its planned times do not change."""
    with _known():
        pushed = context.app.schedules.run(params.name, worker=worker_named(context, params.queue))
    activity.note(context, "run now", params.queue, target(params.name), 1)
    return ran(pushed)


def remove(context: RequestContext, params: OneEntry) -> Removed:
    """Remove an entry that was made at run time."""
    with _known():
        context.app.schedules.remove(worker_named(context, params.queue), params.name)
    activity.note(context, "remove", params.queue, target(params.name), 1)
    return Removed(removed=True)


def run_all(context: RequestContext, params: AllEntries) -> RanAll:
    """Push the jobs of all entries of a queue that are on, each delayed within its jitter. Planned times stay."""
    return RanAll(pushed=[*map(ran, run_entries(context, worker_named(context, params.queue)))])


def remove_all(context: RequestContext, params: AllEntries) -> RemovedAll:
    """Remove all entries of a queue that were made at run time."""
    cleared = remove_entries(context, worker_named(context, params.queue))
    return RemovedAll(removed=cleared.removed, kept=cleared.kept)


def one_entry(context: RequestContext, worker: type[Worker[Any]], name: str) -> OneEntryResponse:
    """The entry of that name. Raises ApiError."""
    view = named_view(context, worker, name)
    if view is None:
        raise ApiError(HTTPStatus.NOT_FOUND, UNKNOWN, f"The queue has no schedule entry {name!r}.")
    history = [FiringResponse(**msgspec.structs.asdict(one)) for one in view.history]
    fields = entry_fields(context.app.schedules, view)
    if entry := view.entry:
        fields |= serializer_for(worker, context.mask).masked("payload", entry.id, payload_of(context, entry))
    return OneEntryResponse(**fields, upcoming=upcoming(view), history=history)


def _views(context: RequestContext, params: SchedulesParams) -> list[ScheduleView]:
    if isinstance(params.queue, UnsetType):
        return views(context)
    return context.app.schedules.all(worker_named(context, params.queue))


def _switch(context: RequestContext, params: OneEntry, *, on: bool) -> Switched:
    change = context.app.schedules.enable if on else context.app.schedules.disable
    with _known():
        change(worker_named(context, params.queue), params.name)
    activity.note(context, "enable" if on else "disable", params.queue, target(params.name), 1)
    return Switched(is_on=on)


def _switch_several(context: RequestContext, params: SeveralEntries, *, on: bool) -> Switched:
    names = None if isinstance(params.names, UnsetType) else params.names
    with _known():
        switch_all(context, worker_named(context, params.queue), names, on=on)
    return Switched(is_on=on)


@contextmanager
def _known() -> Iterator[None]:
    try:
        yield
    except NoSuchEntry as error:
        raise ApiError(HTTPStatus.NOT_FOUND, UNKNOWN, str(error)) from error


class NewEntry(OneEntry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry to make, or to put in place of the one of its name that was made at run time before.

    Give one of `cron`, `every` and `at`. `cron`: an expression of five fields, or six with seconds first, in the zone
    `tz`, or in one that it names. `every`: seconds, with an `offset` less than it. `at`: Unix seconds, ISO 8601 (UTC
    without a zone), or a moment such as `in 2h`. `name`: printable characters. `missed`, `grace`, `overlap`, `jitter`,
    `expires_in` and `enabled` as in code; what is left out is as by default, also where an entry is replaced.
    """

    id: Annotated[str, Meta(min_length=1, description="The id of the job.")]
    cron: Annotated[str, Meta(max_length=LONGEST_TEXT)] | UnsetType = UNSET
    every: Seconds | UnsetType = UNSET
    offset: Seconds | UnsetType = UNSET
    at: float | str | UnsetType = UNSET
    tz: (
        Annotated[str, Meta(description="The name of a time zone, such as `Europe/Berlin`; UTC if absent.")] | UnsetType
    ) = UNSET
    payload: Annotated[Any, Meta(description="The payload of the job: any JSON; an empty text if absent.")] = UNSET
    missed: Missed | UnsetType = UNSET
    grace: Annotated[float, Meta(ge=60, le=366 * 86_400)] | UnsetType = UNSET
    overlap: Overlap | UnsetType = UNSET
    jitter: Annotated[float, Meta(ge=0, le=86_400)] | UnsetType = UNSET
    expires_in: Annotated[float, Meta(ge=1, le=366 * 86_400)] | UnsetType | None = UNSET
    enabled: bool | UnsetType = UNSET
    description: Annotated[str, Meta(max_length=1_000)] | UnsetType = UNSET


def put(context: RequestContext, params: NewEntry) -> OneEntryResponse:
    """Make a schedule entry at run time, or replace the one of its name. Entries of code cannot be replaced.

    One that is off stays off. Times that differ from those before count from now on.
    """
    worker = worker_named(context, params.queue)
    values = {field: value for field, value in msgspec.structs.asdict(params).items() if value is not UNSET}
    del values["queue"], values["name"], values["reason"]
    try:
        if isinstance(params.at, str):
            values["at"] = _moment(params.at, context.site.now())
        context.app.schedules.put(params.name, worker, **values)
    except DeclarationError as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, "bad_entry", str(error)) from error
    times = {field: value for field in _TIMES if (value := getattr(params, field)) is not UNSET}
    activity.note(context, "put", params.queue, target(params.name), 1, job=params.id, **times)
    return one_entry(context, worker, params.name)


def _moment(at: str, now: float) -> float:
    try:
        return moment_of(at, now, ahead=True)
    except ValueError as error:
        raise DeclarationError(f"at: {error}.") from error

"""Entries for people: their declarations, and their records on shards."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import msgspec

from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.schedules.agenda import loaded
from lowkiq_lambda.schedules.entry import BrokenEntry, ScheduleEntry
from lowkiq_lambda.store.shard.entries import EntryRow, NotedFiring

MOST_NOTED: Final = 10
"""Decisions that a history shows."""
RUN_NOW: Final = "run now"
"""The decision that is noted if a person runs an entry."""
Source: TypeAlias = Literal["code", "run time", "other code"]
"""The origin of an entry: this app's code, a call at run time, or code that this app does not have."""


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """An entry as it stands. Times are Unix seconds by the server's clock; None: never, or not known.

    `entry`: its declaration; None if only other code has it, or if it cannot work. `is_switched`: somebody switched it
    on or off, which counts more than its declaration. `last`: the newest planned time that was decided. `next`: the
    next planned time; None if it is off, or none comes any more. `seen_at`: when some code last declared it, to within
    five minutes. `history`: the last ten decisions, newest first.
    """

    queue_name: str
    name: str
    source: Source
    entry: ScheduleEntry | None
    is_on: bool
    is_switched: bool
    last: float | None
    next: float | None
    seen_at: float | None
    history: tuple[NotedFiring, ...]
    problem: str | None = None
    """Why it does not fire."""

    @property
    def key(self) -> tuple[str, str]:
        """Queue and name."""
        return self.queue_name, self.name

    @property
    def last_decision(self) -> NotedFiring | None:
        """The decision about `last`; None if the history does not reach back to it.

        Not the newest line of the history: that may be a run which people asked for, and which has no planned time.
        """
        return next((one for one in self.history if one.outcome != RUN_NOW and one.planned == self.last), None)


def views(
    declared: Iterable[ScheduleEntry | BrokenEntry], rows: Sequence[EntryRow], now: Mapping[str, float]
) -> list[ScheduleView]:
    """All entries of the queues that `now` has the time of, by queue and name."""
    # Of two that code gives one name, the one that works is the entry.
    ordered = sorted(declared, key=lambda entry: isinstance(entry, ScheduleEntry))
    entries = {(entry.queue_name, entry.name): entry for entry in ordered if entry.queue_name in now}
    by_key = {**{key: [] for key in entries}, **rows_by_entry(rows)}
    return [_view(key, entries.get(key), rows_of_entry, now[key[0]]) for key, rows_of_entry in sorted(by_key.items())]


def rows_by_entry(rows: Iterable[EntryRow]) -> dict[tuple[str, str], list[EntryRow]]:
    """The records of each entry, by queue and name."""
    by_key: dict[tuple[str, str], list[EntryRow]] = {}
    for row in rows:
        by_key.setdefault((row.shard.queue_name, row.name), []).append(row)
    return by_key


def late_by(view: ScheduleView, rows: Sequence[EntryRow], now: float) -> float | None:
    """Seconds for which its oldest planned time has not been decided; 0 if all are, None if nobody has declared it."""
    if not (view.entry and view.is_on):
        return 0.0
    since = _counts_since(view, rows)
    planned = None if since is None else next(view.entry.times.after(since), None)
    if since is None:
        return None
    return 0.0 if planned is None else max(0.0, now - planned)


def _counts_since(view: ScheduleView, rows: Sequence[EntryRow]) -> float | None:
    """The last planned time that was decided, or since when the entry's times count; None if unknown."""
    digest = view.entry.digest if view.entry else ""
    since = [row.record.known[digest][0] for row in rows if digest in row.record.known]
    times = [row.record.since for row in rows if row.record.since is not None]
    last = [view.last] if view.last is not None and (since or times) else []
    return max([*since, *times, *last], default=None)


def newest(rows: Iterable[EntryRow]) -> tuple[NotedFiring, ...]:
    """The last decisions about an entry, newest first, where more than one shard knows of it."""
    noted = [firing for row in rows for firing in row.record.history]
    return tuple(sorted(noted, key=lambda firing: firing.at, reverse=True)[:MOST_NOTED])


def _view(
    key: tuple[str, str], declared: ScheduleEntry | BrokenEntry | None, rows: Sequence[EntryRow], now: float
) -> ScheduleView:
    source: Source = "code" if declared else "other code"
    problem = declared.problem if isinstance(declared, BrokenEntry) else None
    entry = None if isinstance(declared, BrokenEntry) else declared
    definitions = [row for row in rows if row.record.definition is not None]
    if definitions:
        source, problem = "run time", None
        latest = max(definitions, key=lambda row: row.record.since or 0.0)
        try:
            entry = ScheduleEntry.from_definition(*key, loaded(latest.record.definition or ""))
        except (DeclarationError, msgspec.MsgspecError) as error:
            entry, problem = None, str(error)
    is_switched = any(row.record.switched or row.record.off for row in rows)
    is_on = not any(row.record.off for row in rows) and (is_switched or entry is None or entry.enabled)
    upcoming = None
    if entry and is_on:
        try:
            upcoming = next(entry.times.after(now), None)
        except DeclarationError as error:
            problem = str(error)
    return ScheduleView(
        queue_name=key[0],
        name=key[1],
        source=source,
        entry=entry,
        is_on=is_on,
        is_switched=is_switched,
        last=max((row.record.last for row in rows if row.record.last is not None), default=None),
        next=upcoming,
        seen_at=_seen_at(rows),
        history=newest(rows),
        problem=problem,
    )


def _seen_at(rows: Sequence[EntryRow]) -> float | None:
    """When code last declared it, as far as the shards have it: firing an entry implies that its code is there."""
    declared = [row.record for row in rows if row.record.seen_at is not None and row.record.definition is None]
    fired = [one.at for record in declared for one in record.history if one.outcome != RUN_NOW]
    return max([*(row.record.seen_at for row in rows if row.record.seen_at is not None), *fired], default=None)

"""Entries at run time: their records on shards, and changes by operators."""

import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec

from lowkiq_lambda.base.errors import BackendError, DeclarationError, JobError, NoSuchEntry
from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.schedules.agenda import loaded
from lowkiq_lambda.schedules.entry import ScheduleEntry
from lowkiq_lambda.schedules.records import RUN_NOW, ScheduleView, newest, views
from lowkiq_lambda.store.shard.codec import dump_json
from lowkiq_lambda.store.shard.entries import EntryRecord, EntryRow, EntryStore, NotedFiring
from lowkiq_lambda.store.shard.timetables import with_timetable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from lowkiq_lambda.core import Core
    from lowkiq_lambda.engine.queue import Queue
    from lowkiq_lambda.schedules.entry import Timetable
    from lowkiq_lambda.store.shard.keys import ShardRef

logger = logging.getLogger(__name__)


_STEP: Final = 100
"""Entries that are run or removed at once."""
_One = TypeVar("_One")


class Cleared(NamedTuple):
    """The names of the entries that were removed, and of those that stay because code declares them."""

    removed: list[str]
    kept: list[str]


class RunTimeEntries:
    """The entries of an app's queues as they are in Redis. Methods raise BackendError, and what else they say."""

    def __init__(self, core: "Core", timetable: "Timetable") -> None:
        self._core = core
        self._timetable = timetable
        self._store = EntryStore(core.backend, core.config.redis_retry_for)

    def put(self, queue: "Queue", entry: ScheduleEntry) -> None:
        """Make the entry, or replace the one of its name. Raises DeclarationError if it may not be made."""
        if self._timetable.get(entry.queue_name, entry.name):
            raise _is_declared(entry)
        shard, definition = self._shard_of(queue, entry), _definition(entry)
        definitions = [row for row in self._rows([queue], entry.name) if row.record.definition is not None]
        elsewhere = [row for row in definitions if row.shard != shard]
        is_off, is_switched = (any(getattr(row.record, one) for row in elsewhere) for one in ("off", "switched"))
        switch = "off" if is_off else "on" if is_switched else ""
        status = self._store.put(shard, entry.name, definition, entry.digest, entry.id, switch=switch)
        if status == "DECLARED":
            raise _is_declared(entry)
        if status == "FULL":
            raise DeclarationError(
                f"Shard {shard.number} of {entry.queue_name!r} has as many schedule entries as it may: remove some."
            )
        # Only now: between the two the entry may be there twice, but it is not lost. Nor is it lost by two calls at a
        # time: what the other one has made meanwhile is not among these.
        for row in elsewhere:
            self._store.remove(row.shard, entry.name)

    def remove(self, queue: "Queue", name: str) -> None:
        """Remove an entry that was made here. Raises NoSuchEntry."""
        definitions = [row for row in self._rows([queue], name) if row.record.definition is not None]
        if not [row for row in definitions if self._store.remove(row.shard, name)]:
            if self._timetable.get(queue.worker.queue_name, name):
                raise NoSuchEntry(
                    f"Code declares the schedule entry {name!r} of {queue.worker.queue_name!r}, and only code removes "
                    "it; disable switches it off."
                )
            raise NoSuchEntry(f"Queue {queue.worker.queue_name!r} has no entry {name!r} that was made at run time.")

    def all(self, queues: "Iterable[Queue]") -> list[ScheduleView]:
        """All entries of these queues, by queue and name."""
        by_name = {queue.worker.queue_name: queue for queue in queues}
        now = {name: self._core.backend.now(queue.shards[0]) for name, queue in by_name.items()}
        return views([*self._timetable, *self._timetable.broken], self._rows(by_name.values()), now)

    def history(self, queue: "Queue", name: str) -> list[NotedFiring]:
        """The last decisions about the entry, newest first. Raises NoSuchEntry."""
        return [*newest(self._known_rows(queue, name))]

    def switch(self, queue: "Queue", name: str, *, on: bool) -> None:
        """Switch the entry on or off, in each shard that has it. Raises NoSuchEntry."""
        is_declared = self._timetable.get(queue.worker.queue_name, name) is not None
        rows = self._known_rows(queue, name)
        switched = [
            self._store.switch(row.shard, name, on=on, is_declared=is_declared, starts_off=self._starts_off(queue, row))
            for row in rows
        ]
        # Somebody may have removed it meanwhile.
        if not any(switched):
            raise _no_such(queue, name)

    def switch_all(self, queue: "Queue", names: "Iterable[str] | None" = None, *, on: bool) -> None:
        """Switch all entries of the queue, or those of the names. Raises NoSuchEntry before any is switched."""
        declared = [entry for entry in self._timetable if entry.queue_name == queue.worker.queue_name]
        rows = {(row.shard, row.name): row for row in self._rows([queue])}
        own = [(self._shard_of(queue, entry), entry.name) for entry in declared]
        places = dict.fromkeys([*rows, *own])
        names_wanted = {name for _, name in places} if names is None else dict.fromkeys(names)
        for name in names_wanted:
            if all(name != one for _, one in places):
                raise _no_such(queue, name)
        for place in places:
            if place[1] in names_wanted:
                row = rows.get(place) or EntryRow(*place, EntryRecord())
                starts_off = self._starts_off(queue, row)
                self._store.switch(*place, on=on, is_declared=place in own, starts_off=starts_off)

    def remove_all(self, queue: "Queue") -> "Cleared":
        """Remove all entries of the queue that were made here, in steps of 100."""
        rows = self._rows([queue])
        made = [(row.shard, row.name) for row in rows if row.record.definition is not None]
        for step in _steps(made):
            self._store.remove_each(step)
        names = {row.name for row in rows} | {
            one.name for one in self._timetable if one.queue_name == queue.worker.queue_name
        }
        removed = {name for _, name in made}
        return Cleared(sorted(removed), sorted(names - removed))

    def run(self, queue: "Queue", name: str) -> Pushed:
        """Push the entry's job, and note that. Raises NoSuchEntry, and what a push raises."""
        entry = next((view.entry for view in self.all([queue]) if view.name == name), None)
        if entry is None:
            raise _no_such(queue, name)
        (pushed,) = self._run(queue, [(entry, {})])
        return pushed

    def run_all(self, queue: "Queue") -> list[Pushed]:
        """Push the jobs of all entries that are on and can fire, in steps of 100, each delayed within its jitter.

        A job whose id has work is dropped, where `unique` of its worker would raise: that must not keep others from
        running. Raises what a push raises; the steps before it have been pushed.
        """
        now = self._core.backend.now(queue.shards[0])
        entries = [view.entry for view in self.all([queue]) if view.entry and view.is_on and not view.problem]
        unique = queue.worker.unique
        terms = {"on_conflict": "drop"} if unique and unique.on_conflict == "raise" else {}
        runs = [(one, {**terms, **({"due_at": now + one.jitter_of(now)} if one.jitter else {})}) for one in entries]
        return [pushed for step in _steps(runs) for pushed in self._run(queue, step)]

    def _run(self, queue: "Queue", runs: "Sequence[tuple[ScheduleEntry, dict[str, Any]]]") -> list[Pushed]:
        """Push the jobs of entries with these further keys, and note it.

        That a note fails is logged: the jobs have been pushed, and an error would have people push them again.
        """
        jobs = [{"id": entry.id, "payload": entry.payload, **more} for entry, more in runs]
        for (entry, _), job in zip(runs, jobs, strict=True):
            if entry.expires_in is not None:
                job["expires_in"] = entry.expires_in
        pushed = self._core.pushes.push_many(queue.worker, jobs)
        names = {entry.name for entry, _ in runs}
        try:
            rows = [(row.shard, row.name) for row in self._rows([queue]) if row.name in names]
            self._store.note_runs(rows, RUN_NOW)
        except BackendError as error:
            first, more = runs[0][0].label, f" and {len(runs) - 1:,} more" if len(runs) > 1 else ""
            logger.warning("the history of %s%s lacks that it was run now: %s", first, more, error)
        return pushed

    def _starts_off(self, queue: "Queue", row: EntryRow) -> bool:
        """Whether the declaration of the entry has it off until somebody switches it on."""
        if row.record.definition is None:
            entry = self._timetable.get(queue.worker.queue_name, row.name)
            return entry is not None and not entry.enabled
        try:
            return loaded(row.record.definition).get("enabled") is False
        except msgspec.MsgspecError:
            return False

    def _known_rows(self, queue: "Queue", name: str) -> list[EntryRow]:
        """The records of the entry on shards, including its own shard. Raises NoSuchEntry if no shard has one."""
        rows = self._rows([queue], name)
        entry = self._timetable.get(queue.worker.queue_name, name)
        if entry and (shard := self._shard_of(queue, entry)) not in {row.shard for row in rows}:
            rows.append(EntryRow(shard, name, EntryRecord()))
        if not rows:
            raise _no_such(queue, name)
        return rows

    def _rows(self, queues: "Iterable[Queue]", name: str | None = None) -> list[EntryRow]:
        shards = [shard for queue in queues for shard in with_timetable(queue.shards)]
        return [row for row in self._store.rows(shards) if name is None or row.name == name]

    @staticmethod
    def _shard_of(queue: "Queue", entry: ScheduleEntry) -> "ShardRef":
        return with_timetable([queue.shards.home_of(entry.id)])[0]


def _steps(all_: "Sequence[_One]") -> "Iterator[Sequence[_One]]":
    for start in range(0, len(all_), _STEP):
        yield all_[start : start + _STEP]


def _definition(entry: ScheduleEntry) -> bytes:
    try:
        return dump_json(entry.definition())
    except (JobError, msgspec.MsgspecError) as error:
        raise DeclarationError(f"The payload of the entry {entry.name!r} cannot be kept as JSON: {error}") from error


def _is_declared(entry: ScheduleEntry) -> DeclarationError:
    return DeclarationError(
        f"Code declares the schedule entry {entry.name!r} of {entry.queue_name!r}: give this one another name."
    )


def _no_such(queue: "Queue", name: str) -> NoSuchEntry:
    return NoSuchEntry(f"Queue {queue.worker.queue_name!r} has no schedule entry {name!r}.")

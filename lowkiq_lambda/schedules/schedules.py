"""`app.schedules`: the entries of an app, those of its code and those made at run time, and what fires them.

A process that only drains declares entries and does nothing else here, so the rest is imported at its first use.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Unpack, overload

from msgspec import UNSET, UnsetType

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.errors import DeclarationError, JobError, NoSuchEntry, QueueMismatch
from lowkiq_lambda.declare.pushable import AnyWorker
from lowkiq_lambda.declare.worker import Worker, count_of, refuse_without_score, worker_of
from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.schedules.cron import digest_of
from lowkiq_lambda.schedules.entry import BrokenEntry, ScheduleEntry, Timetable, label_of, new_entry
from lowkiq_lambda.schedules.times import Times, parse_at, parse_cron, parse_every

if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from uuid import UUID

    from lowkiq_lambda.core import Core
    from lowkiq_lambda.duties.runner import DutyRunner
    from lowkiq_lambda.engine.queue import Queue
    from lowkiq_lambda.schedules.entry import DeclaredOptions, EntryOptions, FiringOptions
    from lowkiq_lambda.schedules.records import ScheduleView
    from lowkiq_lambda.schedules.run_time import Cleared, RunTimeEntries
    from lowkiq_lambda.schedules.tick import EntryTicker
    from lowkiq_lambda.schedules.waves import Ticked
    from lowkiq_lambda.store.shard.duty_claims import DutyLook, DutyState
    from lowkiq_lambda.store.shard.entries import NotedFiring


class Schedules:
    """The schedule entries of one app. An entry is known by its queue and its name.

    Methods that ask Redis raise QueueMismatch and BackendError, and what else they say.
    """

    def __init__(self, core: "Core") -> None:
        self._core = core
        self._timetable = Timetable()

    @property
    def declared(self) -> list[ScheduleEntry]:
        """The entries that the app's code declares, in order of declaration."""
        return [*self._timetable]

    @property
    def broken(self) -> "list[BrokenEntry]":
        """The entries of code that cannot work, with `bad_entries="report"`; else the first of them is an error."""
        return [*self._timetable.broken]

    def declare(
        self,
        worker: AnyWorker,
        times: Callable[[], Times],
        id: "str | int | UUID",
        options: "DeclaredOptions",
    ) -> None:
        """Declare an entry in code; `app.cron`, `app.every` and `app.at` call it.

        Raises DeclarationError, but with `bad_entries="report"` only for what is not a worker of this app.
        """
        queue_name = self._queue_name(worker)
        try:
            entry = new_entry(self._scheduled(worker), times(), id=id, **_without_tz(options))
            self._check_and_add(_plain(worker_of(worker), entry))
        except DeclarationError as error:
            self._report(queue_name, options.get("name", id), error)

    def declare_from(self, path: str | Path) -> None:
        """Declare the entries of a TOML file; `app.entries_from` calls it. Raises DeclarationError, OSError."""
        from lowkiq_lambda.schedules.toml_entries import read_toml  # noqa: PLC0415 - imported lazily: cold start

        for entry in read_toml(Path(path), self._report):
            try:
                declared = self._core.queues.worker_named(entry.queue_name) or _unknown(entry, path)
                self._scheduled(declared)
                self._check_and_add(_plain(declared, entry))
            except DeclarationError as error:
                self._report(entry.queue_name, entry.name, error)

    def check(self) -> list[str]:
        """The faults of the entries of the code, a sentence for each; without a call to Redis.

        A declaration checks neither payloads nor what only an evaluation shows, so that a process that only drains
        evaluates no expression.
        """
        problems = [problem for entry in self._timetable if (problem := self.problem_of(entry))]
        return [*map(str, self.broken), *problems]

    def problem_of(self, entry: ScheduleEntry) -> str | None:
        """Why the entry cannot fire, in a sentence that names it, or None; asks no Redis."""
        from lowkiq_lambda.schedules.tick import problem_of  # noqa: PLC0415 - imported lazily: cold start

        return problem_of(entry, self._core.config)

    def tick(self, remaining: Callable[[], float] = lambda: math.inf) -> "Ticked":
        """Fire what is due, while `remaining` (seconds) is more than 0, but for what another process has fired.

        Ticks and daemons call it by themselves. With `schedules=False` in the settings it fires nothing. Raises
        BackendError if no shard answers.
        """
        from lowkiq_lambda.schedules.waves import Ticked  # noqa: PLC0415 - imported lazily: cold start

        if self._core.config.schedules is False:
            return Ticked()
        return self._core.part(self._new_ticker).tick(remaining)

    def put(  # noqa: PLR0913 - the forms of times, by name
        self,
        name: str,
        worker: AnyWorker,
        /,
        *,
        id: "str | int | UUID",
        cron: str | None = None,
        every: "float | timedelta | None" = None,
        offset: "float | timedelta" = 0.0,
        at: "datetime | float | None" = None,
        **options: Unpack["FiringOptions"],
    ) -> None:
        """Make an entry at run time, or replace the one of that name; one of `cron`, `every` and `at` says when.

        Times that differ from those before count from now on, and so do those of another id. Raises DeclarationError
        if it cannot work, if code declares the name, or if the shard of the id has 1,000 entries.
        """
        times = _times(cron, every, offset, at, options.get("tz", UNSET))
        if "name" in options:
            raise DeclarationError("The name of an entry is the first argument of put: give it no second one.")
        self.put_entry(worker, self.draft(worker, times, id=id, name=name, **_without_tz(options)))

    def draft(
        self, worker: AnyWorker, times: Times, *, id: object, name: str, **options: Unpack["EntryOptions"]
    ) -> ScheduleEntry:
        """The entry that `put` would make; nothing is made. Raises DeclarationError if it cannot work."""
        entry = _plain(worker_of(worker), new_entry(self._scheduled(worker), times, id=id, name=name, **options))
        if problem := self.problem_of(entry):
            raise DeclarationError(problem)
        return entry

    def put_entry(self, worker: AnyWorker, entry: ScheduleEntry) -> None:
        """Make the entry of `draft`, or replace the one of its name, as `put`. Raises DeclarationError."""
        self._at_run_time.put(self._queue_of(worker), entry)

    def remove(self, worker: AnyWorker, name: str) -> None:
        """Remove an entry that was made at run time. Raises NoSuchEntry."""
        self._at_run_time.remove(self._queue_of(worker), name)

    def remove_all(self, worker: AnyWorker) -> "Cleared":
        """Remove all entries of a worker that were made at run time; entries of code stay, and are named."""
        return self._at_run_time.remove_all(self._queue_of(worker))

    def all(self, *workers: AnyWorker) -> "list[ScheduleView]":
        """All entries of these workers, or of all: of code, made at run time, and of other code that shards know."""
        names = [self._queue_name(worker) for worker in workers or self._core.queues.workers]
        queues, refused = self._core.queues.all_current()
        if unreadable := [name for name in names if name in refused]:
            raise QueueMismatch(refused[unreadable[0]], queue_name=unreadable[0])
        return self._at_run_time.all([queues[name] for name in names])

    def history(self, worker: AnyWorker, name: str) -> "list[NotedFiring]":
        """The last ten decisions about an entry, newest first. Raises NoSuchEntry."""
        return self._at_run_time.history(self._queue_of(worker), name)

    def enable(self, worker: AnyWorker, name: str) -> None:
        """Switch an entry on; times that came while it was off never fire. Raises NoSuchEntry."""
        self._at_run_time.switch(self._queue_of(worker), name, on=True)

    def disable(self, worker: AnyWorker, name: str) -> None:
        """Switch an entry off, for every process at once, until it is switched on again. Raises NoSuchEntry."""
        self._at_run_time.switch(self._queue_of(worker), name, on=False)

    def enable_all(self, worker: AnyWorker, names: Iterable[str] | None = None) -> None:
        """Switch all entries of a worker on, or those of these names.

        Raises NoSuchEntry for an unknown name, before any entry is switched.
        """
        self._at_run_time.switch_all(self._queue_of(worker), names, on=True)

    def disable_all(self, worker: AnyWorker, names: Iterable[str] | None = None) -> None:
        """The same to switch them off: those of code, and those made at run time."""
        self._at_run_time.switch_all(self._queue_of(worker), names, on=False)

    @overload
    def run(self, name: str, /, *, worker: "AnyWorker | None" = None) -> Pushed: ...
    @overload
    def run(self, worker: AnyWorker, name: str, /) -> Pushed: ...
    @overload
    def run(self, /, *, all: Literal[True], worker: "AnyWorker | None" = None) -> list[Pushed]: ...
    @overload
    def run(self, worker: AnyWorker, /, *, all: Literal[True]) -> list[Pushed]: ...
    def run(
        self,
        *entry: "AnyWorker | str",
        all: bool = False,  # noqa: A002 - the public name
        worker: "AnyWorker | None" = None,
    ) -> Pushed | list[Pushed]:
        """Push an entry's job now, or those of all that are on; through the client middlewares.

        Planned times stay as they are. `all`: in steps of 100, each job delayed within the `jitter` of its entry.
        A worker, first or by its keyword: the entries of this one; without it, those of all. Raises NoSuchEntry if not
        exactly one entry has the name, and what a push raises.
        """
        names = [one for one in entry if isinstance(one, str)]
        workers = [one for one in (worker, *entry) if one is not None and not isinstance(one, str)]
        if all is bool(names) or len(names) > 1 or len(workers) > 1:
            raise DeclarationError("Give the name of an entry, or all=True: one of the two, and at most one worker.")
        if all:
            queues = [self._queue_of(one) for one in workers or self._core.queues.workers]
            return [pushed for queue in queues for pushed in self._at_run_time.run_all(queue)]
        [name] = names
        return self._at_run_time.run(self._queue_of(workers[0] if workers else self._worker_with(name)), name)

    def duty_runner(self, clock: Clock) -> "DutyRunner":
        """The caller of `tick`."""
        from lowkiq_lambda.duties.runner import DutyRunner  # noqa: PLC0415 - imported lazily: cold start
        from lowkiq_lambda.schedules.tick import CLAIM_TTL, FireDuty  # noqa: PLC0415 - as above

        scope = self._duty_scope()
        return DutyRunner(
            self._core, [FireDuty(self.tick)], clock, name=FireDuty.name, scope=scope, claim_ttl=CLAIM_TTL
        )

    def duty_states(self) -> "list[DutyState]":
        """When entries were looked at last, and what came of it."""
        from lowkiq_lambda.store.shard.duty_claims import duty_states  # noqa: PLC0415 - imported lazily: cold start

        return duty_states(self._core.backend, self.duty_look(), self._core.config.redis_retry_for)

    def duty_look(self) -> "DutyLook":
        """The look that `duty_states` is made of; private."""
        from lowkiq_lambda.schedules.tick import FireDuty  # noqa: PLC0415 - imported lazily: cold start
        from lowkiq_lambda.store.shard.duty_claims import DutyKey, DutyLook  # noqa: PLC0415 - as above

        key = DutyKey.of(self._core.queues, self._duty_scope(), self._core.backend.prefix)
        return DutyLook(key, [(FireDuty.name, FireDuty.every)])

    def _check_and_add(self, entry: ScheduleEntry) -> None:
        entry.check_declared()
        self._timetable.add(entry, self._core.queues.worker_named(entry.queue_name))
        self._core.housekeeping.declares_schedules = True

    def _report(self, queue_name: object, name: object, error: DeclarationError) -> None:
        """Keep a broken entry, which each look at the entries logs; or raise its error, as the settings say."""
        if self._core.config.bad_entries == "raise":
            raise error
        label = label_of(queue_name, name)
        broken = BrokenEntry(f"{queue_name}", f"{name}", str(error).removeprefix(f"{label}: "))
        if broken not in self._timetable.broken:
            self._timetable.broken.append(broken)
        self._core.housekeeping.declares_schedules = True

    def _new_ticker(self, core: "Core") -> "EntryTicker":
        from lowkiq_lambda.schedules.tick import EntryTicker  # noqa: PLC0415 - imported lazily: cold start

        return EntryTicker(core, self._timetable, core.pushes.waker)

    def _duty_scope(self) -> str:
        """Processes that declare the same entries in the same shards share the work of firing them, and only they.

        One that a queue has left behind by `redeclare` fires nothing, so it must take no turn from the others.
        """
        layouts = sorted((worker.queue_name, count_of(worker), worker.merge) for worker in self._core.queues.workers)
        return f"schedules:{self._timetable.digest()}:{digest_of(layouts)}"

    @property
    def _at_run_time(self) -> "RunTimeEntries":
        from lowkiq_lambda.schedules.run_time import RunTimeEntries  # noqa: PLC0415 - imported lazily: cold start

        return RunTimeEntries(self._core, self._timetable)

    def _queue_of(self, worker: AnyWorker) -> "Queue":
        self._queue_name(worker)
        return self._core.queues.current(worker)

    def _worker_with(self, name: str) -> AnyWorker:
        """The only worker that has an entry of that name. Raises NoSuchEntry."""
        queues = [view.queue_name for view in self.all() if view.name == name]
        if len(queues) != 1 or (worker := self._core.queues.worker_named(queues[0])) is None:
            which = f"Queues {', '.join(map(repr, queues))} have" if queues else "No queue has"
            raise NoSuchEntry(f"{which} a schedule entry {name!r}{': give its worker' if queues else ''}.")
        return worker

    def _scheduled(self, worker: AnyWorker) -> str:
        """The queue of a worker whose jobs may have planned times as scores. Raises DeclarationError."""
        name = self._queue_name(worker)
        refuse_without_score(worker_of(worker), "A schedule entry")
        return name

    def _queue_name(self, worker: AnyWorker) -> str:
        declared = worker_of(worker)
        if self._core.queues.worker_named(declared.queue_name) is not declared:
            raise DeclarationError(f"{declared.__name__} is not a worker of this app: declare it with its @app.worker.")
        return declared.queue_name


def _times(
    cron: str | None,
    every: "float | timedelta | None",
    offset: "float | timedelta",
    at: "datetime | float | None",
    tz: str | UnsetType,
) -> Times:
    if (cron is not None) + (every is not None) + (at is not None) != 1:
        raise DeclarationError("A schedule entry has one of cron, every and at.")
    if offset and every is None:
        raise DeclarationError("offset goes with every alone.")
    if cron is not None:
        return parse_cron(cron, tz)
    zone = "UTC" if isinstance(tz, UnsetType) else tz
    return parse_every(every, offset, zone) if every is not None else parse_at(at, zone)


def _plain(worker: type[Worker[Any]], entry: ScheduleEntry) -> ScheduleEntry:
    """The entry with its payload as JSON values. Raises DeclarationError if it is not of the worker's type."""
    if worker.payload is None:
        return entry
    from lowkiq_lambda.declare.payloads import plain_payload  # noqa: PLC0415 - only where a type is declared

    try:
        return replace(entry, payload=plain_payload(worker.payload, entry.payload))
    except JobError as error:
        raise DeclarationError(f"{entry.label}: {error}.") from error


def _unknown(entry: ScheduleEntry, path: str | Path) -> NoReturn:
    raise DeclarationError(
        f"The schedule entry {entry.name!r} of {path} names the worker {entry.queue_name!r}: the app has no queue of "
        "that name."
    )


def _without_tz(options: "FiringOptions") -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "tz"}

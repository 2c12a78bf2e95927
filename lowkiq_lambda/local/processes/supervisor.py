"""Children that are supervised: one that dies is reported and replaced."""

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from lowkiq_lambda.base.clock import Clock, doubled
from lowkiq_lambda.local.processes.child_process import ChildProcess
from lowkiq_lambda.local.processes.memory import MemoryWatch
from lowkiq_lambda.local.processes.messages import FAILED, MISUSED, Word, worse
from lowkiq_lambda.local.thread_supervisor import LONGEST_PAUSE

logger = logging.getLogger(__name__)

FIRST_PAUSE: Final = 1.0
STEADY: Final = 30.0
"""Seconds of a child's life after which its death is a first one again."""
TIME_TO_START: Final = 30.0
"""Seconds after which a replacement is killed that does not run yet."""
PATIENCE: Final = 1.0
"""Seconds beyond its own time to end after which a child is killed."""


@dataclass(eq=False)
class _ChildSlot:
    number: int
    child: ChildProcess | None = None
    successor: ChildProcess | None = None
    """Takes the child's place as soon as it runs."""
    has_run: bool = False
    deaths: int = 0
    """In a row, each soon after its start."""
    starts_at: float = -math.inf
    runs_by: float = math.inf
    """When a replacement that does not run by then is killed."""
    failed_replacements: int = 0
    """In a row."""
    replaced_from: float = -math.inf
    """When a child that is too large may be replaced: later, after replacements that did not start."""

    @property
    def starting(self) -> ChildProcess | None:
        """The child that does not run yet: the successor, or the replacement of a child that died."""
        last = self.successor or self.child
        return None if last is None or last.ran_at is not None else last


@dataclass
class ProcessSupervisor:
    """The children of a daemon. Call `tend` when one has ended or runs, and at the time that it returned.

    After a first death the child is replaced at once; after deaths in a row with a back-off of a second, then longer.
    """

    processes: int
    start_child: Callable[[int], ChildProcess]
    shutdown_timeout: float
    clock: Clock
    watch: MemoryWatch | None = None
    died: Callable[[ChildProcess], object] = bool
    """Told of each child that ended, but for those that did so in good order when they were told to."""
    code: int = field(default=0, init=False)
    """The worst exit code of the children that were stopped."""
    is_stopping: bool = field(default=False, init=False)
    _is_quiet: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Make a slot for each child."""
        self._slots = [_ChildSlot(number) for number in range(self.processes)]
        self._leaving: dict[ChildProcess, float] = {}

    def tend(self) -> float:
        """Report dead children, start missing ones, kill those that do not end; seconds until the next look."""
        for slot in self._slots:
            self._see_to(slot)
        self._see_off()
        if self.has_ended:
            return 0.0
        acts_at = [*self._leaving.values()]
        if not self.is_stopping and not self._is_quiet:
            self._start_missing()
            self._recycle()
            acts_at += [slot.starts_at for slot in self._slots if slot.child is None]
            acts_at += [self.watch.looks_at] if self.watch and not self._is_recycling else []
        acts_at += [slot.runs_by for slot in self._slots if slot.starting]
        return min(acts_at, default=math.inf) - self.clock.monotonic()

    @property
    def has_ended(self) -> bool:
        """Whether all were told to stop, and have."""
        return self.is_stopping and not self._leaving

    @property
    def children(self) -> list[ChildProcess]:
        """Those that drain."""
        return [slot.child for slot in self._slots if slot.child is not None]

    def tell(self, word: Word) -> None:
        """Tell all of them; after `quiet` no child is replaced."""
        self._is_quiet = self._is_quiet or word == "quiet"
        successors = (slot.successor for slot in self._slots if slot.successor is not None)
        for child in (*self.children, *successors, *self._leaving):
            child.tell(word)

    def stop(self, code: int = 0) -> None:
        """Tell all to stop; the exit code is at least this one."""
        self.is_stopping = True
        self.code = worse(self.code, code)
        for slot in self._slots:
            for child in (slot.child, slot.successor):
                if child is not None:
                    self._dismiss(child)
            slot.child = slot.successor = None

    def hurry(self) -> None:
        """Tell those that have not ended to give back what they run, and to end at once."""
        for child in self._leaving:
            child.tell("now")
            self._leaving[child] = min(self._leaving[child], self.clock.monotonic() + PATIENCE)

    def _see_to(self, slot: _ChildSlot) -> None:
        if slot.child is not None and slot.child.ran_at is not None:
            slot.has_run = True
        self._kill_late(slot)
        if slot.successor is not None and slot.successor.returned is not None:
            self._failed(slot, slot.successor)
        if slot.child is not None and slot.child.returned is not None:
            self._lost(slot, slot.child)
        elif slot.child is not None and slot.successor is not None and slot.successor.ran_at is not None:
            self._dismiss(slot.child)
            slot.child, slot.successor = slot.successor, None
            slot.failed_replacements = 0

    def _kill_late(self, slot: _ChildSlot) -> None:
        late = slot.starting
        if late is not None and late.returned is None and slot.runs_by <= self.clock.monotonic():
            logger.error("a replacement does not start in time and is killed", extra=late.fields())
            late.kill()
            slot.runs_by = math.inf

    def _failed(self, slot: _ChildSlot, successor: ChildProcess) -> None:
        slot.successor = None
        slot.failed_replacements += 1
        pause = _pause_after(slot.failed_replacements)
        slot.replaced_from = self.clock.monotonic() + pause
        logger.error("a replacement did not start", extra={**successor.fields(), "replaced_in": pause})
        self.died(successor)

    def _lost(self, slot: _ChildSlot, child: ChildProcess) -> None:
        slot.child, slot.successor = slot.successor, None
        self.died(child)
        if not slot.has_run and child.returned in {FAILED, MISUSED}:
            logger.error("a child cannot start: all stop", extra=child.fields())
            self.stop(child.returned)
            return
        lived = 0.0 if child.ran_at is None else self.clock.monotonic() - child.ran_at
        slot.deaths = 1 if lived >= STEADY else slot.deaths + 1
        pause = _pause_after(slot.deaths)
        slot.starts_at = self.clock.monotonic() + pause
        fields = {**child.fields(), "replaced_in": pause}
        if child.returned == 0:
            logger.warning("a child was ended and is replaced", extra=fields)
        else:
            logger.error("a child died and is replaced", extra=fields)

    def _start_missing(self) -> None:
        for slot in self._slots:
            if slot.child is None and slot.starts_at <= self.clock.monotonic():
                slot.child, slot.runs_by = self._started(slot), math.inf

    def _started(self, slot: _ChildSlot) -> ChildProcess | None:
        """A child for the slot; None if the system has no room for another process, now."""
        try:
            return self.start_child(slot.number)
        except OSError as error:
            logger.error("a child cannot be started: %s", error, extra={"child": slot.number})  # noqa: TRY400 - no bug
            slot.starts_at = self.clock.monotonic() + LONGEST_PAUSE
            return None

    @property
    def _is_recycling(self) -> bool:
        """One at a time, until the one that was replaced has ended."""
        return bool(self._leaving) or any(slot.successor for slot in self._slots)

    def _recycle(self) -> None:
        if self.watch is None or self._is_recycling:
            return
        slots = [slot for slot in self._slots if slot.replaced_from <= self.clock.monotonic()]
        child = self.watch.over_limit([slot.child for slot in slots if slot.child is not None])
        for slot in slots:
            if child is not None and slot.child is child:
                slot.successor, slot.runs_by = self._started(slot), self.clock.monotonic() + TIME_TO_START

    def _dismiss(self, child: ChildProcess) -> None:
        child.tell("stop")
        self._leaving[child] = self.clock.monotonic() + self.shutdown_timeout + PATIENCE

    def _see_off(self) -> None:
        """Drop dismissed children that have ended, and kill those whose time to end is over."""
        for child, killed_at in list(self._leaving.items()):
            returned = child.returned
            if returned is None and killed_at <= self.clock.monotonic():
                logger.error("a child does not end and is killed", extra=child.fields())
                child.kill()
                self._leaving[child] = math.inf
            elif returned is not None:
                del self._leaving[child]
                if returned != 0:
                    self.died(child)
                # One that had not started had no job to lose.
                if self.is_stopping and child.ran_at is not None:
                    self.code = worse(self.code, returned)


def _pause_after(failures: int) -> float:
    """Seconds until the next attempt, after so many failed attempts in a row."""
    return 0.0 if failures == 1 else doubled(FIRST_PAUSE, failures - 2, LONGEST_PAUSE)

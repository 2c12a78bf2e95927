"""How much memory processes have, and which child has had too much."""

import logging
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol, TypeVar

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.errors import ConfigError

logger = logging.getLogger(__name__)

LOOK_INTERVAL: Final = 5.0
EARLY: Final = 60.0
"""Seconds of a child's life in which it must stay below `EARLY_SHARE` of the limit."""
EARLY_SHARE: Final = 0.8
_KIBIBYTE: Final = 1024
_MEBIBYTE: Final = 1024 * 1024


def memory_of(pid: int) -> int | None:
    """The resident memory of a process, in bytes; None if it has ended, or the system does not report it."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Rss:"):
                return int(line.split()[1]) * _KIBIBYTE
    return None


class Measured(Protocol):
    """A process whose memory is watched."""

    @property
    def number(self) -> int:
        """Which of the children."""
        ...

    @property
    def pid(self) -> int:
        """Of the process."""
        ...

    @property
    def ran_at(self) -> float | None:
        """When its daemon had started, monotonic; None if it has not."""
        ...


Child = TypeVar("Child", bound=Measured)


class MemoryWatch:
    """Checks every five seconds which child is over the limit, in bytes.

    If a young child is near the limit already, the limit is too low: it would recycle children for ever, and work
    would stand still. The watch ends then, and logs it.
    """

    def __init__(self, limit: int, clock: Clock, memory_of: Callable[[int], int | None] = memory_of) -> None:
        self._limit = limit
        self._clock = clock
        self._memory_of = memory_of
        self.looks_at = clock.monotonic() + LOOK_INTERVAL
        """When the next look is due, monotonic; infinity: there is none."""

    def over_limit(self, children: Iterable[Child]) -> Child | None:
        """The first child that is over the limit, if a look is due and there is one."""
        if self.looks_at > self._clock.monotonic():
            return None
        self.looks_at = self._clock.monotonic() + LOOK_INTERVAL
        sizes = [(child, self._memory_of(child.pid) or 0) for child in children if child.ran_at is not None]
        for child, size in sizes:
            if self._is_young(child) and size > EARLY_SHARE * self._limit:
                self.looks_at = math.inf
                logger.error(
                    "a young child is near --max-memory already: the limit is too low, and is ignored from now on",
                    extra={"child": child.number, **_sizes(size, self._limit)},
                )
                return None
        for child, size in sizes:
            if size > self._limit:
                logger.warning(
                    "a child is over --max-memory and is replaced",
                    extra={"child": child.number, "pid": child.pid, **_sizes(size, self._limit)},
                )
                return child
        return None

    def _is_young(self, child: Measured) -> bool:
        return child.ran_at is not None and self._clock.monotonic() - child.ran_at < EARLY


def new_watch(megabytes: int, clock: Clock) -> MemoryWatch:
    """A watch over so many megabytes (MiB) for each child. Raises ConfigError if the system does not report memory."""
    if not Path("/proc/self/smaps_rollup").exists():
        raise ConfigError("--max-memory needs Linux, which tells the memory of processes in /proc/PID/smaps_rollup.")
    return MemoryWatch(megabytes * _MEBIBYTE, clock)


def _sizes(size: int, limit: int) -> dict[str, int]:
    return {"megabytes": size // _MEBIBYTE, "limit": limit // _MEBIBYTE}

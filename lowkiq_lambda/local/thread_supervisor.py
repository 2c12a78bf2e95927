"""Threads that are supervised: one that dies of an error is reported and replaced (C-15)."""

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from threading import Thread
from typing import Final, Protocol

from lowkiq_lambda.base.clock import Clock, doubled
from lowkiq_lambda.engine.perform import interruptions

logger = logging.getLogger(__name__)

LONGEST_PAUSE: Final = 30.0


class Runnable(Protocol):
    """The work of a supervised thread, until it is stopped or dies."""

    has_worked: bool
    """Set when its next death is a first one: it got something done, or has seen to the pause itself."""

    def run(self) -> None:
        """Do it. Returns when it is to end; may be called again after it raised."""
        ...


@dataclass(eq=False)
class _Slot:
    name: str
    runnable: Runnable
    is_running: bool = False
    error: BaseException | None = None
    deaths: int = 0
    """In a row, without anything done between them."""
    replaced_at: float = math.inf


class ThreadSupervisor:
    """The threads of a daemon. Only `tend` replaces, so it must be called now and then, and when `notify` was.

    The first death is made good at once; deaths in a row with a pause, `pause` seconds and longer each time.
    """

    def __init__(
        self,
        runnables: Sequence[tuple[str, Runnable]],
        *,
        pause: float,
        clock: Clock,
        notify: Callable[[], None],
        last_words: Callable[[BaseException], None],
    ) -> None:
        self._pause = pause
        self._clock = clock
        self._notify = notify
        self._last_words = last_words
        self.find_more: Callable[[], Iterable[tuple[str, Runnable]]] = tuple
        """Asked by each `tend` for what is to run from then on, too."""
        self._slots = [_Slot(name, runnable) for name, runnable in runnables]

    def start(self) -> None:
        """Start all threads."""
        for slot in self._slots:
            self._start(slot)

    def tend(self) -> float:
        """Report dead threads, replace those whose pause is over, and start new ones; seconds until the next one is."""
        self.report()
        for name, runnable in self.find_more():
            self._slots.append(_Slot(name, runnable))
            self._start(self._slots[-1])
        for slot in self._slots:
            if slot.replaced_at <= self._clock.monotonic():
                self._start(slot)
        return min(slot.replaced_at for slot in self._slots) - self._clock.monotonic()

    def report(self) -> float:
        """Report dead threads without replacing them, which could take any time."""
        for slot in self._slots:
            if slot.error is not None:
                error, slot.error = slot.error, None
                self._report(slot, error)
        return math.inf

    def running(self) -> list[str]:
        """The names of the threads that run."""
        return [slot.name for slot in self._slots if slot.is_running]

    def _start(self, slot: _Slot) -> None:
        slot.replaced_at = math.inf
        slot.is_running = True
        # A daemon thread, so the end of the process does not have to wait for it.
        Thread(target=self._run, args=(slot,), name=f"lowkiq-{slot.name}", daemon=True).start()

    def _run(self, slot: _Slot) -> None:
        try:
            slot.runnable.run()
        except BaseException as error:  # noqa: BLE001 - the thread is replaced after any exception
            slot.error = error
        finally:
            slot.is_running = False
            self._notify()

    def _report(self, slot: _Slot, error: BaseException) -> None:
        slot.deaths = 1 if slot.runnable.has_worked else slot.deaths + 1
        slot.runnable.has_worked = False
        pause = 0.0 if slot.deaths == 1 else self._longer(slot.deaths - 2)
        slot.replaced_at = self._clock.monotonic() + pause
        fields = {"died": slot.name, "replaced_in": pause}
        if isinstance(error, interruptions()):
            logger.warning("a drain thread was ended by %r and is replaced", error, extra=fields)
        else:
            logger.error("a thread died and is replaced", extra=fields, exc_info=error)
        self._last_words(error)

    def _longer(self, times: int) -> float:
        return doubled(self._pause, times, LONGEST_PAUSE)

"""Threads that are watched: one that dies of an error is reported and replaced (C-15)."""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Thread
from typing import Final, Protocol

from lowkiq_lambda.clock import Clock, doubled
from lowkiq_lambda.engine.perform import INTERRUPTIONS

logger = logging.getLogger(__name__)

LONGEST_PAUSE: Final = 30.0


class Job(Protocol):
    """What a thread of the crew does, until it is told to stop or dies."""

    has_worked: bool
    """Set by the job when its next death is a first one: it got something done, or has seen to the pause itself."""

    def run(self) -> None:
        """Do it. Returns when it is to end; may be called again after it raised."""
        ...


@dataclass(eq=False)
class _Slot:
    name: str
    job: Job
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
        jobs: Sequence[tuple[str, Job]],
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
        self._posts = [_Slot(name, job) for name, job in jobs]

    def start(self) -> None:
        """Start all threads."""
        for post in self._posts:
            self._start(post)

    def tend(self) -> float:
        """Report who died, and replace those whose pause is over; seconds until the next one's is."""
        self.report()
        for post in self._posts:
            if post.replaced_at <= self._clock.monotonic():
                self._start(post)
        return min(post.replaced_at for post in self._posts) - self._clock.monotonic()

    def report(self) -> float:
        """Report who died, and replace nobody: that takes any time."""
        for post in self._posts:
            if post.error is not None:
                error, post.error = post.error, None
                self._report(post, error)
        return math.inf

    def running(self) -> list[str]:
        """The names of the threads that run."""
        return [post.name for post in self._posts if post.is_running]

    def _start(self, post: _Slot) -> None:
        post.replaced_at = math.inf
        post.is_running = True
        # A daemon thread: whoever wants to end the process waits for it, or doesn't.
        Thread(target=self._run, args=(post,), name=f"lowkiq-{post.name}", daemon=True).start()

    def _run(self, post: _Slot) -> None:
        try:
            post.job.run()
        except BaseException as error:  # noqa: BLE001 - whatever it was, the thread is replaced
            post.error = error
        finally:
            post.is_running = False
            self._notify()

    def _report(self, post: _Slot, error: BaseException) -> None:
        post.deaths = 1 if post.job.has_worked else post.deaths + 1
        post.job.has_worked = False
        pause = 0.0 if post.deaths == 1 else self._longer(post.deaths - 2)
        post.replaced_at = self._clock.monotonic() + pause
        fields = {"died": post.name, "replaced_in": pause}
        if isinstance(error, INTERRUPTIONS):
            logger.warning("a drain thread was ended by %r and is replaced", error, extra=fields)
        else:
            logger.error("a thread died and is replaced", extra=fields, exc_info=error)
        self._last_words(error)

    def _longer(self, times: int) -> float:
        return doubled(self._pause, times, LONGEST_PAUSE)

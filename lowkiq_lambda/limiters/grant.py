"""What a limiter answers: a grant of points, or a refusal."""

import logging
from contextlib import suppress
from threading import Event, Thread
from typing import Final, Self

import msgspec

from lowkiq_lambda.base.error_text import headline
from lowkiq_lambda.base.errors import BackendError, LeaseLost
from lowkiq_lambda.jobs.retry import Later
from lowkiq_lambda.store.shard.limiting import Asked, LimiterCalls, LimitNumbers, Operation

logger = logging.getLogger(__name__)

_TRUSTED: Final = 0.9
"""Of the time for which a place is held: the rest is for clocks that run at different speeds."""


class Refusal(msgspec.Struct, frozen=True):
    """The limiter has no room now: it is worth asking again in so many seconds. It is false.

    `position`: the place in line, from 1; 0 if the limiter could not be asked.
    """

    seconds: float
    position: int
    reason: str = ""

    def __bool__(self) -> bool:
        return False

    def later(self) -> Later:
        """For `raise`, or for `batch.put_off(id, refusal.later())`: the job goes on when it is its turn."""
        return Later(self.seconds, self.reason)


class Grant:
    """Points of a limiter, or one of its places. Use it at once: what it lets begin, is to begin now.

    A place of a `Concurrent` limiter is a context manager: it is renewed while the block runs, and given back at its
    end. Without `with` it ends after `hold` seconds, or with `give_back`.
    """

    def __init__(
        self, calls: LimiterCalls, place: tuple[str, str], numbers: LimitNumbers, request: Asked, left: int
    ) -> None:
        self.points: int = request.points
        """How many are used: those that were asked for, with what was spent and given back since."""
        self.left: Final = left
        """How many more points or places were free then."""
        self._calls = calls
        self._place = place
        self._numbers = numbers
        self._request = request
        self._began = calls.clock.monotonic(), calls.clock.time()
        self._is_lost = False
        self._ended = Event()

    @property
    def is_held(self) -> bool:
        """Whether the place is still the caller's; of the other kinds, always."""
        if self._numbers.kind != "concurrent":
            return True
        clock, (at, wall) = self._calls.clock, self._began
        age = max(clock.monotonic() - at, clock.time() - wall)
        return not (self._is_lost or self._ended.is_set()) and age < self._numbers.seconds * _TRUSTED

    def spend(self, points: int) -> None:
        """Note that so many more were used than asked for: the limiter refuses others until they are free again.

        Raises ValueError if it is not a number of points, or the limiter has places.
        """
        self._check(points)
        self._note("spend", points)
        self.points += points

    def give_back(self, points: int | None = None) -> None:
        """Give back points that were not used, or the place; all of them by default.

        Raises ValueError for more points than the grant has.
        """
        if points is not None:
            self._check(points)
        count = self.points if points is None else points
        if count > self.points:
            raise ValueError(f"give_back: the grant has {self.points} points, not {count}.")
        if count:
            self._ended.set()
            self._note("give", count)
        self.points -= count

    def __enter__(self) -> Self:
        if self._numbers.kind == "concurrent":
            Thread(target=self._renew, name="lowkiq-limiter", daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._numbers.kind == "concurrent":
            self.give_back()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *error: object) -> None:
        import asyncio  # noqa: PLC0415 - imported lazily: cold start

        await asyncio.to_thread(self.__exit__, *error)

    def _check(self, points: int) -> None:
        check_points(points)
        if self._numbers.kind == "concurrent":
            raise ValueError("A place is one: give it back as a whole.")

    def _note(self, operation: Operation, points: int) -> None:
        try:
            self._calls.change(*self._place, self._numbers, operation, self._request._replace(points=points))
        except BackendError as error:
            # What is used, is used, and a place ends by itself: the job does not fail for it.
            logger.warning("the limiter %r could not note %d points: %s", self._place[0], points, headline(error))

    def _renew(self) -> None:
        while not self._ended.wait(self._numbers.seconds / 3):
            began = self._calls.clock.monotonic(), self._calls.clock.time()
            with suppress(BackendError):
                try:
                    self._calls.change(*self._place, self._numbers, "keep", self._request)
                except LeaseLost:
                    self._is_lost = True
                    return
                self._began = began


def check_points(points: object) -> None:
    """Raises ValueError if the value is not a number of points."""
    if isinstance(points, bool) or not isinstance(points, int) or points < 1:
        raise ValueError(f"points must be a whole number from 1 on, not {points!r}.")

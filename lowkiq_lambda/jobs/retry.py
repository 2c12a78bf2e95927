"""The delays of jobs that failed, or asked to go on later, and the days for which a failed one is retried."""

import inspect
import math
from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Final, Self

from lowkiq_lambda.base.errors import LowkiqError

MAX_DELAY: Final = 100 * 365.25 * 86_400
"""Seconds: a longer delay is a mistake (it would leave the range in which times are exact)."""

SHORTEST_DELAY: Final = 1.0
"""Seconds from the begin of a run that did not change its cursor to the next, so that it cannot run again and again."""

_NOISE: Final = 30
_DAY: Final = 86_400


class NoRetry(float):
    """What `retry_in` returns in place of seconds, for a job that is not tried again: `KILL` or `DISCARD`.

    It is a float for type checkers, so that `retry_in` returns floats alone. Any calculation with it is NaN.
    """

    __slots__ = ("name",)
    name: str

    def __new__(cls, name: str) -> Self:
        """There are two of them, made below."""
        constant = super().__new__(cls, math.nan)
        constant.name = name
        return constant

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return self.name


KILL: Final = NoRetry("KILL")
"""`retry_in` returns it: the oldest payload goes to the morgue, the list of dead jobs, at once."""
DISCARD: Final = NoRetry("DISCARD")
"""`retry_in` returns it: the oldest payload is dropped, and the others of its id run."""


class Later(LowkiqError):
    """The job asked to go on later."""

    def __init__(self, delay: float | timedelta, reason: str = "") -> None:
        """Raise it in a handler to put the job off: it runs again later, and no failure counts.

        Args:
            delay: from now, in seconds or as a timedelta; at least a second, unless a cursor has moved in this run.
            reason: for people who ask why the job waits; up to 200 characters are kept.

        Raises:
            ValueError: the delay is negative, or longer than a job can wait.

        Example:
            raise Later(float(response.headers["Retry-After"]), "the shop says 429")
        """
        seconds = safe_delay(delay.total_seconds() if isinstance(delay, timedelta) else delay)
        if seconds is None:
            raise ValueError(f"Later: the delay must be from 0 to {MAX_DELAY:,.0f} seconds, not {delay!r}.")
        super().__init__(reason)
        self.seconds = seconds
        self.reason = str(reason)

    def __reduce__(self) -> tuple[type["Later"], tuple[float, str], dict[str, object]]:
        """A process of a pool may raise it, too: exceptions are made anew from their text otherwise."""
        return type(self), (self.seconds, self.reason), self.__dict__


class Cancelled(Later):
    """Raise it in a plain handler that stops as an operator has cancelled the job (`batch.cancelled`).

    If nobody has, the job goes on later. A coroutine gets a `CancelledError` of asyncio instead, and passes it on.
    """

    def __init__(self, reason: str = "cancelled") -> None:
        super().__init__(0, reason)

    def __reduce__(self) -> tuple[type["Later"], tuple[float, str], dict[str, object]]:
        """As a `Later`, which it is to a drain."""
        return Later, (self.seconds, self.reason), self.__dict__


def asked_of(later: Later) -> Later:
    """The same, as this library makes it. Raises what its own class, or the handler, has made of it."""
    return Later(later.seconds, later.reason)


def default_retry_in(retry_count: int, rng: Random) -> float:
    """Seconds to wait after failure number `retry_count`, counted from 0: growing, with noise."""
    return float(retry_count**4 + 15 + rng.randrange(_NOISE) * (retry_count + 1))


def retry_horizon(max_retry_count: int, retry_in: Callable[[int], float] | None = None) -> float:
    """Days from the first failure of a job to the morgue, when each execution fails at once.

    With the default delays the mean of their noise is taken. No error is known here: of a `retry_in` that takes one,
    pass a function of the count alone.
    """
    delay = retry_in or _mean_retry_in
    return sum(delay(retry_count) for retry_count in range(max_retry_count)) / _DAY


def safe_delay(value: object) -> float | None:
    """A delay that a worker's `retry_in` returned, in seconds; None if it is not a sensible delay."""
    kind = type(value)
    if issubclass(kind, bool) or not issubclass(kind, int | float):
        return None
    # As a number of Python's own: one of another class may raise wherever it is read.
    number: float = int.__int__(value) if issubclass(kind, int) else float.__float__(value)  # type: ignore[arg-type]  # as its class says
    # NaN compares false with both bounds.
    return float(number) if 0 <= number <= MAX_DELAY else None


def takes_error(function: Callable[..., object], *arguments: object) -> bool | None:
    """Whether a function takes an error behind these arguments; None if it can be called neither with nor without one.

    An argument with a default is meant for the error only if that is its name.

    >>> takes_error(lambda count, error: 0, 0), takes_error(lambda count, base=10: 0, 0), takes_error(lambda: 0, 0)
    (True, False, None)
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        # Not every function that is written in C has a signature.
        return False
    if not _binds(signature, *arguments, None):
        return False if _binds(signature, *arguments) else None
    positional = [each for each in signature.parameters.values() if each.kind is not each.KEYWORD_ONLY]
    parameter = positional[min(len(arguments), len(positional) - 1)]
    return parameter.default is parameter.empty or parameter.name == "error"


def _binds(signature: inspect.Signature, *arguments: object) -> bool:
    try:
        signature.bind(*arguments)
    except TypeError:
        return False
    return True


def _mean_retry_in(retry_count: int) -> float:
    return retry_count**4 + 15 + (_NOISE - 1) / 2 * (retry_count + 1)

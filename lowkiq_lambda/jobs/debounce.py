"""How long an id waits for more pushes: a value of declarations."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.jobs.job import is_number

LONGEST: Final = 366 * 86_400
"""Seconds: more than a year is a number of milliseconds, given by mistake."""
DEFAULT_LIMIT: Final = 10
"""Without `at_most` an id debounces for so many times `quiet`, so that it never starves."""


@dataclass(frozen=True, slots=True, init=False)
class Debounce:
    """A new id becomes due when no push has come for `quiet`, and `at_most` so long after its first push.

    Both are seconds, or a timedelta. Without `at_most` it is ten times `quiet`.

    Examples:
        >>> Debounce(2.0)
        Debounce(quiet=2.0, at_most=20.0)
        >>> Debounce(2.0, at_most=1.0)
        Traceback (most recent call last):
        ...
        lowkiq_lambda.base.errors.DeclarationError: at_most of a Debounce is 1.0 seconds, less than quiet, which is 2.0.
    """

    quiet: float
    at_most: float

    def __init__(self, quiet: float | timedelta, at_most: float | timedelta | None = None) -> None:
        """Raises DeclarationError for what cannot be."""
        quiet = _seconds("quiet", quiet)
        limit = min(quiet * DEFAULT_LIMIT, LONGEST) if at_most is None else _seconds("at_most", at_most)
        if limit < quiet:
            raise DeclarationError(f"at_most of a Debounce is {limit} seconds, less than quiet, which is {quiet}.")
        object.__setattr__(self, "quiet", quiet)
        object.__setattr__(self, "at_most", float(limit))


def check_debounce(debounce: object, name: str) -> None:
    """Raises DeclarationError for what the worker of that name cannot have."""
    if not isinstance(debounce, Debounce):
        example = "as in Debounce(2.0, at_most=10.0)"
        raise DeclarationError(f"{name}.debounce must be a Debounce, {example}, not {debounce!r}.")


def _seconds(name: str, value: object) -> float:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if not is_number(seconds) or not isinstance(seconds, int | float) or not 0 < seconds <= LONGEST:
        raise DeclarationError(
            f"{name} of a Debounce must be seconds above 0 and at most 366 days, or a timedelta, not {value!r}."
        )
    return float(seconds)

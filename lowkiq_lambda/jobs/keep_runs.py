"""How many runs a queue keeps for people to look at: a value of declarations."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Self

from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.jobs.job import is_number

FEWEST: Final = 100
MOST: Final = 1_000_000
LONGEST: Final = 90 * 86_400
"""Seconds."""
MOST_BYTES: Final = 64 * 1024 * 1024
"""Of one queue."""


@dataclass(frozen=True, slots=True, init=False)
class KeepRuns:
    """The queue keeps its last `runs` runs, for at most `age` (seconds, or a timedelta; None: however old they are).

    They are shared out to its shards, and take 64 MB at most. With `payloads` a run has its payloads, and can be
    replayed.

    Examples:
        >>> KeepRuns(100_000, age=timedelta(days=7))
        KeepRuns(runs=100000, age=604800.0, payloads=False)
        >>> KeepRuns(10)
        Traceback (most recent call last):
        ...
        lowkiq_lambda.base.errors.DeclarationError: runs of a KeepRuns must be a whole number from 100 to 1,000,000, ...
    """

    runs: int
    age: float | None
    payloads: bool

    def __init__(self, runs: int, age: float | timedelta | None = None, *, payloads: bool = False) -> None:
        """Raises DeclarationError for what cannot be."""
        _check_runs("runs of a KeepRuns", runs)
        if not isinstance(payloads, bool):
            raise DeclarationError(f"payloads of a KeepRuns must be True or False, not {payloads!r}.")
        object.__setattr__(self, "runs", runs)
        object.__setattr__(self, "age", None if age is None else _seconds(age))
        object.__setattr__(self, "payloads", payloads)

    @classmethod
    def of(cls, declared: object, where: str = "keep_runs") -> Self:
        """What a worker declares: a KeepRuns, or the number of runs. Raises DeclarationError for anything else."""
        if isinstance(declared, cls):
            return declared
        _check_runs(where, declared, " or a KeepRuns")
        return cls(declared)  # type: ignore[arg-type]  # the check has shown that it is a number


def _check_runs(where: str, runs: object, other: str = "") -> None:
    if not is_number(runs) or not isinstance(runs, int) or not FEWEST <= runs <= MOST:
        raise DeclarationError(f"{where} must be a whole number from {FEWEST:,} to {MOST:,}{other}, not {runs!r}.")


def _seconds(age: object) -> float:
    seconds = age.total_seconds() if isinstance(age, timedelta) else age
    if not is_number(seconds) or not isinstance(seconds, int | float) or not 0 < seconds <= LONGEST:
        raise DeclarationError(
            f"age of a KeepRuns must be seconds above 0 and at most 90 days, or a timedelta, not {age!r}."
        )
    return float(seconds)

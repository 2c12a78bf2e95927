"""The limits of a limiter that handlers ask, beside `Rate`: values of declarations."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.jobs.job import MAX_EXACT, is_number
from lowkiq_lambda.jobs.rate import Rate
from lowkiq_lambda.jobs.retry import MAX_DELAY

Kind: TypeAlias = Literal["rate", "leaky", "bucket", "concurrent"]
MOST_PLACES: Final = 100_000
SHORTEST_PERIOD: Final = 1.0
"""Seconds: what a call grants is used within a twentieth of a period."""


@dataclass(frozen=True, slots=True)
class Leaky:
    """Up to `capacity` points at once; they come back one by one, all of them in `per` seconds.

    Examples:
        >>> Leaky(capacity=60, per=60)
        Leaky(capacity=60, per=60)
    """

    capacity: int
    per: float

    def __post_init__(self) -> None:
        """Raises DeclarationError if the fields cannot be a limit."""
        _check("capacity", "Leaky", self.capacity, MAX_EXACT)
        _check_seconds("per", "Leaky", self.per)


@dataclass(frozen=True, slots=True)
class Bucket:
    """At most `points` in each period of `per` seconds by the server's clock: whole hours with `per=3600`.

    Examples:
        >>> Bucket(600, per=3600)
        Bucket(points=600, per=3600)
    """

    points: int
    per: float

    def __post_init__(self) -> None:
        """Raises DeclarationError if the fields cannot be a limit."""
        _check("points", "Bucket", self.points, MAX_EXACT)
        _check_seconds("per", "Bucket", self.per)


@dataclass(frozen=True, slots=True)
class Concurrent:
    """At most `places` at once. A place that is not given back ends `hold` seconds after it was renewed last.

    Examples:
        >>> Concurrent(50, hold=60)
        Concurrent(places=50, hold=60)
    """

    places: int
    hold: float = 60.0

    def __post_init__(self) -> None:
        """Raises DeclarationError if the fields cannot be a limit."""
        _check("places", "Concurrent", self.places, MOST_PLACES)
        _check_seconds("hold", "Concurrent", self.hold)


Limit: TypeAlias = Rate | Leaky | Bucket | Concurrent


def kind_of(limit: Limit) -> Kind:
    """The word for the kind of a limit."""
    return _KINDS[type(limit)]


def numbers_of(limit: Limit) -> tuple[int, float]:
    """The points or places of a limit, and its seconds."""
    match limit:
        case Rate(most, seconds) | Leaky(most, seconds) | Bucket(most, seconds) | Concurrent(most, seconds):
            return most, seconds


def with_numbers(limit: Limit, most: int, seconds: float) -> Limit:
    """A limit of the same kind. Raises DeclarationError."""
    return type(limit)(most, seconds)


def check_limit(limit: object) -> None:
    """Raises DeclarationError if the value is not a limit."""
    if type(limit) not in _KINDS:
        raise DeclarationError(f"A limiter takes a Rate, Leaky, Bucket or Concurrent, not {limit!r}.")


_KINDS: Final[dict[type, Kind]] = {Rate: "rate", Leaky: "leaky", Bucket: "bucket", Concurrent: "concurrent"}


def _check(field: str, kind: str, value: object, most: int) -> None:
    if not is_number(value) or not isinstance(value, int) or not 0 < value <= most:
        raise DeclarationError(f"{field} of a {kind} must be a whole number from 1 to {most:,}, not {value!r}.")


def _check_seconds(field: str, kind: str, value: object) -> None:
    if not is_number(value) or not isinstance(value, int | float) or not SHORTEST_PERIOD <= value <= MAX_DELAY:
        raise DeclarationError(f"{field} of a {kind} must be seconds from 1 to 100 years, not {value!r}.")

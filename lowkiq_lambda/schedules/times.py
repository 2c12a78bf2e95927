"""Planned times: values that say which moments (Unix seconds) come after a given one."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Final, Literal, TypeAlias

from msgspec import UNSET, UnsetType

from lowkiq_lambda.base.error_text import shown
from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.jobs.job import is_number
from lowkiq_lambda.schedules.cron import LATEST, Cron, digest_of
from lowkiq_lambda.schedules.expression import split_zone
from lowkiq_lambda.schedules.zones import check_zone_known, check_zone_name, zone_of

SHORTEST: Final = 1.0
LONGEST: Final = 366 * 86_400.0
"""Seconds of a period."""
EARLIEST: Final = 1_000_000_000.0
"""September 2001: a smaller number is not a date in the future."""

_UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60))


@dataclass(frozen=True, slots=True)
class Every:
    """One moment in each period, counted from 1970 and not from the start of a process: no restart moves it."""

    period: float
    offset: float = 0.0
    tz: str = "UTC"
    """The zone in which people are shown its times."""

    kind: ClassVar[Literal["every"]] = "every"

    def __post_init__(self) -> None:
        check_zone_name(self.tz)
        if problem := problem_of_seconds(self.period, SHORTEST, LONGEST):
            raise DeclarationError(f"every {problem}.")
        if problem := problem_of_seconds(self.offset):
            raise DeclarationError(f"offset {problem}.")
        if not 0 <= self.offset < self.period:
            raise DeclarationError(f"offset must be from 0 to less than the period, not {self.offset!r}.")

    @property
    def text(self) -> str:
        """Seconds of the period, and of an offset: "600", "600+30"."""
        return "+".join(_plain(number) for number in (self.period, self.offset) if number)

    def after(self, moment: float) -> Iterator[float]:
        """The planned times after the moment, strictly ascending, without end."""
        # The division may be rounded up to a planned time that is still to come.
        count = math.floor((moment - self.offset) / self.period)
        while True:
            planned = self.offset + count * self.period
            if planned > moment:
                yield planned
            count += 1

    def check_declared(self) -> None:
        """Raises DeclarationError if this machine knows zones, and not this one."""
        check_zone_known(self.tz)

    def check(self) -> None:
        """Raises DeclarationError if the zone is unknown."""
        zone_of(self.tz)

    @property
    def digest(self) -> str:
        """Equal for equal planned times."""
        return digest_of(self.kind, self.text)

    @property
    def declared(self) -> str:
        """As people declare it: "every 15 min"."""
        offset = f", {_duration(self.offset)} after its beginning" if self.offset else ""
        return f"every {_duration(self.period)}{offset}"

    def explain(self) -> str:
        """In English."""
        return f"E{self.declared[1:]}"


@dataclass(frozen=True, slots=True)
class At:
    """One moment (Unix seconds), once."""

    moment: float
    tz: str = "UTC"
    """The zone in which people are shown it."""

    kind: ClassVar[Literal["at"]] = "at"

    def __post_init__(self) -> None:
        check_zone_name(self.tz)
        if not is_number(self.moment) or not EARLIEST <= self.moment < LATEST:
            raise DeclarationError(
                f"at must be a datetime that names its zone, of the years 2002 to 9999, not {shown(self.moment)}."
            )

    @property
    def text(self) -> str:
        """The moment in ISO 8601 and UTC: "2026-12-31T23:00:00+00:00"."""
        return datetime.fromtimestamp(self.moment, UTC).isoformat()

    def after(self, moment: float) -> Iterator[float]:
        """The moment, if it comes after the given one."""
        if self.moment > moment:
            yield self.moment

    def check_declared(self) -> None:
        """Raises DeclarationError if this machine knows zones, and not this one."""
        check_zone_known(self.tz)

    def check(self) -> None:
        """Raises DeclarationError if the zone is unknown."""
        zone_of(self.tz)

    @property
    def digest(self) -> str:
        """Equal for equal moments."""
        return digest_of(self.kind, self.text)

    @property
    def declared(self) -> str:
        """As people declare it: "once, at 2026-12-31T23:00:00+00:00"."""
        return f"once, at {self.text}"

    def explain(self) -> str:
        """In English."""
        return f"Once, at {self.text}"


Times: TypeAlias = Cron | Every | At


def parse_cron(text: object, tz: str | UnsetType = UNSET) -> Cron:
    """The value of an expression, of which only the form is checked. Raises DeclarationError.

    The zone is the `tz`, or the one that the expression names; UTC if there is neither.
    """
    expression, own = split_zone(text) if isinstance(text, str) else (text, None)
    if own is not None and tz not in {UNSET, own}:
        raise DeclarationError(f"cron {shown(text)} names the zone {shown(own)}, and tz is {shown(tz)}: give one.")
    zone = (own or "UTC") if isinstance(tz, UnsetType) else tz
    return Cron(expression, zone)  # type: ignore[arg-type]  # refuses other types


def parse_every(period: object, offset: object = 0.0, tz: str = "UTC") -> Every:
    """The value of a period and an offset, each a timedelta or seconds. Raises DeclarationError."""
    return Every(seconds_of(period), seconds_of(offset), tz)  # type: ignore[arg-type]  # refuses what is none


def parse_at(moment: object, tz: str = "UTC") -> At:
    """The value of a datetime that names its zone, or of Unix seconds. Raises DeclarationError."""
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise DeclarationError(f"at must name its zone, as in datetime(..., tzinfo=UTC), not {moment.isoformat()}.")
        return At(moment.timestamp(), tz)
    return At(seconds_of(moment), tz)  # type: ignore[arg-type]  # refuses what is none


def parse_times(kind: object, text: object, tz: str = "UTC") -> Times:
    """The value that has this `kind`, `text` and `tz`. Raises DeclarationError."""
    if not isinstance(text, str):
        raise DeclarationError(f"the text of an entry's times must be a text, not {shown(text)}.")
    try:
        if kind == "cron":
            return parse_cron(text, tz)
        if kind == "every":
            period, _, offset = text.partition("+")
            return parse_every(float(period), float(offset or 0.0), tz)
        if kind == "at":
            return parse_at(datetime.fromisoformat(text), tz)
    except ValueError:
        raise DeclarationError(f"{shown(text)} is not the text of times of the kind {kind!r}.") from None
    raise DeclarationError(f"the kind of an entry's times must be cron, every or at, not {shown(kind)}.")


def seconds_of(value: object) -> object:
    """The seconds of a timedelta, a number as a float, infinite if none holds it; anything else as it is."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def problem_of_seconds(value: object, least: float = -math.inf, most: float = math.inf) -> str | None:
    """Why the value of a field is not a length of time within these seconds, or None."""
    if not isinstance(value, int | float) or isinstance(value, bool) or math.isnan(value):
        return f"must be a timedelta or a number of seconds, not {shown(value)}"
    if not least <= value <= most:
        return f"must be from {least:,.10g} to {most:,.10g} seconds, not {shown(value)}"
    return None


def _plain(number: float) -> str:
    return repr(float(number)).removesuffix(".0")


def _duration(seconds: float) -> str:
    parts = []
    for unit, size in _UNITS:
        count, seconds = divmod(seconds, size)
        parts += [f"{count:.0f} {unit}"] * bool(count)
    return " ".join([*parts, *[f"{_plain(seconds)} s"] * bool(seconds)])

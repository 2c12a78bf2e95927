"""The planned times of cron expressions.

`cronsim` is imported when times are asked for: a drain declares entries, and asks for no times.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha1
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from lowkiq_lambda.base.error_text import shown
from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.schedules.expression import BOUNDS, FIELDS, fields_of, number_of, refused_field
from lowkiq_lambda.schedules.zones import check_zone_known, check_zone_name, zone_of

if TYPE_CHECKING:
    from cronsim import CronSim


LATEST: Final = 253_402_300_800.0
"""The year 10000: what is larger is in milliseconds."""

_MINUTE: Final = 60.0
_ANY_MOMENT: Final = datetime(2026, 1, 1, tzinfo=UTC)
LONGEST_TEXT: Final = 500
"""Characters; each look at an entry takes it apart."""
_CHECKED_FROM: Final = _ANY_MOMENT.timestamp()

_LAST_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_WEEKS: Final = range(1, 6)
_SHORTEST_LAST_DAY: Final = 29
_SHORT_MONTHS: Final = {2: "February", 4: "April", 6: "June", 9: "September", 11: "November"}


@dataclass(frozen=True, slots=True)
class Cron:
    """The moments of an expression of five fields, or of six with seconds first, by the clocks of a zone.

    A number or a list in minute and hour goes by the wall clock: each planned time of a day comes once, and one that
    the clocks leave out comes when they go on. A star in minute or hour goes by real time: what the clocks leave out
    does not come, and what they repeat comes twice.
    """

    text: str
    tz: str = "UTC"

    kind: ClassVar[Literal["cron"]] = "cron"

    def __post_init__(self) -> None:
        text: object = self.text
        if isinstance(text, str) and len(text) > LONGEST_TEXT:
            raise DeclarationError(
                f"cron {shown(text)} has {len(text)} characters: {LONGEST_TEXT} are enough for any times; "
                "write ranges and steps in place of long lists."
            )
        fields_of(self.text)
        check_zone_name(self.tz)

    def after(self, moment: float) -> Iterator[float]:
        """The planned times after the moment, strictly ascending. Raises DeclarationError as `check` does."""
        if moment >= LATEST:
            return
        last = moment
        seconds = sorted(self._evaluated().seconds)
        # The minute of the moment itself may have later seconds.
        start = math.floor(moment / _MINUTE) * _MINUTE - _MINUTE
        for minute in self._minutes(datetime.fromtimestamp(start, zone_of(self.tz))):
            for second in seconds:
                # Asked in the second pass of an hour that the clocks repeat, cronsim answers with the first.
                if minute + second > last:
                    last = minute + second
                    yield last

    def check_declared(self) -> None:
        """Raises DeclarationError if a number cannot be, or the zone is unknown; nothing is evaluated."""
        check_numbers(self.text)
        check_zone_known(self.tz)

    def check(self) -> None:
        """Raises DeclarationError if a field cannot be, the zone is unknown, or no moment ever fits."""
        zone_of(self.tz)
        if next(self.after(_CHECKED_FROM), None) is None:
            raise DeclarationError(never(self.text))

    @property
    def digest(self) -> str:
        """Equal for equal planned times, however their fields are written. Raises DeclarationError as `check` does."""
        moments = self._evaluated()
        weekdays = {0 if day == 7 else day for day in moments.weekdays}  # noqa: PLR2004 - Sunday has two numbers
        sets = (moments.seconds, moments.minutes, moments.hours, moments.days, moments.months, weekdays)
        fields = [sorted(map(str, values)) for values in sets]
        return digest_of(self.kind, fields, moments.day_and, self.by_real_time, self.tz)

    @property
    def by_real_time(self) -> bool:
        """Whether minute or hour begins with a star, so that each minute or hour counts that really passes."""
        return any(field.startswith("*") for field in fields_of(self.text)[-5:-3])

    @property
    def declared(self) -> str:
        """As people declare it: "0 3 * * * Europe/Berlin"."""
        return f"{self.text} {self.tz}"

    def explain(self) -> str:
        """The expression in English. Raises DeclarationError as `check` does."""
        from lowkiq_lambda.schedules.explanation import explain  # noqa: PLC0415 - imported lazily: cold start

        return explain(fields_of(self.text), self._evaluated())

    def _minutes(self, start: datetime) -> Iterator[float]:
        """The minutes that fit, seconds left out: cronsim heeds the changes of clocks for five fields alone."""
        minutes = _simulation(self.text, fields_of(self.text)[-5:], start)
        try:
            for minute in minutes:
                yield minute.timestamp()
        except OverflowError:
            # The year 9999 has ended.
            return

    def _evaluated(self) -> "CronSim":
        return _simulation(self.text, fields_of(self.text), _ANY_MOMENT)


def _simulation(text: str, fields: list[str], start: datetime) -> "CronSim":
    from cronsim import CronSim, CronSimError  # noqa: PLC0415 - imported lazily: cold start

    try:
        return CronSim(" ".join(fields), start)
    except CronSimError as error:
        check_numbers(text)
        name = str(error).removeprefix("Bad ")
        raise DeclarationError(refused_field(text, name, fields[FIELDS.index(name) - len(FIELDS)])) from None


def digest_of(*parts: object) -> str:
    """The same text for equal parts: hexadecimal digits of a hash that protects nothing."""
    return sha1(json.dumps(parts).encode(), usedforsecurity=False).hexdigest()


def check_numbers(text: str) -> None:
    """Raises DeclarationError if a number lies outside of its field, a range runs backwards, or no day ever fits."""
    fields = dict(zip(FIELDS[::-1], fields_of(text)[::-1], strict=False))
    numbers: dict[str, set[int]] = {}
    for name, field in fields.items():
        try:
            numbers[name] = set().union(*(_numbers(name, term) for term in field.split(",")))
        except ValueError:
            raise DeclarationError(refused_field(text, name, field)) from None
    if _never_comes(fields, numbers):
        months = " and ".join(", ".join(_SHORT_MONTHS[month] for month in sorted(numbers["month"])).rsplit(", ", 1))
        day = min(numbers["day-of-month"])
        lack = f"{months} {'has' if len(numbers['month']) == 1 else 'have'} no {day}{'st' if day % 10 == 1 else 'th'}"
        raise DeclarationError(never(text, lack))


def never(text: str, reason: str = "no day fits it") -> str:
    """The sentence for an expression that fits no day."""
    return f"cron {shown(text)} never comes: {reason}."


def _numbers(name: str, term: str) -> set[int]:
    """What a term of a field stands for; the last days of a month are 0. Raises ValueError for what cannot be."""
    if name == "day-of-month" and term.partition("/")[0] in {"L", "LW"}:
        _step(term)
        return {0}
    if name == "day-of-week" and "#" in term:
        day, _, week = term.partition("#")
        if int(week) not in _WEEKS:
            raise ValueError(term)
        return {number_of(name, day)}
    if name == "day-of-week" and term.endswith("L"):
        return {number_of(name, str(int(term[:-1])))}
    base, _, _ = term.partition("/")
    first, separator, last = base.partition("-")
    least, most = BOUNDS[name]
    if base == "*":
        numbers = range(least, most + 1)
    elif separator:
        numbers = range(number_of(name, first), number_of(name, last) + 1)
    else:
        numbers = range(number_of(name, first), (most if "/" in term else number_of(name, first)) + 1)
    if not numbers:
        raise ValueError(term)
    return {*numbers[:: _step(term)]}


def _step(term: str) -> int:
    _, separator, step = term.partition("/")
    if separator and not int(step):
        raise ValueError(term)
    return int(step) if separator else 1


def _never_comes(fields: dict[str, str], numbers: dict[str, set[int]]) -> bool:
    """Whether a day of the month is wanted, whatever its weekday is, that no month of those has."""
    both = any(fields[name].startswith("*") for name in ("day-of-month", "day-of-week"))
    first = min(numbers["day-of-month"])
    return both and first > _SHORTEST_LAST_DAY and first > max(_LAST_DAYS[month - 1] for month in numbers["month"])

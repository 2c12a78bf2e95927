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
from lowkiq_lambda.schedules.expression import FIELDS, fields_of, refused_field
from lowkiq_lambda.schedules.ranges import check_numbers, never
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
        """Raises DeclarationError where a number cannot be, or the zone is unknown; nothing is evaluated."""
        check_numbers(self.text)
        check_zone_known(self.tz)

    def check(self) -> None:
        """Raises DeclarationError where a field cannot be, the zone is unknown, or no moment ever fits."""
        zone_of(self.tz)
        if next(self.after(_CHECKED_FROM), None) is None:
            raise DeclarationError(never(self.text))

    @property
    def digest(self) -> str:
        """Equal for equal planned times, however their fields are written. Raises DeclarationError as `check` does."""
        found = self._evaluated()
        weekdays = {0 if day == 7 else day for day in found.weekdays}  # noqa: PLR2004 - Sunday has two numbers
        sets = (found.seconds, found.minutes, found.hours, found.days, found.months, weekdays)
        fields = [sorted(map(str, values)) for values in sets]
        return digest_of(self.kind, fields, found.day_and, self.by_real_time, self.tz)

    @property
    def by_real_time(self) -> bool:
        """Whether minute or hour begins with a star, so that each minute or hour counts that really passes."""
        return any(field.startswith("*") for field in fields_of(self.text)[-5:-3])

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

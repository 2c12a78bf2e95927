"""Planned times: values that say which moments (Unix seconds) come after a given one.

`cronsim` evaluates expressions, and is imported when the first one is: a drain declares entries and evaluates none.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from hashlib import sha1
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias

from lowkiq_lambda.errors import DeclarationError
from lowkiq_lambda.job import is_number
from lowkiq_lambda.schedules.expression import FIELDS, check_zone, fields_of

if TYPE_CHECKING:
    from cronsim import CronSim

Kind: TypeAlias = Literal["cron", "every", "at"]

SHORTEST: Final = 1.0
LONGEST: Final = 366 * 86_400.0
"""Seconds of a period."""
EARLIEST: Final = 1_000_000_000.0
LATEST: Final = 253_402_300_800.0
"""September 2001 and the year 10000: what lies outside is not in seconds."""
_MINUTE: Final = 60.0


@dataclass(frozen=True, slots=True)
class Cron:
    """The moments of a cron expression by the clocks of a zone; `parse_cron` makes one."""

    text: str
    tz: str = "UTC"

    kind: ClassVar[Kind] = "cron"

    def __post_init__(self) -> None:
        fields_of(self.text)
        check_zone(self.tz)

    def after(self, moment: float) -> Iterator[float]:
        """The planned times after the moment, strictly ascending. Raises DeclarationError as `check` does."""
        raise NotImplementedError

    def check(self) -> None:
        """Raises DeclarationError where a field or the zone cannot work, or no day ever fits."""
        raise NotImplementedError

    @property
    def digest(self) -> str:
        """Equal for equal planned times, however they are written. Raises DeclarationError as `check` does."""
        raise NotImplementedError

    def explain(self) -> str:
        """The expression in English. Raises DeclarationError as `check` does."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Every:
    """A moment in each period, counted from 1970 and not from the start of a process: no restart moves it."""

    period: float
    offset: float = 0.0
    tz: str = "UTC"
    """The zone in which people are shown its times."""

    kind: ClassVar[Kind] = "every"

    @property
    def text(self) -> str:
        """Seconds of the period, and of the offset if there is one: "600", "600+30"."""
        raise NotImplementedError

    def after(self, moment: float) -> Iterator[float]:
        """The planned times after the moment, strictly ascending, without end."""
        raise NotImplementedError

    def check(self) -> None:
        """Raises DeclarationError where the zone does not exist."""
        raise NotImplementedError

    @property
    def digest(self) -> str:
        """Equal for equal planned times."""
        raise NotImplementedError

    def explain(self) -> str:
        """In English."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class At:
    """One moment, once (Unix seconds)."""

    moment: float
    tz: str = "UTC"
    """The zone in which people are shown it."""

    kind: ClassVar[Kind] = "at"

    @property
    def text(self) -> str:
        """The moment in ISO 8601, in UTC: "2026-12-31T23:00:00Z"."""
        raise NotImplementedError

    def after(self, moment: float) -> Iterator[float]:
        """The moment, where it comes after the given one."""
        raise NotImplementedError

    def check(self) -> None:
        """Raises DeclarationError where the zone does not exist."""
        raise NotImplementedError

    @property
    def digest(self) -> str:
        """Equal for equal moments."""
        raise NotImplementedError

    def explain(self) -> str:
        """In English."""
        raise NotImplementedError


Times: TypeAlias = Cron | Every | At


def parse_cron(text: object, tz: object = "UTC") -> Cron:
    """The value of an expression, of which only the form is checked. Raises DeclarationError."""
    raise NotImplementedError


def parse_every(period: object, offset: object = 0.0, tz: object = "UTC") -> Every:
    """The value of a period and an offset, each in seconds or a timedelta. Raises DeclarationError."""
    raise NotImplementedError


def parse_at(moment: object, tz: object = "UTC") -> At:
    """The value of a datetime that names its zone, or of Unix seconds. Raises DeclarationError."""
    raise NotImplementedError


def parse_times(kind: object, text: object, tz: object = "UTC") -> Times:
    """The value whose `kind`, `text` and `tz` these are. Raises DeclarationError."""
    raise NotImplementedError

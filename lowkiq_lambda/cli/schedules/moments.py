"""Moments and lengths of time, as the command line takes and prints them."""

from datetime import UTC, datetime
from typing import Final

from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.operate.presentation import moments

EARLIEST: Final = datetime(2020, 1, 1, tzinfo=UTC).timestamp()
LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC).timestamp()
"""Until 2011 clocks of St. John's changed a minute after midnight, and there cronsim does not come to an end."""
DAY: Final = 86_400.0

_UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def moment_of(text: str) -> float:
    """The moment that a text is, as `presentation.moments` reads it, between these. Raises ValueError."""
    moment = moments.moment_of(text, SystemClock.time())
    if not EARLIEST <= moment < LATEST:
        raise ValueError("give a moment from 2020 to 2199")
    return moment


def moment_option(option: str, text: str | None) -> float | None:
    """The moment that an option names; None where it is not given. Raises ConfigError."""
    try:
        return None if text is None else moment_of(text)
    except ValueError as error:
        raise ConfigError(f"{option} {text} is refused: {error}.") from None


def span_option(option: str, text: str | None) -> tuple[float, float] | None:
    """The two moments that an option names with a slash between; None where it is not given. Raises ConfigError."""
    if text is None:
        return None
    try:
        start, end = map(moment_of, text.split("/", 1)) if "/" in text else (0.0, 0.0)
    except ValueError as error:
        raise ConfigError(f"{option} {text} is refused: {error}.") from None
    if "/" in text and start >= end:
        raise ConfigError(f"{option} {text} is refused: the end must come after the beginning.")
    if start >= end:
        raise ConfigError(f"{option} {text} is refused: give two moments, such as 2026-10-25T02:00/2026-10-25T05:00.")
    return start, end


def day_of(moment: float) -> float:
    """The beginning of its day in UTC."""
    return moment - moment % DAY


def utc(moment: float) -> str:
    """The moment in UTC, to the second."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def length(seconds: float) -> str:
    """A length of time in its two largest units: "3 h 30 min"."""
    left, parts = round(seconds), []
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        parts += [f"{count} {unit}"] if count else []
    return " ".join(parts[:2]) or "0 s"

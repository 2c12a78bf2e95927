"""Moments and lengths of time as people type them: "03:12 yesterday", "2026-10-25T02:30", "5m"."""

import re
from datetime import UTC, date, datetime, time, timedelta
from math import isfinite
from typing import Final

_DAYS: Final = {"today": 0, "yesterday": -1, "tomorrow": 1}
_CLOCK: Final = re.compile(r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}))?", re.ASCII)
_LENGTH: Final = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?) ?(?P<unit>ms|s|m|min|h|d)?", re.ASCII)
_ZONE_OF_DAY: Final = re.compile(r"^([0-9]{4}-[0-9]{2}-[0-9]{2})(Z|[+-][0-9]{2}:?[0-9]{2})$", re.ASCII)
"""Without a time of day Python takes the zone for one."""
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}
_FIRST_AS_SECONDS: Final = 10**8
"""A number from here on is Unix seconds, and not a year."""
_LAST: Final = 253_402_300_799
"""The end of the year 9999."""
EXAMPLES: Final = (
    '"03:12", "03:12 yesterday", "2h ago", "in 2h", 2026-10-25T02:30 (UTC), 2026-10-25T02:30+02:00, or Unix seconds'
)


def moment_of(text: str, now: float, *, ahead: bool = False) -> float:
    """The moment that a text is, in Unix seconds; UTC where it names no zone. Raises ValueError.

    A time of day alone is the last one that has passed, and a length of time alone is so long ago; with `ahead` the
    next one, and in so long.

    >>> now = datetime(2026, 11, 25, 9, 0, tzinfo=UTC).timestamp()
    >>> [utc_of(moment_of(text, now)) for text in ("03:12 yesterday", "03:12", "11:30", "2h")]
    ['2026-11-24 03:12', '2026-11-25 03:12', '2026-11-24 11:30', '2026-11-25 07:00']
    >>> [utc_of(moment_of(text, now)) for text in ("2026-11-25+02:00", "2026-11-25Z", "2026-11-25 08:00UTC")]
    ['2026-11-24 22:00', '2026-11-25 00:00', '2026-11-25 08:00']
    >>> [utc_of(moment_of(text, now, ahead=True)) for text in ("03:12 tomorrow", "03:12", "11:30", "in 2h", "2h")]
    ['2026-11-26 03:12', '2026-11-26 03:12', '2026-11-25 11:30', '2026-11-25 11:00', '2026-11-25 11:00']
    """
    words = text.strip().lower().split()
    if words == ["now"]:
        return now
    is_ago, is_in = words[-1:] == ["ago"], words[:1] == ["in"]
    length = _LENGTH.fullmatch(" ".join(words[is_in : len(words) - is_ago]))
    if length and (is_ago or is_in or length["unit"]):
        return now + seconds_of(length[0]) * (1 if is_in or (ahead and not is_ago) else -1)
    if len(words) == 1 and re.fullmatch(r"[0-9]+(\.[0-9]+)?", words[0], re.ASCII):
        seconds = float(words[0])
        if _FIRST_AS_SECONDS <= seconds <= _LAST:
            return seconds
    days = [word for word in words if word in _DAYS]
    clocks = [match for word in words if (match := _CLOCK.fullmatch(word))]
    if words and len(days) + len(clocks) == len(words) and len(days) <= 1 and len(clocks) <= 1:
        return _on_day(days, _time_of(clocks), now, ahead=ahead)
    try:
        parsed = datetime.fromisoformat(_ZONE_OF_DAY.sub(r"\1T00:00\2", re.sub(r" ?UTC$", "", text.strip())))
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not a moment: give {EXAMPLES}") from None


def seconds_of(text: str) -> float:
    """The length of time that a text is; seconds where it has no unit. Raises ValueError.

    >>> seconds_of("5m"), seconds_of("1.5 h"), seconds_of("10"), seconds_of("250ms")
    (300.0, 5400.0, 10.0, 0.25)
    """
    match = _LENGTH.fullmatch(text.strip().lower())
    seconds = float(match["number"]) * _UNITS[match["unit"] or "s"] if match else float("inf")
    if not isfinite(seconds):
        raise ValueError(f"{text!r} is not a length of time: give 10s, 5m, 2h or 1d")
    return seconds


def utc_of(moment: float) -> str:
    """The moment in UTC, to the minute."""
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M}"


def _time_of(clocks: list[re.Match[str]]) -> time | None:
    if not clocks:
        return None
    hour, minute, second = (int(clocks[0][part] or 0) for part in ("hour", "minute", "second"))
    try:
        return time(hour, minute, second)
    except ValueError:
        raise ValueError(f"{clocks[0][0]!r} is not a time of day") from None


def _on_day(days: list[str], clock: time | None, now: float, *, ahead: bool) -> float:
    """That time of the day; of no day in particular the last one that has passed, or else the next."""
    today: date = datetime.fromtimestamp(now, UTC).date()
    if days:
        day = today + timedelta(days=_DAYS[days[0]])
        return datetime.combine(day, clock or time(), UTC).timestamp()
    moment = datetime.combine(today, clock or time(), UTC).timestamp()
    if ahead:
        return moment if moment > now else moment + _UNITS["d"]
    return moment if moment <= now else moment - _UNITS["d"]

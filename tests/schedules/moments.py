"""Moments, as tests write them and read them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise, takewhile
from zoneinfo import ZoneInfo

from lowkiq_lambda.schedules.times import Times


def at(text: str) -> float:
    """The Unix seconds of a moment in ISO 8601, UTC where it names no zone."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def utc(moment: float) -> str:
    """The moment in UTC, to the minute: "2026-03-29 01:00"; to the second where it has one."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S").removesuffix(":00")


def between(times: Times, start: float, end: float) -> list[float]:
    """The planned times after the start, up to the end."""
    return list(takewhile(lambda planned: planned <= end, times.after(start)))


def local_date(moment: float, tz: str) -> str:
    """The date by the clocks of the zone."""
    return datetime.fromtimestamp(moment, ZoneInfo(tz)).date().isoformat()


def clock_changes(tz: str, year: int) -> Iterator[float]:
    """When the clocks of the zone change in that year, to half an hour."""
    zone = ZoneInfo(tz)
    day, end = at(f"{year}-01-01"), at(f"{year + 1}-01-01")
    while day < end:
        if _offset(day, zone) != _offset(day + 86_400, zone):
            halves = [day + 1_800 * half for half in range(49)]
            yield from (later for one, later in pairwise(halves) if _offset(one, zone) != _offset(later, zone))
        day += 86_400


def _offset(moment: float, zone: ZoneInfo) -> timedelta | None:
    return datetime.fromtimestamp(moment, zone).utcoffset()

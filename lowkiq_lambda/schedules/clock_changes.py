"""What changes of the clocks do to the planned times of an expression, in words."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import takewhile
from typing import Final, NamedTuple

from lowkiq_lambda.schedules.cron import Cron
from lowkiq_lambda.schedules.times import Times
from lowkiq_lambda.schedules.zones import zone_of

_DAY: Final = 86_400
_MINUTE: Final = 60.0
_NAMED: Final = 3
"""Times of a day that are named one by one."""


class ClockChange(NamedTuple):
    """From this moment (Unix seconds) on the clocks are `after` seconds ahead of UTC, and no longer `before`."""

    at: int
    before: float
    after: float


class Remark(NamedTuple):
    """A remark for readers of planned times: on a planned time, or on a change of the clocks between two."""

    at: float
    text: str


class PlannedTime(NamedTuple):
    """A moment for readers of planned times. `comes`: false if the clocks skip the planned time."""

    at: float
    comes: bool
    remark: str


def with_remarks(times: Times, planned: Sequence[float], start: float) -> list[PlannedTime]:
    """These planned times after the start, and between them what the clocks leave out, each with its remark."""
    if not planned:
        return []
    texts = {remark.at: remark.text for remark in remarks(times, start, planned[-1])}
    return [PlannedTime(at, at in planned, texts.get(at, "")) for at in sorted({*planned, *texts})]


def clock_changes(tz: str, start: float, end: float) -> Iterator[ClockChange]:
    """The changes after the start, up to the end, ascending. Raises DeclarationError for an unknown zone."""
    zone = zone_of(tz)

    def offset(moment: float) -> float:
        utc_offset = datetime.fromtimestamp(moment, zone).utcoffset()
        return utc_offset.total_seconds() if utc_offset else 0.0

    for day in range(int(start), int(end), _DAY):
        low, high = day, min(day + _DAY, int(end))
        before, after = offset(low), offset(high)
        if before == after:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if offset(middle) == before else (low, middle)
        yield ClockChange(high, before, after)


def remarks(times: Times, start: float, end: float) -> list[Remark]:
    """Effects of clock changes in the zone on planned times after the start, up to the end."""
    if not isinstance(times, Cron):
        return []
    # What the clocks repeat lies on both sides of a change.
    changes = clock_changes(times.tz, start - _DAY, end + _DAY)
    all_remarks = [remark for change in changes for remark in _remarks_of(times, change)]
    return [remark for remark in all_remarks if start < remark.at <= end]


def _remarks_of(cron: Cron, change: ClockChange) -> Iterator[Remark]:
    first, last = sorted((change.at + change.before, change.at + change.after))
    # The expression on a clock that never changes.
    walls = _planned(Cron(cron.text), first, last)
    if not walls:
        return
    if change.after > change.before:
        moments = [] if cron.by_real_time else _planned(cron, change.at, change.at + _MINUTE)
        for moment in moments[:1]:
            yield Remark(moment, f"in place of {_named(walls)}, which the clocks leave out")
        if not moments:
            yield Remark(change.at, f"the clocks leave out {_named(walls)}")
        return
    first_pass, second_pass = (
        _planned(cron, first - offset, last - offset) for offset in (change.before, change.after)
    )
    count = "the first of two" if second_pass else "it fires the first time"
    yield from (Remark(moment, f"the clocks repeat this time: {count}") for moment in first_pass)
    yield from (Remark(moment, "the clocks repeat this time: the second of two") for moment in second_pass)


def _planned(cron: Cron, start: float, end: float) -> list[float]:
    """The planned times from the start on, before the end."""
    return list(takewhile(lambda planned: planned < end, cron.after(start - 0.5)))


def _named(walls: list[float]) -> str:
    words = [datetime.fromtimestamp(wall, UTC).strftime("%H:%M:%S").removesuffix(":00") for wall in walls]
    return ", ".join(words) if len(words) <= _NAMED else f"{words[0]} to {words[-1]}"

"""The next planned times of an entry, and what becomes of those that nobody was there for."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from lowkiq_lambda.cli.schedules.moments import length, utc
from lowkiq_lambda.schedules.clock_changes import with_remarks
from lowkiq_lambda.schedules.entry import ScheduleEntry
from lowkiq_lambda.schedules.misfire import MOST_MISSED, SKIP_GRACE, decide
from lowkiq_lambda.schedules.zones import local_text

_LISTED: Final = 5
"""Planned times of an outage that are listed of each kind."""


class Absence(NamedTuple):
    """From when on, and until when, nobody looks."""

    start: float
    end: float


def describe(entry: ScheduleEntry, start: float, count: int, outage: Absence | None) -> str:
    """The entry, its next planned times with what the clocks do to them, and the outage, in lines."""
    lines = [_headline(entry), *_planned_times(entry, start, count)]
    return "\n".join([*lines, *(_after_outage(entry, outage) if outage and entry.enabled else ())])


def _headline(entry: ScheduleEntry) -> str:
    times, off = entry.times, "" if entry.enabled else " (off)"
    return f"{entry.name}{off} of {entry.queue_name}: {times.kind} {times.text}, {times.tz}: {times.explain()}"


def _planned_times(entry: ScheduleEntry, start: float, count: int) -> Iterator[str]:
    planned = [*islice(entry.times.after(start), count)]
    if not planned:
        yield "  never"
        return
    width = len(_local(planned[0], entry.tz))
    for at, comes, remark in with_remarks(entry.times, planned, start):
        by_clocks = _local(at, entry.tz) if comes else ""
        yield f"  {by_clocks:{width}}{utc(at)}  {remark}".rstrip()


def _local(moment: float, tz: str) -> str:
    return "" if tz == "UTC" else f"{local_text(moment, tz)}   "


def _after_outage(entry: ScheduleEntry, outage: Absence) -> Iterator[str]:
    start, end = outage
    fire, missed, next_at = decide(entry.times, start, end, entry.missed, entry.grace)
    grace = SKIP_GRACE if entry.missed == "skip" else entry.grace
    yield f'  Nobody looks from {utc(start)} to {utc(end)}; missed="{entry.missed}", at most {length(grace)} late:'
    yield from _listed("fires", fire, end, f"{len(fire)}")
    yield from _listed("missed", missed, end, f"{len(missed)}{' or more' if len(missed) == MOST_MISSED else ''}")
    if not (fire or missed):
        yield "    nothing was due"
    if next_at is not None and next_at <= end:
        yield "    the rest fires in the housekeeping runs that follow"
    elif next_at is not None:
        yield f"    next     {utc(next_at)}"


def _listed(word: str, moments: Sequence[float], end: float, count: str) -> Iterator[str]:
    if len(moments) > _LISTED:
        yield f"    {word:8} {count}, from {utc(moments[0])} to {utc(moments[-1])}"
        return
    for moment in moments:
        yield f"    {word:8} {utc(moment)}  {length(end - moment)} late"

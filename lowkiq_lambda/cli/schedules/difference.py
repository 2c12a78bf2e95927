"""The differences between two sources of entries, in their definitions and in their firings."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from itertools import takewhile
from typing import Any, NamedTuple, TypeAlias

from lowkiq_lambda.cli.schedules.moments import utc
from lowkiq_lambda.cli.schedules.sources import Source
from lowkiq_lambda.schedules.entry import ScheduleEntry

_Key: TypeAlias = tuple[str, str]


class Period(NamedTuple):
    """The time of which firings are compared."""

    start: float
    end: float


def differences(a: Source, b: Source, period: Period) -> list[str]:
    """A line for each entry that was added, removed or changed, and for firings of one alone."""
    old, new = _by_key(a), _by_key(b)
    lines = [f"added    {_brief(new[key])}" for key in new if key not in old]
    lines += [f"removed  {_brief(old[key])}" for key in old if key not in new]
    for key in old:
        if key in new:
            lines += [f"changed  {_name(key)}: {change}" for change in _changes(old[key], new[key])]
    for key in dict.fromkeys([*old, *new]):
        lines += _firings(key, old.get(key), new.get(key), period)
    return lines


def _by_key(source: Source) -> Mapping[_Key, ScheduleEntry]:
    return {(entry.queue_name, entry.name): entry for entry in source.entries}


def _name(key: _Key) -> str:
    return f"{key[1]} of {key[0]}"


def _brief(entry: ScheduleEntry) -> str:
    return f"{_name((entry.queue_name, entry.name))}: {entry.times.kind} {entry.times.text}, {entry.tz}"


def _changes(old: ScheduleEntry, new: ScheduleEntry) -> Iterator[str]:
    # A definition leaves these two out where they are as by default.
    was: Mapping[str, Any] = {"enabled": True, "expires_in": None, **old.definition()}
    for field, value in {"enabled": True, "expires_in": None, **new.definition()}.items():
        if value != was[field]:
            yield f"{field} {was[field]!r} -> {value!r}"


def _firings(key: _Key, old: ScheduleEntry | None, new: ScheduleEntry | None, period: Period) -> Iterator[str]:
    if old and new and old.digest == new.digest:
        return
    counts: Counter[str] = Counter()
    first: dict[str, float] = {}
    for moment, sides in _by_moment(_planned(old, "A", period), _planned(new, "B", period)):
        counts[sides] += 1
        first.setdefault(sides, moment)
    for side in ("A", "B"):
        if side in first:
            count = f"{counts[side]:,} firings, the first" if counts[side] > 1 else "1 firing,"
            yield f"only {side}   {_name(key)}: {count} {utc(first[side])}"


def _planned(entry: ScheduleEntry | None, side: str, period: Period) -> Iterable[tuple[float, str]]:
    if entry is None:
        return ()
    return (
        (moment, side) for moment in takewhile(lambda moment: moment <= period.end, entry.times.after(period.start))
    )


def _by_moment(*planned: Iterable[tuple[float, str]]) -> Iterator[tuple[float, str]]:
    """Each moment once, with the sides that have it."""
    last, sides = None, ""
    for moment, side in merge(*planned):
        if moment != last and last is not None:
            yield last, sides
            sides = ""
        last, sides = moment, sides + side
    if last is not None:
        yield last, sides

"""The part of a journal that can be judged: all of it was written, up to its end."""

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from lowkiq_lambda.operate.inspect.journal import UNREADABLE
from lowkiq_lambda.views.journal import JournalEntry


class Stretch(NamedTuple):
    """Entries without a gap, at the level "all".

    `known_from`: payloads with a larger arrival number were pushed in it. `is_open`: it goes on, so that the shard's
    content is what its end says. `since`: when it begins, Unix seconds; None of a journal that has no such part.
    `has_begin`: whether the journal still has the entry that it began with.
    """

    entries: list[JournalEntry]
    known_from: float
    is_open: bool
    since: float | None
    has_begin: bool = False


def last_stretch(entries: Sequence[JournalEntry], *, is_on: bool) -> Stretch:
    """The last stretch of a journal. `is_on`: whether its shard still writes all of it."""
    part: list[JournalEntry] | None = [] if _begins_on(entries, is_on=is_on) else None
    since = entries[0].at if part is not None and entries else None
    known_from: float | None = None
    last = Stretch([], inf, is_open=False, since=None)
    number = entries[0].number - 1 if entries else 0
    for entry in entries:
        if (entry.number != number + 1 or entry.kind == UNREADABLE) and part is not None:
            part, known_from, since = [], None, entry.at
        number = entry.number
        if entry.kind != "level":
            if part is not None:
                part.append(entry)
        elif entry.items[0]["level"] == "all":
            if part is None or entry.items[0]["was"] != "all":
                part, known_from, since = [], entry.items[0]["arrival"], entry.at
        elif part is not None:
            last, part = _stretch(part, known_from, is_open=False, since=since), None
    return last if part is None else _stretch(part, known_from, is_open=is_on, since=since)


def _stretch(part: list[JournalEntry], start: float | None, *, is_open: bool, since: float | None) -> Stretch:
    return Stretch(part, _known_from(part, start), is_open=is_open, since=since, has_begin=start is not None)


def _begins_on(entries: Sequence[JournalEntry], *, is_on: bool) -> bool:
    """Whether the first entries that are left were written at the level "all"."""
    if entries and entries[0].number == 1:
        return False
    levels = [entry.items[0]["was"] for entry in entries if entry.kind == "level"]
    return levels[0] == "all" if levels else is_on


def _known_from(part: Sequence[JournalEntry], start: float | None) -> float:
    if start is not None:
        return start
    # The entries that were cut off are older than the first push that is left.
    return min((item[2] - 1 for entry in part if entry.kind == "pushed" for item in entry.items), default=inf)

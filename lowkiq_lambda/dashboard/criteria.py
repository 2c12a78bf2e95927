"""What jobs were searched for, in words: for whoever is asked whether an action is meant, and for the log."""

from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from typing import Final

import msgspec

from lowkiq_lambda.dashboard.formatting import iso, plain
from lowkiq_lambda.store.inspect.actions import ActionName
from lowkiq_lambda.store.inspect.id_filter import IdFilter
from lowkiq_lambda.store.inspect.id_ranges import Bound

_OF_MORGUE: Final[frozenset[ActionName]] = frozenset({"requeue", "delete_buried"})

_IN_ORDER: Final = (("after", "at or after"), ("before", "at or before"))
_OF_NUMBERS: Final = (("more than", "at least"), ("less than", "at most"))
"""How the lower and the upper bound are told, without the value itself and with it."""


class Criterion(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that has to hold: some words, then a text or a number; or a moment, in Unix seconds."""

    words: str
    text: str = ""
    at: float | None = None

    @property
    def told(self) -> str:
        """It in one line; what comes from outside is quoted."""
        value = repr(self.text) if self.at is None else iso(self.at) or repr(self.at)
        return f"{self.words} {value}"


def criteria(wanted: IdFilter, act: ActionName) -> list[Criterion]:
    """All that has to hold for a job that the action is done to; nothing for a whole list."""
    time = "died" if act in _OF_MORGUE else "due"
    return [
        *([Criterion(words="id begins with", text=wanted.prefix)] if wanted.prefix else []),
        *([Criterion(words="last error contains", text=wanted.error)] if wanted.error else []),
        *_ids(wanted),
        *_counts(wanted),
        *(
            Criterion(words=f"{time} {words}", at=bound.value)
            for words, bound in _ends(wanted.least, wanted.most, _IN_ORDER)
        ),
    ]


def told(found_by: Iterable[Criterion]) -> str:
    """All of it, for the log."""
    return ", ".join(one.told for one in found_by)


def _ids(wanted: IdFilter) -> Iterator[Criterion]:
    for bound, (exclusive, inclusive) in zip((wanted.least_id, wanted.most_id), _IN_ORDER, strict=True):
        # An end of the list is no bound.
        if bound[1:]:
            yield Criterion(words=f"id {exclusive if bound[0] == '(' else inclusive}", text=bound[1:])


def _counts(wanted: IdFilter) -> Iterator[Criterion]:
    for words, bound in _ends(wanted.least_count or "-inf", wanted.most_count or "+inf", _OF_NUMBERS):
        yield Criterion(words=f"retry count {words}", text=plain(bound.value))


def _ends(least: str, most: str, words: Sequence[tuple[str, str]]) -> Iterator[tuple[str, Bound]]:
    for text, (exclusive, inclusive) in zip((least, most), words, strict=True):
        bound = Bound.of(text)
        if isfinite(bound.value):
            yield exclusive if bound.exclusive else inclusive, bound

"""A search in words, for the confirmation of an action and for the activity log."""

from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from typing import Final

import msgspec

from lowkiq_lambda.operate.acts.action_scripts import ActionName
from lowkiq_lambda.operate.inspect.id_filter import IdFilter
from lowkiq_lambda.operate.inspect.id_ranges import Bound
from lowkiq_lambda.operate.inspect.payload_query import without_values
from lowkiq_lambda.operate.presentation.formatting import iso, plain
from lowkiq_lambda.settings.protocols import Mask
from lowkiq_lambda.store.shard.nodes import FAR

_OF_MORGUE: Final[frozenset[ActionName]] = frozenset({"requeue", "delete_dead"})

_IN_ORDER: Final = (("after", "at or after"), ("before", "at or before"))
_OF_NUMBERS: Final = (("more than", "at least"), ("less than", "at most"))
"""Words for the lower and the upper bound, each exclusive and inclusive."""


class Criterion(msgspec.Struct, frozen=True, kw_only=True):
    """One condition: words, then a text or a number, or a time in Unix seconds."""

    words: str
    text: str = ""
    at: float | None = None

    @property
    def description(self) -> str:
        """The condition in one line, with outside text quoted."""
        value = repr(self.text) if self.at is None else iso(self.at) or repr(self.at)
        return f"{self.words} {value}"


def criteria(id_filter: IdFilter, act: ActionName, alike: str = "", mask: Mask | None = None) -> list[Criterion]:
    """The conditions that a job must meet; none for a whole list.

    `alike`: what errors of the fingerprint share. With a `mask` values of payloads are left out, for the log.
    """
    payload = without_values(id_filter.payload, mask)
    return [
        *([Criterion(words="id begins with", text=id_filter.prefix)] if id_filter.prefix else []),
        *([Criterion(words="last error contains", text=id_filter.error)] if id_filter.error else []),
        *_fingerprint(id_filter.fingerprint, alike),
        *([Criterion(words="a payload has", text=payload)] if payload else []),
        *_ids(id_filter),
        *_counts(id_filter),
        *_times(id_filter, "died" if act in _OF_MORGUE else "due"),
    ]


def description(conditions: Iterable[Criterion]) -> str:
    """All conditions, for the log."""
    return ", ".join(criterion.description for criterion in conditions)


def _fingerprint(digits: str, alike: str) -> list[Criterion]:
    if not digits:
        return []
    return (
        [Criterion(words="last error is like", text=alike)]
        if alike
        else [Criterion(words="last error has the fingerprint", text=digits)]
    )


def _ids(id_filter: IdFilter) -> Iterator[Criterion]:
    for bound, (exclusive, inclusive) in zip((id_filter.least_id, id_filter.most_id), _IN_ORDER, strict=True):
        # A bare sign is an end of the list, not a bound.
        if bound[1:]:
            yield Criterion(words=f"id {exclusive if bound[0] == '(' else inclusive}", text=bound[1:])


def _counts(id_filter: IdFilter) -> Iterator[Criterion]:
    for words, bound in _ends(id_filter.least_count or "-inf", id_filter.most_count or "+inf", _OF_NUMBERS):
        yield Criterion(words=f"retry count {words}", text=plain(bound.value))


def _times(id_filter: IdFilter, verb: str) -> Iterator[Criterion]:
    for words, bound in _ends(id_filter.least, id_filter.most, _IN_ORDER):
        # Only an id that an operator has to unblock is due so late.
        is_blocked = verb == "due" and bound == Bound(FAR) and words == "at or after"
        yield (
            Criterion(words="is", text="blocked") if is_blocked else Criterion(words=f"{verb} {words}", at=bound.value)
        )


def _ends(least: str, most: str, words: Sequence[tuple[str, str]]) -> Iterator[tuple[str, Bound]]:
    for text, (exclusive, inclusive) in zip((least, most), words, strict=True):
        bound = Bound.of(text)
        if isfinite(bound.value):
            yield exclusive if bound.exclusive else inclusive, bound

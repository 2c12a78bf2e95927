"""The query of a list of jobs: a range in one order, or a search; as a filter, and as chips."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, Literal, TypeAlias

import msgspec

from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.criteria import Criterion, criteria
from lowkiq_lambda.operate.acts.action_scripts import ActionName
from lowkiq_lambda.operate.inspect.id_filter import IdFilter
from lowkiq_lambda.operate.inspect.id_ranges import SearchableList
from lowkiq_lambda.operate.presentation.moments import moment_of

Way: TypeAlias = Literal["asc", "desc", "gte", "lte"]
WAYS: Final[Mapping[Way, str]] = {
    "asc": "all, ascending",
    "desc": "all, descending",
    "gte": "from a value on, ascending",
    "lte": "up to a value, descending",
}
NAMES: Final = {"id": "id", "due_at": "due time", "retry_count": "retry count", "updated_at": "time of death"}
_TIMES: Final = frozenset({"due_at", "updated_at"})
_CLOCK: Final = re.compile(r"(?<![\d+-])\d?\d:\d\d(?P<seconds>:\d\d(?P<fraction>\.\d+)?)?", re.ASCII)
"""Wherever it stands; behind a sign it is a zone."""
_DATE: Final = re.compile(r"(?:\d{4}-\d\d-\d\d|today|yesterday|tomorrow)(?![ T]\d)", re.ASCII | re.IGNORECASE)
_MINUTE: Final = 60
_DAY: Final = 86_400

FIELDS: Final = frozenset({"by", "range", "value", "find", "text", "fingerprint", "payload"})
"""The fields of a list in an address."""

_SEARCHED: Final = ("find", "text", "fingerprint", "payload")

_ORDERS: Final = {"waiting": ("due_at", "retry_count", "id"), "morgue": ("updated_at", "id")}

_ACTIONS: Final[Mapping[SearchableList, ActionName]] = {"waiting": "delete", "morgue": "requeue"}
"""An action on each list, whose confirmation has the words."""


class ListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of the address: an order, or a range in it; and what is searched for.

    `find`: a prefix of ids; `text`: a part of errors; `fingerprint`: that of errors; `payload`: conditions on payloads.
    """

    by: str
    range: Way
    value: str
    find: str
    text: str
    fingerprint: str
    payload: str
    after: str | None

    @property
    def searches(self) -> bool:
        """Whether it is a search."""
        return any(self.searched.values())

    @property
    def searched(self) -> dict[str, str]:
        """What is searched for, by the name of the field; "" for nothing."""
        return {name: getattr(self, name) for name in _SEARCHED}

    @property
    def goes_by_time(self) -> bool:
        """Whether it is a search that goes over the list in its order, as it does for all but ids and texts alone."""
        return self.searches and bool(self.has_range or self.fingerprint or self.payload)

    @property
    def has_range(self) -> bool:
        """Whether a value bounds it."""
        return self.range in {"gte", "lte"} and (bool(self.value) or self.by == "id")

    @property
    def reverse(self) -> bool:
        """Whether the order is descending."""
        return self.range in {"desc", "lte"}

    def fields(self) -> dict[str, str]:
        """The fields of an address for the first page of the same query."""
        search = {name: value for name, value in self.searched.items() if value}
        if self.has_range:
            return {**search, "by": self.by, "range": self.range, "value": self.value}
        return search or {"by": self.by, "range": self.range}

    def bounds(self, least: str, most: str) -> tuple[str, str]:
        """Both bounds, with `least` and `most` as defaults. Raises ValueError, with a sentence."""
        if not self.has_range:
            return least, most
        if self.by == "id":
            first = last = f"[{self.value}"
        else:
            first, last = _times(self.value) if self.by in _TIMES else _numbers(self.value)
        return (first, most) if self.range == "gte" else (least, last)


def list_query(query: Mapping[str, str], orders: Sequence[str], way: Way) -> ListQuery:
    """The query of an address; by default in the first of `orders`, that way. Raises ValueError, with a sentence."""
    by, range_text = query.get("by", ""), query.get("range", "")
    for name, value, choices in (("by", by, orders), ("range", range_text, WAYS)):
        if value and value not in choices:
            raise ValueError(f"“{value}” is not a value of “{name}”: it is one of {', '.join(choices)}.")
    return ListQuery(
        by=by if by in orders else orders[0],
        range=next((each for each in WAYS if each == range_text), way),
        value=query.get("value", "") if by == "id" else query.get("value", "").strip(),
        find=query.get("find", ""),
        text=query.get("text", ""),
        fingerprint=query.get("fingerprint", ""),
        payload=query.get("payload", "").strip(),
        after=query.get("after"),
    )


def _numbers(text: str) -> tuple[str, str]:
    """The number as the lower and the upper bound."""
    with suppress(ValueError):
        return str(float(text)), str(float(text))
    raise ValueError(f"“{text}” is not a number.")


def _times(text: str) -> tuple[str, str]:
    """The bounds of a time: 19:28:58 stands for its whole second, a date for its day."""
    with suppress(ValueError):
        return _numbers(text)
    moment = moment_of(text, SystemClock.time())
    if clock := _CLOCK.search(text):
        lasting = 0 if clock["fraction"] else 1 if clock["seconds"] else _MINUTE
    else:
        lasting = _DAY if _DATE.match(text) else 0
    return str(moment), f"({moment + lasting}" if lasting else str(moment)


def wanted_by(fields: Mapping[str, str], listed: str) -> IdFilter:
    """A filter for all jobs on the pages of the list. Raises ValueError, with a sentence, for an invalid value."""
    return filter_of(list_query(fields, _ORDERS[listed], "asc"))


def filter_of(query: ListQuery) -> IdFilter:
    """All conditions of the query. Raises ValueError, with a sentence, for an invalid value."""
    search = IdFilter(prefix=query.find, error=query.text, fingerprint=query.fingerprint, payload=query.payload)
    if query.by == "id":
        least, most = query.bounds("", "")
        return msgspec.structs.replace(search, least_id=least, most_id=most)
    if query.by == "retry_count":
        least, most = query.bounds("", "")
        return msgspec.structs.replace(search, least_count=least, most_count=most)
    least, most = query.bounds("-inf", "+inf")
    return msgspec.structs.replace(search, least=least, most=most)


class Chip(msgspec.Struct, frozen=True):
    """A condition, and the list without it."""

    criterion: Criterion
    link: str


def chips_of(context: RequestContext, queue: str, path: SearchableList, query: ListQuery) -> list[Chip]:
    """A chip for each condition, in the words of the confirmation. Raises ValueError for an invalid value."""
    return [
        Chip(criterion, context.link(path, queue=queue, **without.fields()))
        for alone, without in _parts(query)
        for criterion in criteria(filter_of(alone), _ACTIONS[path])
    ]


def _parts(query: ListQuery) -> Iterator[tuple[ListQuery, ListQuery]]:
    """The query with one of its conditions alone, and without it."""
    search = query.searched
    free = msgspec.structs.replace(query, range="desc" if query.reverse else "asc", value="")
    bare = msgspec.structs.replace(free, **dict.fromkeys(search, ""))
    for name, value in search.items():
        if value:
            yield msgspec.structs.replace(bare, **{name: value}), msgspec.structs.replace(query, **{name: ""})
    if query.has_range:
        yield msgspec.structs.replace(query, **dict.fromkeys(search, "")), free

"""Ranges of numbers and of ids, and lists by a number: in order of the number, then of the shard, then of the id."""

import math
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from typing import Final, Literal, NamedTuple, Self, TypeAlias

from lowkiq_lambda.jobs.job import id_text, is_number
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Argument, Reply, ReplyShape

ListName: TypeAlias = Literal["due", "retry", "morgue"]
SearchableList: TypeAlias = Literal["waiting", "morgue"]

IDS_AT_ONCE: Final = 500
"""The most ids for one call of a script; `ID_BYTES_AT_ONCE` limits them, too."""
ID_BYTES_AT_ONCE: Final = 1024 * 1024

_INFINITE: Final = {"-": "-inf", "+": "inf"}


class ListPosition(NamedTuple):
    """The position of an id in a list; lists are sorted by it."""

    value: float
    shard: int
    id: str

    def cursor(self) -> str:
        """The position as a text."""
        return f"{self.value!r}:{self.shard}:{self.id}"

    @classmethod
    def of(cls, cursor: str) -> Self:
        """The position that `cursor` made the text of. Raises ValueError for any other text."""
        value, shard, job_id = cursor.split(":", 2)
        position = cls(float(value), int(shard), job_id)
        if math.isnan(position.value):
            raise ValueError(cursor)
        return position


class Bound(NamedTuple):
    """One end of a range of numbers."""

    value: float
    exclusive: bool = False

    @classmethod
    def of(cls, bound: float | str) -> Self:
        """As in Redis: a number or its text, after "(" to exclude it; "-inf" or "-", "+inf" or "+"."""
        value = math.nan
        text = _INFINITE.get(bound, bound) if isinstance(bound, str) else ""
        # Text that is not a number falls through to the error.
        with suppress(ValueError, OverflowError):
            if isinstance(bound, str):
                value = float(text[1:] if text[:1] in ("(", "[") else text)
            elif is_number(bound) or bound in (math.inf, -math.inf):
                value = float(bound)
        if math.isnan(value):
            raise ValueError(f'{bound!r} is not a bound: give a number, "(" and a number, "-inf" or "+inf".')
        return cls(value, text.startswith("("))

    def __str__(self) -> str:
        return f"{'(' * self.exclusive}{self.value!r}"


class Range(NamedTuple):
    """A range of numbers, read upwards or downwards, starting after a position."""

    least: Bound
    most: Bound
    reverse: bool = False
    after: ListPosition | None = None

    def holds(self, value: float) -> bool:
        """Whether a number lies within the bounds."""
        above = value > self.least.value or (value == self.least.value and not self.least.exclusive)
        return above and (value < self.most.value or (value == self.most.value and not self.most.exclusive))


class IdBound(NamedTuple):
    """One end of a range of ids."""

    id: str
    exclusive: bool = False

    @classmethod
    def of(cls, bound: object) -> Self:
        """As in Redis: an id, after "[" if it begins with a sign; after "(" to exclude it."""
        text = id_text(bound)
        return cls(text.removeprefix("[") if text[:1] != "(" else text[1:], text[:1] == "(")


class IdRange(NamedTuple):
    """A range of ids by their bytes, read upwards or downwards, starting after a position. None: without a bound."""

    least: IdBound | None
    most: IdBound | None
    reverse: bool = False
    after: ListPosition | None = None
    empty: bool = False

    @classmethod
    def of(cls, least: object, most: object, after: ListPosition | None, *, reverse: bool) -> Self:
        """As in Redis: the bounds are ids, or "-" and "+", which lie below and above every id."""
        return cls(
            None if least == "-" else IdBound.of(least),
            None if most == "+" else IdBound.of(most),
            reverse,
            after,
            empty=least == "+" or most == "-",
        )

    def holds(self, position: ListPosition) -> bool:
        """Whether the id of the position lies in the range."""
        job_id, after = position.id, self.after
        if self.empty:
            return False
        if self.least and (job_id < self.least.id or (self.least.exclusive and job_id == self.least.id)):
            return False
        if self.most and (job_id > self.most.id or (self.most.exclusive and job_id == self.most.id)):
            return False
        return after is None or (job_id < after.id if self.reverse else job_id > after.id)


class IdsByValueReply(ReplyShape, frozen=True):
    """The reply of ids_by_value.lua."""

    scripts = ("ids_by_value",)
    ids_and_values: list[bytes]
    """Ids, each with its number behind it."""


class IdsReply(ReplyShape, frozen=True):
    """The reply of in_flight_ids.lua."""

    scripts = ("in_flight_ids",)
    ids: list[bytes]


def list_positions(reader: ShardReader, listed: ListName, within: Range, limit: int) -> list[ListPosition]:
    """The first `limit` positions of the range (the last, if it is reversed). Raises BackendError."""
    args = {shard: [listed, *_arguments(within, shard.number, limit)] for shard in reader.shards}
    positions = chain.from_iterable(reader.read("ids_by_value", args, _positions))
    return sorted(positions, reverse=within.reverse)[:limit]


def _positions(shard: ShardRef, reply: Reply) -> list[ListPosition]:
    flat = IdsByValueReply.of(reply).ids_and_values
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return [ListPosition(float(value), shard.number, job_id.decode()) for job_id, value in pairs]


def at_once(ids: Sequence[str], start: int = 0) -> Sequence[str]:
    """As many of the ids from `start` on as one call takes: at least one, if there is any."""
    part, size = ids[start : start + IDS_AT_ONCE], 0
    for count, job_id in enumerate(part):
        size += len(job_id)
        if size > ID_BYTES_AT_ONCE and count:
            return part[:count]
    return part


def _arguments(within: Range, shard: int, limit: int) -> list[Argument]:
    """The arguments of ids_by_value.lua: the bounds, narrowed to the values after the position."""
    least, most, reverse, after = within
    equal, than = "", ""
    if after is not None and shard == after.shard:
        equal, than = repr(after.value), after.id
    if after is not None:
        # A shard before the shard of the position has no ids of this value left.
        is_passed = (shard > after.shard) if reverse else (shard < after.shard)
        edge = Bound(after.value, exclusive=is_passed)
        if reverse:
            most = min(most, edge, key=lambda bound: (bound.value, not bound.exclusive))
        else:
            least = max(least, edge)
    return [str(least), str(most), limit, "down" if reverse else "up", equal, than]

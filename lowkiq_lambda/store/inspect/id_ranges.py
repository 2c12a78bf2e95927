"""Lists of ids by a number, merged over shards: in order of the number, then of the shard, then of the id."""

import math
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from typing import Final, Literal, NamedTuple, Self, TypeAlias

from lowkiq_lambda.job import is_number
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Argument, Reply

ListName: TypeAlias = Literal["due", "retry", "morgue"]

IDS_AT_ONCE: Final = 500
"""How many ids one call of a script is given; it also ends at `ID_BYTES_AT_ONCE`."""
ID_BYTES_AT_ONCE: Final = 1024 * 1024


_INFINITE: Final = {"-": "-inf", "+": "inf"}


class ListPosition(NamedTuple):
    """Where an id stands in a list; a list's order is theirs."""

    value: float
    shard: int
    id: str

    def cursor(self) -> str:
        """The place as a text."""
        return f"{self.value!r}:{self.shard}:{self.id}"

    @classmethod
    def of(cls, cursor: str) -> Self:
        """The place that a text was made of. Raises ValueError for any other text."""
        value, shard, job_id = cursor.split(":", 2)
        place = cls(float(value), int(shard), job_id)
        if math.isnan(place.value):
            raise ValueError(cursor)
        return place


class Bound(NamedTuple):
    """One end of a range of numbers."""

    value: float
    exclusive: bool = False

    @classmethod
    def of(cls, given: float | str) -> Self:
        """As in Redis: a number, or a text of one, behind "(" to leave it out; "-inf" or "-", "+inf" or "+"."""
        value = math.nan
        text = _INFINITE.get(given, given) if isinstance(given, str) else ""
        # Text that is not a number falls through to the error.
        with suppress(ValueError, OverflowError):
            if isinstance(given, str):
                value = float(text[1:] if text[:1] in ("(", "[") else text)
            elif is_number(given) or given in (math.inf, -math.inf):
                value = float(given)
        if math.isnan(value):
            raise ValueError(f'{given!r} is not a bound: give a number, "(" and a number, "-inf" or "+inf".')
        return cls(value, text.startswith("("))

    def __str__(self) -> str:
        return f"{'(' * self.exclusive}{self.value!r}"


class Range(NamedTuple):
    """A range of numbers, read upwards or downwards, from behind a place on."""

    least: Bound
    most: Bound
    reverse: bool = False
    after: ListPosition | None = None

    def holds(self, value: float) -> bool:
        """Whether a number lies within the bounds."""
        above = value > self.least.value or (value == self.least.value and not self.least.exclusive)
        return above and (value < self.most.value or (value == self.most.value and not self.most.exclusive))


def list_positions(reader: ShardReader, listed: ListName, within: Range, limit: int) -> list[ListPosition]:
    """The first `limit` places of the range (the last, if it is reversed). Raises BackendError."""
    asked = {shard: [listed, *_asked(within, shard.index, limit)] for shard in reader.shards}
    places = chain.from_iterable(reader.read("ids_by_value", asked, _places))
    return sorted(places, reverse=within.reverse)[:limit]


def _places(shard: ShardRef, reply: Reply) -> list[ListPosition]:
    pairs = zip(reply[::2], reply[1::2], strict=True)
    return [ListPosition(float(value), shard.index, job_id.decode()) for job_id, value in pairs]


def at_once(ids: Sequence[str], start: int = 0) -> Sequence[str]:
    """As many of the ids from `start` on as one call is given: at least one, if there is any."""
    part, size = ids[start : start + IDS_AT_ONCE], 0
    for count, job_id in enumerate(part):
        size += len(job_id)
        if size > ID_BYTES_AT_ONCE and count:
            return part[:count]
    return part


def _asked(within: Range, shard: int, limit: int) -> list[Argument]:
    """What ids_by_value.lua is told: the bounds, narrowed to what lies behind the place."""
    least, most, reverse, after = within
    equal, than = "", ""
    if after is not None and shard == after.shard:
        equal, than = repr(after.value), after.id
    if after is not None:
        # A shard that comes before that of the place has shown all of this value.
        shown = (shard > after.shard) if reverse else (shard < after.shard)
        edge = Bound(after.value, exclusive=shown)
        if reverse:
            most = min(most, edge, key=lambda bound: (bound.value, not bound.exclusive))
        else:
            least = max(least, edge)
    return [str(least), str(most), limit, "down" if reverse else "up", equal, than]

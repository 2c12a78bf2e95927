"""What a list of jobs is asked for: a range by one of their numbers or ids, or a search."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias

import msgspec

Way: TypeAlias = Literal["asc", "desc", "gte", "lte"]
WAYS: Final[Mapping[Way, str]] = {
    "asc": "all, ascending",
    "desc": "all, descending",
    "gte": "from a value on, ascending",
    "lte": "up to a value, descending",
}
NAMES: Final = {"id": "id", "perform_in": "due time", "retry_count": "retry count", "updated_at": "time of death"}
_TIMES: Final = frozenset({"perform_in", "updated_at"})


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """As the address says it. With `find` (what ids begin with) or `text` (in errors) it is a search."""

    by: str
    range: Way
    value: str
    find: str
    text: str
    after: str | None

    @property
    def searches(self) -> bool:
        """Whether it is a search, which no order and no value goes with."""
        return bool(self.find or self.text)

    @property
    def reverse(self) -> bool:
        """Whether the list goes downwards."""
        return self.range in {"desc", "lte"}

    def fields(self) -> dict[str, str]:
        """The fields of an address that asks for the same, from its beginning."""
        if self.searches:
            return {name: value for name, value in (("find", self.find), ("text", self.text)) if value}
        bound = {"value": self.value} if self.range in {"gte", "lte"} else {}
        return {"by": self.by, "range": self.range, **bound}

    def bounds(self, least: str, most: str) -> tuple[str | float, str | float]:
        """Both ends, where `least` and `most` stand for none. Raises ValueError, with a sentence."""
        if self.range in {"asc", "desc"} or (not self.value and self.by != "id"):
            return least, most
        bound = f"[{self.value}" if self.by == "id" else _number(self.value, is_time=self.by in _TIMES)
        return (bound, most) if self.range == "gte" else (least, bound)


def filter_of(query: Mapping[str, str], orders: Sequence[str], way: Way) -> Filter:
    """What the address asks for; the first of `orders`, that way, where it does not say."""
    by, asked = query.get("by", ""), query.get("range", "")
    return Filter(
        by=by if by in orders else orders[0],
        range=next((one for one in WAYS if one == asked), way),
        value=query.get("value", "") if by == "id" else query.get("value", "").strip(),
        find=query.get("find", ""),
        text=query.get("text", ""),
        after=query.get("after"),
    )


def _number(text: str, *, is_time: bool) -> float:
    try:
        return float(text)
    except ValueError:
        if not is_time:
            raise ValueError(f"“{text}” is no number.") from None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"“{text}” is neither Unix seconds nor a time such as 2027-01-15 08:00 (UTC).") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()

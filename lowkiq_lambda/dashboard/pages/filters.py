"""What a list of jobs is asked for: a range by one of their numbers or ids, or a search."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
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
_MOMENT: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d)(?:(:\d\d)(\.\d+)?)?)? ?(?:Z|UTC|([+-]\d\d:\d\d))?", re.ASCII
)
_MINUTE: Final = 60
_DAY: Final = 86_400


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

    def bounds(self, least: str, most: str) -> tuple[str, str]:
        """Both ends, where `least` and `most` stand for none. Raises ValueError, with a sentence."""
        if self.range in {"asc", "desc"} or (not self.value and self.by != "id"):
            return least, most
        if self.by == "id":
            first = last = f"[{self.value}"
        else:
            first, last = _times(self.value) if self.by in _TIMES else _numbers(self.value)
        return (first, most) if self.range == "gte" else (least, last)


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


def _numbers(text: str) -> tuple[str, str]:
    """The number, as the first and the last that is meant."""
    with suppress(ValueError):
        return str(float(text)), str(float(text))
    raise ValueError(f"“{text}” is no number.")


def _times(text: str) -> tuple[str, str]:
    """The first moment that is meant, and the last: of 19:28:58 all of that second, of a date its day."""
    with suppress(ValueError):
        return _numbers(text)
    found = _MOMENT.fullmatch(text)
    if found is not None:
        day, clock, seconds, fraction, offset = found.groups(default="")
        lasting = 0 if fraction else 1 if seconds else _MINUTE if clock else _DAY
        with suppress(ValueError):
            moment = datetime.fromisoformat(
                f"{day}T{clock or '00:00'}{seconds}{fraction}{offset or '+00:00'}"
            ).timestamp()
            return str(moment), f"({moment + lasting}" if lasting else str(moment)
    raise ValueError(f"“{text}” is neither Unix seconds nor a time such as 2027-01-15 08:00.")

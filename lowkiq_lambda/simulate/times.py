"""How long a call of the handler takes."""

import math
import re
from typing import Annotated, Final, Self, TypeAlias

import msgspec
from msgspec import Meta

_PART: Final = re.compile(r"([0-9._]+)\s*(us|ms|s|m|min)?\s*(?:/\s*(payload|job|id|call))?")
_UNITS: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0}
_LONGEST: Final = 86_400.0
_NORMAL_95: Final = 1.645
"""Of a normal distribution: so many sigmas above the mean is its 95th percentile."""
_MOST_SPREAD: Final = 2.0

Seconds: TypeAlias = Annotated[float, Meta(ge=0)]


class BadTimes(ValueError):
    """A text that says no time of a handler; the message says why."""


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """A call takes `fixed`, and `each_id` and `each_payload` for those that it has, in seconds.

    `spread`: each call takes a lognormal factor longer or shorter, of mean 1 and this sigma. `computing`: share of the
    call in which a processor works; it waits for something else in the rest.
    """

    fixed: Seconds = 0.0
    each_id: Seconds = 0.0
    each_payload: Seconds = 0.0
    spread: Annotated[float, Meta(ge=0, le=4)] = 0.0
    computing: Annotated[float, Meta(ge=0, le=1)] = 0.0

    @classmethod
    def parse(cls, text: str, *, spread: float = 0.0, computing: float = 0.0) -> Self:
        """The times of `40ms+10ms/payload+2ms/id`. Raises BadTimes, also for a number without a unit."""
        sums = dict.fromkeys(("fixed", "each_id", "each_payload"), 0.0)
        for part in text.split("+"):
            match = _PART.fullmatch(part.strip())
            if match is None or (match[2] is None and match[1].strip("0.") != ""):
                raise BadTimes(f"{text!r} is not a time of a handler: give such as 50ms, or 40ms+10ms/payload+2ms/id")
            number, unit, each = match.groups()
            try:
                seconds = float(number) * _UNITS[unit or "s"]
            except ValueError as error:
                raise BadTimes(f"{number!r} in {text!r} is not a number") from error
            if seconds > _LONGEST:
                raise BadTimes(f"{part.strip()!r} is more than a day")
            sums[{"id": "each_id", "payload": "each_payload", "job": "each_payload"}.get(each or "", "fixed")] += (
                seconds
            )
        return cls(**sums, spread=spread, computing=computing)

    def of(self, ids: float, payloads: float) -> float:
        """Seconds of a call with so many, in the mean."""
        return self.fixed + self.each_id * ids + self.each_payload * payloads

    def scaled(self, factor: float) -> Self:
        """The same, so many times as long."""
        return msgspec.structs.replace(
            self, fixed=self.fixed * factor, each_id=self.each_id * factor, each_payload=self.each_payload * factor
        )


def spread_of(p50: float, p95: float) -> float:
    """The spread of times with this median and this 95th percentile."""
    return min(_MOST_SPREAD, math.log(max(1.0, p95 / p50)) / _NORMAL_95) if p50 > 0 else 0.0

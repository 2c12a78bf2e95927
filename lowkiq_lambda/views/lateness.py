"""Why a queue is late, and its hours, for people and programs."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

Cause: TypeAlias = Literal[
    "somebody is at it",
    "failures",
    "limits",
    "slow handlers",
    "processor",
    "compute",
    "hot ids",
    "slots",
    "shards",
]
"""In the order in which they are looked for: those that more shards would make worse come first."""


class Lateness(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a queue is late at `at` (Unix seconds), and why.

    `lag`: seconds that the oldest due id has waited, whatever keeps it; the queue is late if that is more than `limit`.
    `cause`: None if the queue is not late, or if no cause is known. `says`: all of it in a sentence. `evidence`: the
    numbers that it is judged by. `advice`: what helps; empty where nothing is to be done.
    `minutes`: in how many of the last `looked` minutes the cause held; 0 if the present moment alone was judged.
    """

    queue: str
    at: float
    is_late: bool
    lag: float
    limit: float
    cause: Cause | None
    says: str
    evidence: tuple[str, ...] = ()
    advice: str = ""
    minutes: int = 0
    looked: int = 0


class HourOfQueue(msgspec.Struct, frozen=True):
    """An hour of a queue that is over. `at`: Unix seconds, its begin. Times are seconds, summed over all shards.

    `ids`: that were done or rejected. `calls` of the handler took `busy`; a processor worked for `computing` of it, as
    far as plain handlers show it. `held`: under a lease. `failed`: failures that counted, `dead`: those of them that
    were the last of an id. `busiest`: ids of the busiest minute. `p50`, `p95`, `p99`: how long the first ids of calls
    had waited; None if nothing was called. `seconds`: of the hour that were watched. `skew`: of each 10,000 payloads
    those of the 64 most frequent ids, the most frequent first; None if nobody counted.
    """

    at: float
    seconds: float
    ids: int
    payloads: int
    calls: int
    busy: float
    computing: float
    held: float
    failed: int
    dead: int
    busiest: int
    p50: float | None
    p95: float | None
    p99: float | None
    skew: tuple[int, ...] | None = None


class HourDigest(HourOfQueue, frozen=True, array_like=True):
    """The same; a list of the values in JSON."""


def mean_skew(hours: Sequence[HourOfQueue]) -> tuple[float, ...] | None:
    """The shares of the most frequent ids in these hours, of those that have them; None if none has."""
    counted = [(hour.payloads, hour.skew) for hour in hours if hour.skew is not None and hour.payloads]
    total = 10_000 * sum(payloads for payloads, _ in counted)
    return (
        tuple(
            sum(payloads * skew[place] for payloads, skew in counted if place < len(skew)) / total
            for place in range(max(len(skew) for _, skew in counted))
        )
        if counted
        else None
    )

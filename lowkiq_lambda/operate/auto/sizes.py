"""How many shards a queue should have: the smallest multiple that its load, and a simulation, let suffice."""

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from lowkiq_lambda.operate.auto.facts import AutoFacts

FULL_ENOUGH: Final = 0.6
"""Of all slots, busy at the load that was measured: the rest is for bursts."""
AT_ONCE: Final = 4
"""So many times as many shards one move makes at most: what comes of it is looked at first."""
OF_THREADS: Final = 2
"""So many shards a thread: with more, they would only take turns."""
CARRIED: Final = 10_000.0
"""Ids a second that a move carries."""
A_GROUP: Final = 2.0
"""Seconds that a group of shards rests while it moves."""

Forecast: TypeAlias = Callable[[int], float | None]
"""The 95th percentile of the waits with so many shards, in seconds; None: it cannot be told."""


class ShardsSize(NamedTuple):
    """A count of shards, and the waits that are expected of it; `short`: what kept it from being larger, or empty."""

    to: int
    p95: float | None
    short: str = ""


def size_of(facts: AutoFacts, forecast: Forecast) -> ShardsSize | str:
    """The count that suffices, or the largest that is allowed; a sentence where none above the present one is."""
    most, why = _allowed(facts)
    if 2 * facts.shards > most:
        return why
    to, p95 = facts.shards, None
    while 2 * to <= most:
        to *= 2
        if facts.load / (to * facts.concurrency) > FULL_ENOUGH:
            continue
        p95 = forecast(to)
        if p95 is None or p95 <= facts.bounds.lag:
            return ShardsSize(to, p95)
    return ShardsSize(to, p95 if p95 is not None else forecast(to), why)


def _allowed(facts: AutoFacts) -> tuple[int, str]:
    """The most shards of one move, and what says so."""
    bounds = {
        AT_ONCE * facts.shards: f"one move makes at most {AT_ONCE} times as many",
        facts.bounds.most: f"its declaration allows {facts.bounds.most} at most",
    }
    if facts.threads:
        allowed = OF_THREADS * facts.threads
        bounds[allowed] = f"{facts.threads} threads drain, and more than {allowed} shards would only take turns"
    most = min(bounds)
    return most, bounds[most]


def pause_of(ids: int, groups: int) -> float:
    """Seconds that an id waits at most as its group of shards moves."""
    return ids / CARRIED / max(1, groups) + A_GROUP


def cost_of(ids: int, groups: int) -> float:
    """Seconds that a whole move takes, in which a part of the queue rests."""
    return ids / CARRIED + A_GROUP * groups

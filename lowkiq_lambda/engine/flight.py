"""The ids in flight of a visit whose batches run side by side, the room for more, and the next move of the visit.

The next move is a pure function of the ids that wait, run and have ended.
"""

import math
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from lowkiq_lambda.base.clock import doubled
from lowkiq_lambda.jobs.job import Delivery
from lowkiq_lambda.store.shard.session import ClaimLimits

Move: TypeAlias = Literal["begin", "more", "part", "wait", "end"]
"""`begin` a batch that waits; settle and claim `more`; settle a `part`; `wait` for an end; the claim's `end`."""

FIRST_LOOK: Final = 0.1
LONGEST_LOOK: Final = 1.0
"""Seconds between two looks for more while a slot is free: from the first, doubled up to the longest."""
TURN_BATCHES: Final = 20
LONGEST_TURN: Final = 5.0
"""A turn lasts so many times as long as a batch, but not longer than so many seconds: slots have to fill up first."""


class Standing(msgspec.Struct, frozen=True):
    """How a claim stands. Times are of the monotonic clock, `waiting` and `running` are counts of batches.

    `unsettled_since`: when the first batch ended whose outcome is not written. `look_at`: when it is worth asking
    for more. `may_claim`: whether more may be claimed at all. `low`: with fewer that wait it is time for more.
    """

    waiting: int
    running: int
    concurrency: int
    unsettled_since: float | None
    look_at: float
    may_claim: bool
    low: int = 0


def next_move(standing: Standing, now: float, settle_interval: float) -> tuple[Move, float]:
    """The next move, and, with `wait`, until when there is no other unless a batch ends (infinity: for ever)."""
    has_free_slot = standing.running < standing.concurrency
    if standing.waiting and has_free_slot:
        return "begin", now
    if not standing.running:
        return "end", now
    settle_at = float("inf") if standing.unsettled_since is None else standing.unsettled_since + settle_interval
    wants_more = standing.may_claim and (has_free_slot or standing.waiting < standing.low)
    look_at = standing.look_at if wants_more else float("inf")
    if now >= min(settle_at, look_at):
        return ("more" if standing.may_claim else "part"), now
    return "wait", min(settle_at, look_at)


def low_mark(took: float, mean: float | None, concurrency: int, spare: int) -> int:
    """With fewer batches waiting than that, it is time for more: they begin while Redis is asked.

    `took`: seconds of the last claim; `mean`: those of a batch. `spare`: how many batches wait, at most.
    """
    # As long as the claim itself take what leads to it, and what comes of it.
    end_meanwhile = math.ceil(2 * took * concurrency / mean) if mean else concurrency
    return min(end_meanwhile, spare // 2)


def next_look(looks: int, now: float, due_in: float | None) -> float:
    """When to look for more after so many looks (1 or more) that found nothing; `due_in` seconds a job is due."""
    rest = doubled(FIRST_LOOK, looks - 1, LONGEST_LOOK)
    return now + (rest if due_in is None else max(FIRST_LOOK, min(rest, due_in)))


def turn_of(mean: float | None) -> float:
    """For how many seconds, at least, a visit goes on claiming whose batches take `mean`, while other shards wait."""
    return min(LONGEST_TURN, TURN_BATCHES * (mean or 0.0))


class Flight:
    """The ids that were claimed and have no outcome yet."""

    def __init__(self) -> None:
        self.since: dict[str, float] = {}
        """Since when each counts for the lag: when it was due, or its last save (Unix seconds)."""
        self._payloads = 0
        self._bytes = 0

    def add(self, deliveries: Sequence[Delivery]) -> None:
        """They were claimed."""
        for delivery in deliveries:
            self.since[delivery.id] = delivery.due_at
        self._count(deliveries, 1)

    def remove(self, deliveries: Sequence[Delivery]) -> None:
        """Their outcomes are known."""
        for delivery in deliveries:
            del self.since[delivery.id]
        self._count(deliveries, -1)

    def oldest_without(self, job_id: str) -> float | None:
        """Since when the oldest of the others counts; None without others."""
        return min((since for other_id, since in self.since.items() if other_id != job_id), default=None)

    def room(self, limits: ClaimLimits) -> ClaimLimits:
        """The room for another claim, within `limits` of all ids in flight; none if over half of the bytes is taken."""
        payloads, size = limits.payloads - self._payloads, limits.bytes - self._bytes
        # The first id that is claimed gets at least one payload, however long that is.
        has_room = payloads > 0 and 2 * self._bytes <= limits.bytes
        ids = max(0, limits.ids - len(self.since)) if has_room else 0
        return ClaimLimits(ids, max(1, payloads), max(1, size), limits.chunk, limits.concurrency)

    def _count(self, deliveries: Sequence[Delivery], sign: int) -> None:
        for delivery in deliveries:
            self._payloads += sign * len(delivery.entries)
            self._bytes += sign * sum(map(len, delivery.entries))

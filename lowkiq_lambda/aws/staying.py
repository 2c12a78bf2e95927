"""A drain that stays for what becomes due within seconds: for the next one it would wait up to a minute."""

from collections.abc import Iterator
from typing import Final

from lowkiq_lambda.budget import Budget
from lowkiq_lambda.drainer import Drainer
from lowkiq_lambda.errors import BackendError
from lowkiq_lambda.tour import Tour

_SHORTEST: Final = 0.001
"""Seconds of a wait: so that they add up, whatever two clocks make of what is due now."""


def drain_and_stay(drainer: Drainer, budget: Budget, tour: Tour, seconds: float) -> None:
    """Drain the tour's shards, wait for what is due next in one of them, and drain again; hold no lease meanwhile.

    The waits are less than `seconds` in sum, and none begins that would go on after the budget. Where nothing becomes
    due within them, or nobody knows when, this is `Drainer.drain`.
    """
    drainer.drain(budget, tour)
    while (wait := min(_due_in(drainer, tour), default=seconds)) < min(seconds, budget.remaining()):
        drainer.clock.sleep(wait)
        seconds -= wait
        drainer.drain(budget, tour)


def _due_in(drainer: Drainer, tour: Tour) -> Iterator[float]:
    """In how many seconds each empty shard has work. One that is held or paused may not be had when it is due."""
    for shard, at in tour.next_at.items():
        if tour.reasons.get(shard) == "empty":
            try:
                yield max(_SHORTEST, at - drainer.now(shard))
            except BackendError:
                return

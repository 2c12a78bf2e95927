"""When what runs in the slots of a visit is cancelled, as far as it can be."""

from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.engine.budget import Budget

Cause: TypeAlias = Literal["too long", "others"]
"""Why: it takes too long, which may be said of it next time too; or for reasons that are none of its own."""

LEAST_REST: Final = 1.0
"""Seconds before the process ends, at least, in which what was cancelled cleans up, and its outcome is written."""


class CancelWatch:
    """Looks at time, stop signal and trust while batches run."""

    def __init__(self, budget: Budget, trust_left: Callable[[], float], clock: Clock, shutdown_timeout: float) -> None:
        self._budget = budget
        self._trust_left = trust_left
        self._clock = clock
        self._patience = shutdown_timeout - max(LEAST_REST, shutdown_timeout / 10)
        self._stopped_at: float | None = None

    def cause(self) -> Cause | None:
        """Why to cancel now, or None."""
        if self._budget.is_hard and self._budget.remaining() <= 0:
            return "too long"
        if self._budget.is_cancelled() or self._trust_left() <= 0 or self._is_stop_over():
            return "others"
        return None

    def _is_stop_over(self) -> bool:
        if not self._budget.stopping():
            return False
        now = self._clock.monotonic()
        self._stopped_at = now if self._stopped_at is None else self._stopped_at
        return now >= self._stopped_at + self._patience

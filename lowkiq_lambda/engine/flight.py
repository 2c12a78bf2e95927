"""What a visit has in flight whose batches run side by side, and how much may come beside it."""

from collections.abc import Sequence

from lowkiq_lambda.jobs.job import Delivery
from lowkiq_lambda.store.shard.session import ClaimLimits


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
            self.since[delivery.id] = delivery.perform_in
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
        """What may be claimed beside it, where so much may be in flight; no ids while much of the bytes is."""
        payloads, size = limits.payloads - self._payloads, limits.bytes - self._bytes
        # The first id that is claimed gets at least one payload, however long that is.
        has_room = payloads > 0 and 2 * self._bytes <= limits.bytes
        ids = max(0, limits.ids - len(self.since)) if has_room else 0
        return ClaimLimits(ids, max(1, payloads), max(1, size), limits.slice, limits.concurrency)

    def _count(self, deliveries: Sequence[Delivery], sign: int) -> None:
        self._payloads += sign * sum(len(delivery.entries) for delivery in deliveries)
        self._bytes += sign * sum(len(entry) for delivery in deliveries for entry in delivery.entries)

"""What one claim has put into flight, lined up in batches."""

from collections import deque
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import msgspec

from lowkiq_lambda.jobs.job import Delivery
from lowkiq_lambda.store.shard.lease_replies import StoredClaim

if TYPE_CHECKING:
    from lowkiq_lambda.engine.iteration_run import IterationRun


class Claim(msgspec.Struct, eq=False):
    """The ids that one claim has put into flight, until they are settled. Only the thread of its visit changes it.

    `charge`, `is_rest`: as in the store's `StoredClaim`.
    """

    deliveries: Sequence[Delivery] = ()
    lone_suspect: bool = False
    charge: bytes | None = None
    is_rest: bool = False
    left: deque[list[Delivery]] = msgspec.field(default_factory=deque)
    """The batches that have not begun."""
    exited: list[Delivery] = msgspec.field(default_factory=list)
    """The ids whose handlers exited in this visit: they wait for another one."""
    batch: Sequence[Delivery] = ()
    """The one that was begun last, in the visit's own thread."""
    begun_at: float = 0.0
    """When that was (monotonic)."""
    settled_at: float = 0.0
    """When something of the claim was settled last, or it came (monotonic)."""
    ahead: float = 0.0
    """By how much the time of the shard's server is ahead of the monotonic clock."""
    run: "IterationRun | None" = None
    """Of the job in that batch, while it runs, if it has a cursor."""

    @classmethod
    def of(cls, claim: StoredClaim | None) -> "Claim | None":
        """As the store has told it."""
        if claim is None:
            return None
        return cls(claim.deliveries, claim.lone_suspect, claim.charge, claim.is_rest)

    def divide(self, deliveries: Sequence[Delivery], batch_size: int, exited_ids: Collection[str]) -> None:
        """Line these up in batches; ids that exited in this visit are set apart."""
        fresh, exited = _parted(deliveries, exited_ids)
        self.exited += exited
        self.left.extend(batches_of(fresh, batch_size))

    def drop(self, ids: Collection[str]) -> list[Delivery]:
        """Take these ids out of what has not begun."""
        dropped = [delivery for batch in self.left for delivery in batch if delivery.id in ids] if ids else []
        if dropped:
            left = [[delivery for delivery in batch if delivery.id not in ids] for batch in self.left]
            self.left = deque(batch for batch in left if batch)
        return dropped

    def first_ids(self, ids: int) -> list[Delivery]:
        """So many ids of the first batch; the others of it come next."""
        if not ids:
            return []
        batch = self.left.popleft()
        if ids < len(batch):
            self.left.appendleft(batch[ids:])
            return batch[:ids]
        return batch


def batches_of(deliveries: Sequence[Delivery], batch_size: int) -> list[list[Delivery]]:
    """Batches of at most `batch_size`, by the time of their first job.

    Fresh jobs and jobs in retry don't meet in a batch, and an id whose last failure was its own is alone in its
    batch: it would only take others down with it. One that exited comes last, too.
    """
    if all(delivery.retry_count < 0 and delivery.exit_count is None for delivery in deliveries):
        return _cut(deliveries, batch_size)
    others = [delivery for delivery in deliveries if delivery.exit_count is None]
    fresh = [delivery for delivery in others if delivery.retry_count < 0]
    failed = [delivery for delivery in others if delivery.retry_count >= 0 and not delivery.blamed]
    blamed = [delivery for delivery in others if delivery.retry_count >= 0 and delivery.blamed]
    batches = [*_cut(fresh, batch_size), *_cut(failed, batch_size), *_cut(blamed, 1)]
    exited = [delivery for delivery in deliveries if delivery.exit_count is not None]
    return [
        *sorted(batches, key=lambda batch: batch[0].due_at),
        *_cut(sorted(exited, key=lambda delivery: delivery.exit_count or 0), 1),
    ]


def _parted(deliveries: Sequence[Delivery], ids: Collection[str]) -> tuple[Sequence[Delivery], Sequence[Delivery]]:
    """Those of other ids, and those of these."""
    these = [delivery for delivery in deliveries if delivery.id in ids] if ids else []
    return [delivery for delivery in deliveries if delivery.id not in ids] if these else deliveries, these


def _cut(deliveries: Sequence[Delivery], size: int) -> list[list[Delivery]]:
    return [[*deliveries[at : at + size]] for at in range(0, len(deliveries), size)]

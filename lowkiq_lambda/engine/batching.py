"""Divides what was claimed into the batches that the handler gets."""

from collections.abc import Collection, Iterable, Sequence

from lowkiq_lambda.job import Delivery


def batches_of(deliveries: Sequence[Delivery], batch_size: int) -> list[list[Delivery]]:
    """Batches of at most `batch_size`, by the time of their first job.

    Fresh jobs and jobs in retry don't meet in a batch, and an id whose last failure was its own is alone in its
    batch: it would only take others down with it. One that exited comes last, too.
    """
    if all(delivery.retry_count < 0 and delivery.exit_count is None for delivery in deliveries):
        return list(_cut(deliveries, batch_size))
    others = [delivery for delivery in deliveries if delivery.exit_count is None]
    fresh = [delivery for delivery in others if delivery.retry_count < 0]
    failed = [delivery for delivery in others if delivery.retry_count >= 0 and not delivery.blamed]
    blamed = [delivery for delivery in others if delivery.retry_count >= 0 and delivery.blamed]
    batches = [*_cut(fresh, batch_size), *_cut(failed, batch_size), *_cut(blamed, 1)]
    exited = [delivery for delivery in deliveries if delivery.exit_count is not None]
    return [
        *sorted(batches, key=lambda batch: batch[0].perform_in),
        *_cut(sorted(exited, key=lambda delivery: delivery.exit_count or 0), 1),
    ]


def parted(deliveries: Sequence[Delivery], ids: Collection[str]) -> tuple[Sequence[Delivery], Sequence[Delivery]]:
    """Those of other ids, and those of these."""
    these = [delivery for delivery in deliveries if delivery.id in ids] if ids else []
    return [delivery for delivery in deliveries if delivery.id not in ids] if these else deliveries, these


def _cut(deliveries: Sequence[Delivery], size: int) -> Iterable[list[Delivery]]:
    return (list(deliveries[at : at + size]) for at in range(0, len(deliveries), size))

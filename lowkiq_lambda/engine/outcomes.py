"""What a drain owes the store: the outcomes of ids that were performed and are not settled yet."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from lowkiq_lambda.engine.verdict import BatchResult, CountedFailure, ErrorText, Outcome, of_exit, of_failure
from lowkiq_lambda.job import Delivery
from lowkiq_lambda.worker import Worker

_COUNTED_AS: Final = {
    "retry": "retried",
    "bury": "dead",
    "back": "interrupted",
    "behind": "interrupted",
    "suspect": "suspected",
}


class PendingOutcomes:
    """Fills while batches run, is handed over at each settling, and a new one is begun after it."""

    def __init__(self, worker: type[Worker], texts: ErrorText) -> None:
        self._worker = worker
        self._texts = texts
        self._named: list[Outcome] = []
        self._done: list[str] = []
        self._suspect_batches = 0
        self.payloads = 0
        """How many payloads were performed to their end."""
        self.buried: list[tuple[str, bytes, bytes]] = []
        """Id, entry and error of what goes to the morgue."""

    def record(self, batch: Sequence[Delivery], performed: BatchResult, now: Callable[[], float]) -> None:
        """Note what came of a batch: the ids that are done, failed, suspected or interrupted."""
        if performed.failed or performed.unattributed or performed.interrupted:
            self._record_named(batch, performed, now())
            return
        for delivery in batch:
            self._done.append(delivery.id)
            self.payloads += len(delivery.entries)

    def charge(self, deliveries: Sequence[Delivery], error: bytes, now: float) -> None:
        """Note that ids, without having run, share the failure that hit all of their group."""
        failure = self._texts.shared(error)
        for delivery in deliveries:
            self._failed(delivery, failure, now)

    def back(self, deliveries: Iterable[Delivery]) -> None:
        """The ids go back as they were."""
        self._named += [(delivery.id, "back") for delivery in deliveries]

    def outcomes(self, *, partial: bool) -> list[Outcome]:
        """To be sent: what is done is named only where other ids stay in flight."""
        return [*self._named, *((job_id, "done") for job_id in self._done)] if partial else self._named

    def counts(self) -> Counter[str]:
        """Ids by outcome; `failed` are those that count, retried or dead."""
        counts = Counter(_COUNTED_AS[outcome[1]] for outcome in self._named)
        counts["done"] = len(self._done)
        counts["failed"] = counts["retried"] + counts["dead"]
        return +counts

    def _record_named(self, batch: Sequence[Delivery], performed: BatchResult, now: float) -> None:
        # Where each id is performed by itself, company does no harm and blame has no use.
        in_company = self._worker.batch_size > 1 and hasattr(self._worker, "perform")
        suspected, interrupted = set(performed.unattributed), set(performed.interrupted)
        enders = set(performed.enders)
        for delivery in batch:
            if delivery.id in performed.failed:
                failure = self._texts.failure(performed.failed[delivery.id], blamed=in_company)
                self._failed(delivery, failure, now)
            elif delivery.id in enders and performed.exit:
                if behind := of_exit(delivery, performed.exit, alone=len(enders) == 1):
                    self._named.append(behind)
                else:
                    self._failed(delivery, self._texts.repeated_exit(performed.exit, blamed=in_company), now)
            elif delivery.id in interrupted:
                self.back([delivery])
            elif delivery.id not in suspected:
                self._done.append(delivery.id)
                self.payloads += len(delivery.entries)
            elif self._worker.isolate or performed.error is None:
                self._named.append((delivery.id, "suspect", self._suspect_batches))
            else:
                failure = self._texts.failure(performed.error, blamed=False)
                self._failed(delivery, failure, now)
        self._suspect_batches += 1

    def _failed(self, delivery: Delivery, failure: CountedFailure, now: float) -> None:
        outcome = of_failure(self._worker, delivery, failure, now)
        self._named.append(outcome)
        if outcome[1] == "bury":
            self.buried.append((delivery.id, delivery.entries[0], failure.dumped))

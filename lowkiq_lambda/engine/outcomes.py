"""What becomes of the ids that were performed, and what of it a drain owes the store until the next settling."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import Final

from lowkiq_lambda.engine.failure import CountedFailure, ErrorText
from lowkiq_lambda.engine.perform import BatchResult
from lowkiq_lambda.error_text import call_safely, loggable
from lowkiq_lambda.job import Delivery, Outcome
from lowkiq_lambda.retry import default_retry_in, safe_delay
from lowkiq_lambda.store.shard.session import OutcomeRecord
from lowkiq_lambda.worker import Worker

logger = logging.getLogger(__name__)

EXIT_LIMIT: Final = 5
"""How often in a row an id that runs alone exits (`sys.exit`, a cancellation) until that is its failure.

Any process is stopped now and then, so one exit says nothing of the id; five in a row are its own.
"""

_rng: Final = Random()  # noqa: S311 - spreads retries in time, protects nothing


class PendingOutcomes:
    """Fills while batches run, is handed over at each settling, and a new one is begun after it."""

    def __init__(self, worker: type[Worker], texts: ErrorText) -> None:
        self._worker = worker
        self._texts = texts
        self._records: list[OutcomeRecord] = []
        self._done: list[str] = []
        self._suspect_batches = 0
        self.payloads = 0
        """How many payloads were performed to their end."""
        self.buried: list[tuple[str, bytes, bytes]] = []
        """Id, entry and error of what goes to the morgue."""

    def add(self, batch: Sequence[Delivery], result: BatchResult, now: Callable[[], float]) -> None:
        """Note what came of a batch, by id."""
        if result.failed or result.unattributed or result.returned:
            self._add_each(batch, result, now())
            return
        for delivery in batch:
            self._done.append(delivery.id)
            self.payloads += len(delivery.entries)

    def charge(self, deliveries: Sequence[Delivery], error: bytes, now: float) -> None:
        """Note that ids, without having run, share the failure that hit all of their group."""
        failure = self._texts.shared(error)
        for delivery in deliveries:
            self._fail(delivery, failure, now)

    def give_back(self, deliveries: Iterable[Delivery]) -> None:
        """The ids are returned as they were."""
        self._records += [(delivery.id, "returned") for delivery in deliveries]

    def records(self, *, partial: bool) -> list[OutcomeRecord]:
        """To be sent: what is done is named only where other ids stay in flight."""
        return [*self._records, *((job_id, "done") for job_id in self._done)] if partial else self._records

    def named(self) -> Iterator[tuple[str, Outcome]]:
        """Each id with its outcome."""
        for job_id, outcome, *_ in self._records:
            yield job_id, outcome
        for job_id in self._done:
            yield job_id, "done"

    def counts(self) -> Counter[str]:
        """Ids by outcome; `failed` are those whose failure counts, retried or buried."""
        counts: Counter[str] = Counter(record[1] for record in self._records)
        counts["done"] = len(self._done)
        counts["failed"] = counts["retried"] + counts["buried"]
        return +counts

    def _add_each(self, batch: Sequence[Delivery], result: BatchResult, now: float) -> None:
        # Where each id is performed by itself, company does no harm and blame has no use.
        in_company = self._worker.batch_size > 1 and hasattr(self._worker, "perform")
        unattributed, returned, exited_ids = set(result.unattributed), set(result.returned), set(result.exited_ids)
        for delivery in batch:
            if delivery.id in result.failed:
                failure = self._texts.failure(result.failed[delivery.id], blamed=in_company)
                self._fail(delivery, failure, now)
            elif delivery.id in exited_ids and result.exit:
                if record := exit_record(delivery, result.exit, alone=len(exited_ids) == 1):
                    self._records.append(record)
                else:
                    failure = self._texts.repeated_exit(result.exit, EXIT_LIMIT, blamed=in_company)
                    self._fail(delivery, failure, now)
            elif delivery.id in returned:
                self.give_back([delivery])
            elif delivery.id not in unattributed:
                self._done.append(delivery.id)
                self.payloads += len(delivery.entries)
            elif self._worker.isolate or result.error is None:
                self._records.append((delivery.id, "suspected", self._suspect_batches))
            else:
                failure = self._texts.failure(result.error, blamed=False)
                self._fail(delivery, failure, now)
        self._suspect_batches += 1

    def _fail(self, delivery: Delivery, failure: CountedFailure, now: float) -> None:
        record = failure_record(self._worker, delivery, failure, now)
        self._records.append(record)
        if record[1] == "buried":
            self.buried.append((delivery.id, delivery.entries[0], failure.dumped))


def failure_record(worker: type[Worker], delivery: Delivery, failure: CountedFailure, now: float) -> OutcomeRecord:
    """A retry later, or, when those are used up, the morgue for the oldest payload."""
    count = delivery.retry_count + 1
    if count >= worker.max_retry_count:
        return delivery.id, "buried", failure.dumped, failure.signature, failure.brief
    at = now + _delay(worker, int(count))
    return delivery.id, "retried", count, at, failure.dumped, failure.signature, failure.blamed, failure.brief


def exit_record(delivery: Delivery, error: BaseException, *, alone: bool) -> OutcomeRecord | None:
    """Returned, behind what is due by now; None where so many exits in a row are a failure.

    In company it counts for nobody, and Ctrl-C never does.
    """
    exit_count = (delivery.exit_count or 0) + (alone and not isinstance(error, KeyboardInterrupt))
    return None if exit_count >= EXIT_LIMIT else (delivery.id, "returned", exit_count)


def _delay(worker: type[Worker], retry_count: int) -> float:
    answer, broken = call_safely(lambda count: worker().retry_in(count), retry_count)
    if broken:
        logger.error("%s.retry_in raised: the default delay is taken", worker.__name__, exc_info=loggable(broken))
    elif safe_delay(answer) is None:
        logger.error("%s.retry_in returned %r: the default delay is taken", worker.__name__, answer)
    delay = safe_delay(answer)
    return default_retry_in(retry_count, _rng) if delay is None else delay

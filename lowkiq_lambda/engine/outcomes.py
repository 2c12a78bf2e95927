"""The outcomes of performed ids, and the part of them that a drain writes to the store with the next settling."""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from lowkiq_lambda.base.error_text import call_safely, cut, headline, is_a, loggable, plain, type_name
from lowkiq_lambda.base.errors import Rejected
from lowkiq_lambda.declare.worker import Worker, at_most
from lowkiq_lambda.engine.failure import BRIEF, CountedFailure, Death, ErrorText, digits, headline_of
from lowkiq_lambda.engine.perform import BatchResult, about
from lowkiq_lambda.jobs.job import Delivery, Outcome
from lowkiq_lambda.jobs.retry import SHORTEST_DELAY, Later, asked_of
from lowkiq_lambda.settings.protocols import CursorRun
from lowkiq_lambda.store.shard.session import OutcomeRecord

if TYPE_CHECKING:
    from lowkiq_lambda.engine.deciding import Fate
    from lowkiq_lambda.engine.iteration import Iteration

logger = logging.getLogger(__name__)

EXIT_LIMIT: Final = 5
"""Exits in a row (`sys.exit`, a cancellation) after which an id that runs alone counts as failed.

Any process is stopped now and then, so one exit is not evidence against the id; five in a row are its own.
"""

MOST_NAMED: Final = 100
"""Outcomes of one call, as no call may keep the server for 10 ms: a death or a suspicion is some 30 µs."""

MOST_NOTES: Final = 40
"""Of one run of an id: an item keeps no more of its last ones."""


_EXPIRED: Final = ("expired", "some_expired")
"""The records that name payloads that are over."""


class PendingOutcomes:
    """Fills while batches run, is handed over at each settling, and a new one is begun after it."""

    def __init__(self, worker: type[Worker[Any]], texts: ErrorText) -> None:
        self._worker = worker
        self._texts = texts
        self._records: list[OutcomeRecord] = []
        self._saved: list[OutcomeRecord] = []
        self._done: list[str] = []
        self._suspect_batches = 0
        self.payloads = 0
        """How many payloads were performed to their end."""
        self.dead: list[Death] = []
        """What has failed for the last time."""
        self.begins_expiry = False
        """Whether a retry gives its payload an expiry."""
        self._iterations: Mapping[str, Iteration] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing is owed."""
        return not self._records and not self._done

    def add(self, batch: Sequence[Delivery], result: BatchResult, now: Callable[[], float]) -> None:
        """Note what came of a batch, by id."""
        if result.notes:
            self._note(result.notes)
        if result.iterations:
            self._iterations = {**self._iterations, **result.iterations}
        if result.failed or result.unattributed or result.returned or result.later or result.rejected:
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

    def last(self, job_id: str) -> OutcomeRecord | None:
        """What was noted last, if it is the outcome of this id; None for an id that is done."""
        return self._records[-1] if self._records and self._records[-1][0] == job_id else None

    def join(self, other: "PendingOutcomes") -> None:
        """Note what another has noted."""
        self._records += other._records  # noqa: SLF001 - another of this class
        self._saved += other._saved  # noqa: SLF001 - another of this class
        self._done += other._done  # noqa: SLF001 - another of this class
        self._iterations = {**self._iterations, **other._iterations}  # noqa: SLF001 - as above
        self.payloads += other.payloads
        self.dead += other.dead
        self.begins_expiry = self.begins_expiry or other.begins_expiry

    def unblame(self) -> None:
        """No failure is its id's own: retries share batches."""
        self._records = [(*each[:6], False, *each[7:]) if each[1] == "retried" else each for each in self._records]

    def expire(self, record: OutcomeRecord, deaths: Iterable[Death], *, is_whole: bool) -> None:
        """Note payloads that are over, and what is dead of them. `is_whole`: nothing else is left of the id."""
        (self._records if is_whole else self._saved).append(record)
        self.dead += deaths

    def kill_expired(self, delivery: Delivery, failure: CountedFailure, fate: "Fate") -> None:
        """Note that the oldest payload, which has failed before, has no time for its retry."""
        from lowkiq_lambda.engine.deciding import end_record  # noqa: PLC0415 - as in `_fail`

        self._records.append(end_record(self._worker, delivery, failure, fate))
        self.dead.append(Death(delivery.id, delivery.entries[0], failure.dumped, fate.why))

    def follow_heads(self, deliveries: Iterable[Delivery]) -> None:
        """Note that what waits under the ids follows their dead heads; how many there are is known in Redis alone."""
        self._records += [(delivery.id, "rest") for delivery in deliveries]

    def give_back(self, deliveries: Iterable[Delivery]) -> None:
        """The ids are returned as they were."""
        self._records += [(delivery.id, "returned") for delivery in deliveries]

    def cancel(self, ids: Collection[str]) -> None:
        """The store has cancelled these, in place of their outcomes here."""
        self._records = [(record[0], "cancelled") if record[0] in ids else record for record in self._records]
        self.dead = [death for death in self.dead if death.id not in ids]

    def parts(self, *, partial: bool) -> list[list[OutcomeRecord]]:
        """The records to send, by calls. Done ids, which cost little, are named only if other ids stay in flight."""
        # How far a job has come is noted before its outcome: the morgue, too, takes the latest.
        records = [*self._saved, *self._records]
        parts = [records[at : at + MOST_NAMED] for at in range(0, len(records), MOST_NAMED)] or [[]]
        if partial:
            parts[-1] += [(job_id, "done") for job_id in self._done]
        return parts

    def named(self) -> Iterator[tuple[str, Outcome]]:
        """Each id with its outcome."""
        for job_id, outcome, *_ in self._records:
            if outcome != "rest":
                yield job_id, outcome
        for job_id in self._done:
            yield job_id, "done"

    def cursor_runs(self) -> dict[str, CursorRun]:
        """The runs of jobs with a cursor."""
        return {
            job_id: CursorRun(each.is_resumed, each.progress.items - each.items_before, each.progress)
            for job_id, each in self._iterations.items()
        }

    def performed(self) -> list[str]:
        """The ids that would be performed again if their outcomes were not written."""
        return [job_id for job_id, outcome in self.named() if outcome != "returned"]

    def counts(self) -> Counter[str]:
        """Ids by outcome; `failed`: those whose failure counts; `checkpointed`: those of `later` with new progress.

        `rejected`: with those that are `discarded`. `expired`: not ids, but payloads.
        """
        counts: Counter[str] = Counter(record[1] for record in self._records)
        del counts["rest"]
        if counts["later"]:
            counts["checkpointed"] = sum(record[3] for record in self._records if record[1] == "later")
        if expired := [len(record) - 4 for record in (*self._saved, *self._records) if record[1] in _EXPIRED]:
            counts["expired"] = sum(expired)
        counts["done"] = len(self._done)
        counts["failed"] = counts["retried"] + counts["dead"] + counts["blocked"]
        counts["rejected"] += counts["discarded"]
        return +counts

    def _add_each(self, batch: Sequence[Delivery], result: BatchResult, now: float) -> None:
        # If each id is performed by itself, company does no harm and blame has no use.
        in_company = at_most(self._worker.batch_size) > 1 and hasattr(self._worker, "perform")
        unattributed, returned, exited_ids = set(result.unattributed), set(result.returned), set(result.exited_ids)
        for delivery in self._left(batch, result.ended) if result.ended else batch:
            iteration = result.iterations.get(delivery.id) if delivery.id not in result.ended else None
            if delivery.id in result.failed:
                failure = self._texts.failure(result.failed[delivery.id], blamed=in_company)
                self._fail(delivery, failure, now, iteration)
            elif delivery.id in result.rejected:
                self._reject(delivery, result.rejected[delivery.id], iteration)
            elif delivery.id in result.later:
                self._put_off(delivery, result.later[delivery.id], now, iteration, blamed=in_company)
            elif delivery.id in exited_ids and result.exit is not None:
                before = 0 if iteration and iteration.has_advanced else delivery.exit_count or 0
                if record := exit_record(delivery, result.exit, before, alone=len(exited_ids) == 1):
                    self._save(delivery, iteration, type_name(result.exit), returned=True)
                    self._records.append(record)
                else:
                    failure = self._texts.repeated_exit(result.exit, EXIT_LIMIT, blamed=in_company)
                    self._fail(delivery, failure, now, iteration)
            elif delivery.id in returned:
                self._save(delivery, iteration, returned=True)
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

    def _left(
        self, batch: Sequence[Delivery], ended: Mapping[str, Mapping[int, Rejected | None]]
    ) -> Iterator[Delivery]:
        """The deliveries without the payloads that ended by themselves, which are noted."""
        from lowkiq_lambda.engine.partial import arrival_of, without  # noqa: PLC0415 - imported lazily: cold start

        for delivery in batch:
            if not (own := ended.get(delivery.id)):
                yield delivery
                continue
            record: list[object] = [delivery.id, "ended"]
            for payload, error in sorted(own.items()):
                reason = ("", "", "") if error is None else (*self._refusal(error), digits(error))
                record += [arrival_of(delivery.entries[payload]), *reason]
            self._saved.append(tuple(record))
            self.payloads += len(own)
            yield without(delivery, own)

    def _fail(
        self, delivery: Delivery, failure: CountedFailure, now: float, iteration: "Iteration | None" = None
    ) -> None:
        from lowkiq_lambda.engine.deciding import decide, end_record, retry_record  # noqa: PLC0415 - imported lazily: cold start

        # Movement that cannot be kept is none: it would be found anew at each failure.
        unkept = self._save(delivery, iteration, failed=True)
        has_moved = iteration is not None and iteration.has_moved and unkept is None
        count = 0.0 if has_moved else delivery.retry_count + 1
        fate, expiry = decide(self._worker, failure, int(count)), None
        if delivery.expiries or self._worker.retry_for is not None:
            from lowkiq_lambda.engine.expiring import bounded  # noqa: PLC0415 - only for workers whose jobs expire

            failure, fate, expiry = bounded(self._worker, self._texts, delivery, failure, fate, now)
        if fate.act == "retry":
            self._records.append(retry_record(delivery, failure, count, now + fate.delay, fate.rule, expiry))
            self.begins_expiry = self.begins_expiry or expiry is not None
            return
        self._records.append(end_record(self._worker, delivery, failure, fate))
        if fate.act == "kill":
            self.dead.append(Death(delivery.id, delivery.entries[0], failure.dumped, fate.why))
        else:
            text = "a job was discarded by %s: %s"
            logger.info(text, fate.rule, headline_of(failure.error), extra=about(self._worker, [delivery.id]))

    def _reject(
        self, delivery: Delivery, rejected: Mapping[int | None, Rejected], iteration: "Iteration | None"
    ) -> None:
        reasons: list[object] = []
        for payload, error in rejected.items():
            reasons += [0 if payload is None else payload + 1, *self._refusal(error)]
        if any(reasons[2::3]):
            self._save(delivery, iteration, failed=True)
        first = digits(next(iter(rejected.values())))
        self._records.append((delivery.id, "rejected", first, *reasons))
        self.payloads += len(delivery.entries)

    def _note(self, notes: Mapping[str, Sequence[str]]) -> None:
        for job_id, texts in notes.items():
            if texts:
                self._saved.append((job_id, "noted", *map(self._message, texts[-MOST_NOTES:])))

    def _refusal(self, error: Rejected) -> tuple[bytes, bytes | str]:
        """The reason, and what the morgue keeps with the payload, or nothing."""
        text, broken = call_safely(str, error)
        is_kept, _ = call_safely(lambda raised: raised.keep is True, error)
        reason = self._message(headline(error) if broken is not None else text or "")
        return reason, self._texts.dump(error) if is_kept else ""

    def _message(self, text: str) -> bytes:
        """A message for items of tasks, in its stored form."""
        return self._texts.dump(cut(plain(str(text)), BRIEF))

    def _put_off(
        self, delivery: Delivery, later: Later, now: float, iteration: "Iteration | None", *, blamed: bool
    ) -> None:
        # Its own class, or the handler, may have changed it to what cannot be: that is the job's failure.
        due_at, broken = call_safely(asked_of, later)
        if due_at is None:
            self._fail(
                delivery, self._texts.failure(later if broken is None else broken, blamed=blamed), now, iteration
            )
            return
        if (unkept := self._save(delivery, iteration, due_at.reason)) is not None:
            self._fail(delivery, self._texts.failure(unkept, blamed=blamed), now)
            return
        if iteration is not None and (iteration.is_stopped or iteration.has_advanced):
            when = now + due_at.seconds if due_at.seconds else None
        else:
            when = now + max(due_at.seconds, SHORTEST_DELAY)
        has_moved = iteration is not None and iteration.has_moved
        # A job with a cursor keeps the reason with its progress.
        # It lies among texts of Lua, which readers take for UTF-8, and `dump_error` may return any bytes.
        is_new = due_at.reason and iteration is None
        reason = [self._message(due_at.reason).decode("latin-1").encode()] if is_new else []
        self._records.append((delivery.id, "later", "" if when is None else repr(when), int(has_moved), *reason))

    def _save(
        self,
        delivery: Delivery,
        iteration: "Iteration | None",
        reason: str = "",
        *,
        failed: bool = False,
        returned: bool = False,
    ) -> BaseException | None:
        """Note how far a job has come that did not end; why that cannot be kept, so that what was kept before stays."""
        if iteration is None:
            return None
        ended = partial(iteration.unfinished, failed=failed, returned=returned)
        progress, broken = call_safely(ended, reason)
        if broken is not None:
            about_it = about(self._worker, [delivery.id])
            logger.error("the progress of a job cannot be kept", extra=about_it, exc_info=loggable(broken))
        elif progress is not None:
            self._saved.append((delivery.id, "saved", progress))
        return broken


def exit_record(delivery: Delivery, error: BaseException, before: int, *, alone: bool) -> OutcomeRecord | None:
    """Returned, behind the ids that are due now; None if so many exits in a row, `before` and this one, are a failure.

    An exit in a batch of several ids does not count, and Ctrl-C never does.
    """
    exit_count = before + (alone and not is_a(error, KeyboardInterrupt))
    return None if exit_count >= EXIT_LIMIT else (delivery.id, "returned", exit_count)

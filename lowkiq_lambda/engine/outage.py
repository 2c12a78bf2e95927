"""An outage, as a visit sees it: batches that fail alike in a row. The ids of the next one are tried in its own claim.

A batch that raises and names no id makes suspects of its ids. Each trial of a suspect takes two calls of Redis, for the
handler may end the process. In an outage no handler does: the visit tries the ids where their batch was, charges the
others with the failure, and writes outcomes alone. A death meanwhile suspects all that is in flight, as in any claim.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeAlias

from lowkiq_lambda.base.error_text import signature
from lowkiq_lambda.engine.deciding import FAILED_WITH
from lowkiq_lambda.engine.outcomes import PendingOutcomes
from lowkiq_lambda.engine.perform import BatchResult
from lowkiq_lambda.engine.visit_settings import VisitSettings
from lowkiq_lambda.jobs.job import Delivery

Batches: TypeAlias = deque[list[Delivery]]
"""Those of a claim that have not begun."""

BATCHES: Final = 3
"""In a row that fail alike: the last of them, and each that follows, is tried at once."""
ALIKE: Final = 3
"""Ids of a batch that fail alike, so that the others are charged: as in a group of suspects (include/outcomes.lua)."""
PROOFS: Final = 3
"""Batches in a row of which so many did: of each that follows a single id is enough."""


class Trial:
    """A batch that failed as a whole, while its ids run one by one."""

    def __init__(self, batch: Sequence[Delivery], outcomes: PendingOutcomes) -> None:
        self.rest = list(batch)
        """The ids whose turn has not come."""
        self.alike = 0
        """How many have failed alike."""
        self.tried: list[Delivery] = []
        """Those whose outcomes stand here."""
        self.outcomes = outcomes
        """It is not known yet whose failures they are."""


class FailingShard(Protocol):
    """A shard for the time of a visit, as its outages know it."""

    settings: VisitSettings
    pending: PendingOutcomes
    outage: "AlikeFailures | None"
    now: Callable[[], float]

    @property
    def runs(self) -> object:
        """Those that the next settlings keep; None if the queue keeps none."""
        ...


class AlikeFailures:
    """Failures alike in a row. Any other end of an id ends the row."""

    def __init__(self, shard: "FailingShard") -> None:
        self._shard = shard
        self._signature = ""
        self._batches = self._proofs = 0
        self._trials: dict[str, Trial] = {}
        """By the ids that are tried now. Each has a batch to itself, before all others of the claim."""

    def note(self, left: Batches, batch: Sequence[Delivery], result: BatchResult) -> Sequence[Delivery]:
        """Note the result of a batch; the ids that have an outcome now."""
        if result.error is not None and len(batch) == len(result.unattributed) and not result.ended:
            return self._note_whole(left, batch, result, signature(result.error))
        trial = self._trials.pop(batch[0].id, None) if len(batch) == 1 else None
        outcomes = self._shard.pending if trial is None else trial.outcomes
        outcomes.add(batch, result, self._shard.now)
        error = self._error_alike(batch, outcomes)
        if trial is not None:
            trial.tried += batch
        if error is None:
            self._shard.outage = None
            return [*(batch if trial is None else self._end(left, trial)), *self.end_trials(left)]
        return batch if trial is None else self._go_on(left, trial, error)

    def end_trials(self, left: Batches) -> Sequence[Delivery]:
        """Nothing is to be charged any more; the ids that have an outcome now."""
        trials, self._trials = self._trials, {}
        return [delivery for trial in trials.values() for delivery in self._end(left, trial)]

    def hand_over(self) -> Sequence[Delivery]:
        """The next settling takes along the outcomes of tried ids, so that repeats are bounded; these ids."""
        return [delivery for trial in self._trials.values() for delivery in self._hand_over(trial)]

    def _hand_over(self, trial: Trial) -> Sequence[Delivery]:
        self._shard.pending.join(trial.outcomes)
        tried, settings = trial.tried, self._shard.settings
        trial.tried, trial.outcomes = [], PendingOutcomes(settings.worker, settings.texts)
        return tried

    def _note_whole(
        self, left: Batches, batch: Sequence[Delivery], result: BatchResult, alike: str
    ) -> Sequence[Delivery]:
        if alike != self._signature:
            self._signature, self._batches, self._proofs = alike, 0, 0
        self._batches += 1
        shard, settings = self._shard, self._shard.settings
        # A run that is kept has an outcome of its own, and those of a batch and of a trial would share one.
        is_tried = self._batches >= BATCHES and settings.worker.isolate and shard.runs is None
        # Of one that is tried, only the messages are noted.
        shard.pending.add(() if is_tried else batch, result, shard.now)
        if not is_tried:
            return batch
        self._try_next(left, Trial(batch, PendingOutcomes(settings.worker, settings.texts)))
        return ()

    def _error_alike(self, batch: Sequence[Delivery], outcomes: PendingOutcomes) -> bytes | None:
        """The stored error of an id that failed by itself, and alike; else None."""
        record = outcomes.last(batch[0].id) if len(batch) == 1 else None
        at = None if record is None else FAILED_WITH.get(record[1])
        return record[at] if record and at and record[at + 1] == self._signature else None

    def _go_on(self, left: Batches, trial: Trial, error: bytes) -> Sequence[Delivery]:
        """The id that was tried has failed alike."""
        trial.alike += 1
        if trial.alike >= (1 if self._proofs >= PROOFS else ALIKE):
            self._proofs += 1
            trial.outcomes.unblame()
            trial.outcomes.charge(trial.rest, error, self._shard.now())
            return [*self._hand_over(trial), *trial.rest]
        if not trial.rest:
            return self._end(left, trial)
        self._try_next(left, trial)
        return ()

    def _try_next(self, left: Batches, trial: Trial) -> None:
        delivery = trial.rest.pop(0)
        self._trials[delivery.id] = trial
        left.appendleft([delivery])

    def _end(self, left: Batches, trial: Trial) -> Sequence[Delivery]:
        """The outcomes of those that were tried are their own; each of the others runs alone."""
        left.extendleft([delivery] for delivery in reversed(trial.rest))
        return self._hand_over(trial)

"""Looks at a queue, and tells whether it is late, and why. All comes from Redis, so that any process can tell."""

from collections.abc import Sequence
from functools import cached_property, partial
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from lowkiq_lambda.declare.worker import Worker, counts_skew, is_coroutine
from lowkiq_lambda.jobs.auto import Auto
from lowkiq_lambda.jobs.rate import Rate
from lowkiq_lambda.operate.inspect.activity import read_activity
from lowkiq_lambda.operate.inspect.limited_lag import apart
from lowkiq_lambda.operate.inspect.limits import QueueLimits
from lowkiq_lambda.operate.inspect.metrics import queue_metrics
from lowkiq_lambda.operate.inspect.processes import Processes
from lowkiq_lambda.operate.inspect.releases import read_releases
from lowkiq_lambda.operate.inspect.shard_details import shard_details
from lowkiq_lambda.operate.inspect.tuned import calls_now
from lowkiq_lambda.operate.lateness.at_it import Around, at_it
from lowkiq_lambda.operate.lateness.causes import LOOKED, CauseVerdict, judge, judge_moment
from lowkiq_lambda.operate.lateness.hot_ids import read_hot
from lowkiq_lambda.operate.lateness.hours import usual_took
from lowkiq_lambda.operate.lateness.kept import read_hours, read_samples
from lowkiq_lambda.operate.lateness.minutes import Minute, Present
from lowkiq_lambda.operate.lateness.samples import LONGEST, Sample, lag_of, minute_between, moment_of, sample_of
from lowkiq_lambda.operate.lateness.words import LateWords, in_words, lasting
from lowkiq_lambda.store.server.together import Together
from lowkiq_lambda.store.shard.history import LATE
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views.lateness import Lateness
from lowkiq_lambda.views.processes import Process
from lowkiq_lambda.views.queues import QueueMetrics

if TYPE_CHECKING:
    from lowkiq_lambda.core import Core

SHORTEST_WAIT: Final = 2.0
"""Seconds for which ids may wait for a holder, at least, as a daemon looks that often."""
_ACTS: Final = 5
"""Of the activity, which is read with the newest first."""


class Evidence(NamedTuple):
    """The verdict on a late queue, the minutes that are known, what else is known, and its samples, the last of now."""

    verdict: CauseVerdict
    usable: Sequence[Minute]
    present: Present
    samples: Sequence[Sample]


class QueueLook:
    """One look at one queue, whose numbers are known. Each method raises BackendError."""

    def __init__(  # noqa: PLR0913, PLR0917 - what it is of
        self,
        core: "Core",
        reader: ShardReader,
        worker: type[Worker[Any]] | None,
        metrics: QueueMetrics,
        processes: Sequence[Process],
        limit: float = LATE,
    ) -> None:
        self._core, self._reader, self._worker = core, reader, worker
        self._metrics, self._processes, self._limit = metrics, processes, limit
        self._counts = worker is not None and counts_skew(worker, core.config)
        self._layout = reader.shards.layout
        self._live = [reader.shards[number] for number in self._layout.live]
        self.queue = self._live[0].queue_name
        self.now = reader.backend.now(self._live[0])

    @property
    def is_late(self) -> bool:
        """Whether an id has been due for longer than the limit."""
        return lag_of(self._metrics) > self._limit

    def lateness(self, samples: Sequence[Sample] | None = None) -> Lateness:
        """Why it is late, by its samples (None: those that are kept)."""
        lag = lag_of(self._metrics)
        if not self.is_late:
            wait = f"the oldest due id has waited {lasting(lag)}" if lag else "no id is due"
            return Lateness(
                queue=self.queue,
                at=self.now,
                is_late=False,
                lag=lag,
                limit=self._limit,
                cause=None,
                says=f"It is not late: {wait}.",
            )
        return self._told(self.evidence(samples))

    def evidence(self, samples: Sequence[Sample] | None = None) -> Evidence:
        """The minutes and facts that a late queue is judged by, and the verdict. `samples`: None: as kept."""
        backend, retry_for = self._reader.backend, self._reader.retry_for
        late = [shard for shard in self._live if lag_of(self._metrics.shards[shard.number]) > self._limit]
        with Together() as side:
            kept = side.look(read_samples, backend, [self.queue], retry_for) if samples is None else None
            details = side.look(shard_details, self._reader)
            acts = side.look(read_activity, backend, retry_for, [self.queue], _ACTS)
            releases, hours = (
                side.look(read_releases, backend, retry_for),
                side.look(read_hours, backend, self.queue, retry_for),
            )
            hot = (
                side.look(partial(read_hot, counts=self._counts), self._reader, late, self.now)
                if late and not self._layout.is_moving
                else None
            )
        samples = kept.result[0] if kept else samples or ()
        present_sample = sample_of(self.now, self._layout, self._metrics, self._processes, self.queue)
        minutes = self._minutes(samples)
        usable = [minute for minute in minutes if minute is not None]
        fills = [minute.fill for minute in usable if minute.fill]
        around = Around(acts.result, releases.result, self._processes)
        load = hot.result if hot else None
        present = Present(
            limit=self._limit,
            waits=max(2 * self._core.config.poll_interval, SHORTEST_WAIT),
            concurrency=self.concurrency,
            most=self._most,
            shards=len(self._live),
            at_it=at_it(self.now, self._metrics, self._layout, around),
            suspects=sum(details.result[shard.number].suspects for shard in late),
            usual=usual_took(hours.result, self.now, fmean(fills) if fills else None),
            hot=load and load.share,
            hottest=load.hottest if load else "",
            part=load.part if load else 0.0,
            computing=self._computing(samples),
        )
        verdict = judge(minutes, present)
        if not verdict.is_known and verdict.cause is None:
            moment = moment_of(present_sample)
            by_moment = judge_moment(moment, present)
            if by_moment.cause is not None:
                verdict, usable = by_moment, [moment]
        return Evidence(verdict, usable, present, [*samples, present_sample])

    def words(self, evidence: Evidence) -> LateWords:
        """The same in words."""
        verdict, usable, present, _ = evidence
        if verdict.cause == "limits":
            present = msgspec.structs.replace(present, limits=self._limits())
        return in_words(verdict.cause, usable, present, verdict.looked)

    def _told(self, evidence: Evidence) -> Lateness:
        verdict, words = evidence.verdict, self.words(evidence)
        lag, cause = lag_of(self._metrics), "" if verdict.cause else "the cause is not known, as "
        return Lateness(
            queue=self.queue,
            at=self.now,
            is_late=True,
            lag=lag,
            limit=self._limit,
            cause=verdict.cause,
            says=f"The oldest due id has waited {lasting(lag)}: {cause}{words.clause}.",
            evidence=words.evidence,
            advice=words.advice.replace("QUEUE", self.queue),
            minutes=verdict.minutes,
            looked=verdict.looked,
        )

    @cached_property
    def concurrency(self) -> int:
        """Calls of a shard at once, at present, at most. Raises BackendError."""
        return calls_now(self._reader, self._worker)

    @property
    def _most(self) -> int | None:
        """Calls of a shard at once that holders may come to by themselves; None where code fixes them."""
        declared, config = None if self._worker is None else self._worker.concurrency, self._core.config
        if not isinstance(declared, Auto):
            return None
        holding = [one.threads for one in self._processes if any(doing.queue == self.queue for doing in one.doing)]
        # The threads of a holder share its pool, so that with many of them no shard comes to its most.
        threads = max(holding, default=0) or config.threads_per_node
        return min(declared.most, max(1, config.calls_at_once // threads))

    def _minutes(self, samples: Sequence[Sample]) -> list[Minute | None]:
        pairs = pairwise(samples)
        minutes = [minute_between(before, after, self.concurrency) for before, after in pairs]
        if samples and self.now - samples[-1].at > LONGEST:
            # Nobody has kept the minutes since.
            minutes += [None] * LOOKED
        return [*[None] * LOOKED, *minutes][-LOOKED:]

    def _computing(self, samples: Sequence[Sample]) -> float | None:
        """The share of computing in calls of coroutines, by the processes that drain: a thread has several of them.

        None for plain handlers, of which minutes tell it.
        """
        if self._worker is None or not is_coroutine(self._worker):
            return None
        busy = samples[-1].busy - samples[0].busy if samples else 0.0
        # Where that is not known, calls are not said to wait.
        if not samples or busy <= 0 or not samples[-1].cores:
            return 1.0
        return min(1.0, samples[-1].cpu * (samples[-1].at - samples[0].at) / busy)

    def _limits(self) -> str:
        """The limits that count, as code has them."""
        if self._worker is None:
            return ""
        limits, tenant_rate = QueueLimits(self._reader, self._worker).explain(), self._worker.tenant_rate
        parts = [] if limits.max_running is None else [f"max_running = {limits.max_running}"]
        parts += [] if limits.rate is None else [f"rate = {_rate(limits.rate)}"]
        parts += [f"the queue {wait.queue_name}, for which it waits" for wait in limits.blocking]
        parts += [] if tenant_rate is None else [f"tenant_rate = {_rate(tenant_rate)}"]
        return f"the limit {' with '.join(parts)}" if parts else ""


def _rate(rate: Rate) -> str:
    return f"{rate.ids:,} ids in {lasting(rate.per)}"


def look_at(core: "Core", reader: ShardReader, worker: type[Worker[Any]] | None, limit: float = LATE) -> Lateness:
    """Why the queue of the reader is late, if it is. Raises BackendError."""
    with Together() as side:
        metrics = side.look(lambda: next(apart(reader, [worker], queue_metrics(reader, [reader.shards]))))
        processes = side.look(Processes, reader.backend, reader.retry_for)
    return QueueLook(core, reader, worker, metrics.result, processes.result, limit).lateness()

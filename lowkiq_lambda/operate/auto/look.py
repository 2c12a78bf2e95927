"""Looks at a queue with a count of its own: its facts, and what is decided about its shards."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.jobs.auto import Auto
from lowkiq_lambda.operate.auto.facts import AutoFacts, load_of, rises_of
from lowkiq_lambda.operate.auto.kept import KeptAuto
from lowkiq_lambda.operate.auto.memory import Memory
from lowkiq_lambda.operate.auto.rule import Fine, Proposal, Unmoved, decide
from lowkiq_lambda.operate.auto.sizes import pause_of
from lowkiq_lambda.operate.auto.words import line_of, refusal_of
from lowkiq_lambda.operate.lateness.causes import failures
from lowkiq_lambda.operate.lateness.kept import read_hours
from lowkiq_lambda.operate.lateness.look import Evidence, QueueLook
from lowkiq_lambda.operate.lateness.samples import lag_of
from lowkiq_lambda.operate.lateness.words import lasting
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.replicas import Replicas
from lowkiq_lambda.views.auto import AutoDecision
from lowkiq_lambda.views.processes import Process
from lowkiq_lambda.views.queues import QueueMetrics

if TYPE_CHECKING:
    from lowkiq_lambda.core import Core
    from lowkiq_lambda.engine.queue import Queue
    from lowkiq_lambda.operate.lateness.minutes import Minute

Schedules: TypeAlias = Literal["none", "own", "foreign"]
"""Of shards, on AWS: none are needed, this process may make them, or somebody else has to."""
FORECAST_FOR: Final = 600.0
"""Seconds for which a simulation counts, so that a proposal that waits for a yes costs no processor each minute."""
_HOUR: Final = 3_600
_BEGIN: Final = 150.0
"""Seconds of an hour, in which the hours of a queue are read once or twice, for a way back."""


class Decided(NamedTuple):
    """A decision, the facts that it is by, and what is remembered with it."""

    decision: AutoDecision
    verdict: Proposal | Unmoved | Fine | None
    facts: AutoFacts
    memory: Memory


class AutoLook:
    """One look at one such queue. Each method raises BackendError."""

    def __init__(  # noqa: PLR0913, PLR0917 - what it is of
        self,
        core: "Core",
        queue: "Queue",
        metrics: QueueMetrics,
        processes: Sequence[Process],
        kept: KeptAuto,
        schedules: Schedules = "none",
        *,
        any_hour: bool = False,
    ) -> None:
        self._core, self._queue, self._metrics, self._kept = core, queue, metrics, kept
        self._reader = ShardReader(core.backend, core.config.redis_retry_for, queue.shards)
        self._schedules, self._any_hour = schedules, any_hour
        self.now = core.backend.now(queue.shards[0])
        declared = queue.auto or Auto()
        narrowest = kept.bounds_with(declared, self.now)
        self.bounds = narrowest or declared
        self._excludes = narrowest is None
        self._late = QueueLook(core, self._reader, queue.worker, metrics, processes, self.bounds.lag)
        self._lag = lag_of(metrics)
        self._processes = processes
        self._minutes: Sequence[Minute] = ()

    @property
    def name(self) -> str:
        """The queue's."""
        return self._queue.worker.queue_name

    def decided(self) -> Decided:
        """What is decided now."""
        layout = self._queue.shards.layout
        memory = self._kept.remembered.sees(layout, self.now).with_lag(self.now, self._lag).judged(self.now)
        if layout.is_moving:
            facts = AutoFacts(now=self.now, shards=layout.before, bounds=self.bounds)
            done = layout.groups - len(layout.left)
            line = f"moves from {layout.before} to {layout.after} shards, {done} of {layout.groups} groups have moved"
            return Decided(self._decision("moving", line, facts), None, facts, memory)
        facts = self._facts(layout.before, memory)
        if facts.failing:
            memory = replace(memory, failed_at=self.now)
        if self._excludes and facts.is_late:
            return self._told(facts, memory, Unmoved("the apps that declare it exclude each other's bounds"), None)
        is_recent = 0 <= self.now - memory.forecast_at < FORECAST_FOR
        forecasts = dict(memory.forecasts) if is_recent else {}
        before = len(forecasts)
        verdict = decide(facts, memory, self._forecast(forecasts))
        expected, present = None, forecasts.get(facts.shards, 0.0)
        # One that says that the late queue keeps its target does not tell its waits.
        if isinstance(verdict, Proposal) and verdict.to in forecasts and present > self.bounds.lag:
            expected = (present, forecasts[verdict.to])
        if len(forecasts) > before:
            at = memory.forecast_at if before else self.now
            memory = replace(memory, forecasts=tuple(forecasts.items()), forecast_at=at)
        return self._told(facts, memory, verdict, expected)

    def _told(
        self,
        facts: AutoFacts,
        memory: Memory,
        verdict: Proposal | Unmoved | Fine,
        expected: tuple[float, float] | None,
    ) -> Decided:
        if isinstance(verdict, Proposal):
            decision = self._decision("proposal", line_of(facts, verdict, expected), facts, verdict, expected)
        elif isinstance(verdict, Unmoved):
            decision = self._decision("refusal", refusal_of(facts, verdict), facts)
        else:
            wait = f"the oldest due id has waited {lasting(self._lag)}" if self._lag else "no id is due"
            decision = self._decision("nothing", f"keeps its target with {facts.shards} shards: {wait}", facts)
        return Decided(decision, verdict, facts, memory)

    def _decision(
        self,
        answer: Literal["nothing", "refusal", "proposal", "moving"],
        line: str,
        facts: AutoFacts,
        proposal: Proposal | None = None,
        expected: tuple[float, float] | None = None,
    ) -> AutoDecision:
        return AutoDecision(
            queue=self.name,
            at=self.now,
            answer=answer,
            says=line,
            shards=facts.shards,
            to=proposal and proposal.to,
            cause=facts.cause,
            evidence=facts.evidence,
            minutes=facts.minutes,
            looked=facts.looked,
            bars=proposal.bars if proposal else (),
            ids=facts.ids,
            pause=pause_of(facts.ids, facts.shards) if proposal else 0.0,
            expected=expected,
        )

    def _facts(self, shards: int, memory: Memory) -> AutoFacts:
        metrics, config = self._metrics, self._core.config
        common = AutoFacts(
            now=self.now,
            shards=shards,
            bounds=self.bounds,
            mode=config.auto,
            concurrency=self._late.concurrency,
            lag=self._lag,
            ids=metrics.length + metrics.morgue_length,
            length=metrics.length,
            is_held=self._kept.is_held(self.now),
            schedules=self._schedules,
            any_hour=self._any_hour,
        )
        if self._late.is_late:
            return self._late_facts(common, memory)
        if shards % 2 or shards // 2 < self.bounds.least:
            return common
        if self.now % _HOUR > _BEGIN and not self._any_hour:
            return common
        hours = tuple(read_hours(self._core.backend, self.name, config.redis_retry_for))
        facts = replace(common, hours=hours, is_replicated=self._is_replicated(common))
        # Nearly no queue has been quiet for long enough, so what else speaks against it is read last.
        may_move = isinstance(decide(facts, memory, lambda _: None), Proposal)
        return _with_disturbances(facts, self._late.evidence()) if may_move else facts

    def _late_facts(self, common: AutoFacts, memory: Memory) -> AutoFacts:
        evidence = self._late.evidence()
        verdict, usable, present, samples = evidence
        words = self._late.words(evidence)
        self._minutes = usable
        late = usable[-1].late(present.limit) if usable else []
        # Where code fixes how many calls run at once, nothing but shards can give a queue more slots.
        are_fixed = verdict.cause == "slots" and present.most is None
        cause = "shards" if are_fixed else verdict.cause
        return replace(
            _with_disturbances(common, evidence),
            is_late=True,
            cause=cause,
            are_fixed=are_fixed,
            minutes=verdict.minutes,
            looked=verdict.looked,
            clause=words.clause,
            part=present.part,
            evidence=words.evidence,
            rises=rises_of(memory.lags[-len(usable) :] if usable else ()),
            load=load_of(usable, common.concurrency, self._metrics.due),
            busy=fmean(shard.busy for shard in late) if late else 0.0,
            full=(sum(shard.is_full for shard in late), len(late)),
            threads=samples[-1].threads,
            is_replicated=cause != "shards" or self._is_replicated(common),
        )

    def _is_replicated(self, facts: AutoFacts) -> bool:
        """Whether a replica answers; asked only where a move may follow."""
        if facts.mode != "act" or facts.bounds.unreplicated:
            return True
        try:
            return Replicas(self._core.backend, tries=1).answer(self._queue.shards)
        except LowkiqError:
            return False

    def _forecast(self, forecasts: dict[int, float]) -> Callable[[int], float | None]:
        """The waits with so many shards, simulated where they are not in `forecasts`, and noted there."""
        try:
            from lowkiq_lambda.operate.auto.forecast import forecast_of  # noqa: PLC0415 - not in a function's package
        except ModuleNotFoundError:
            return forecasts.get
        config, worker = self._core.config, self._queue.worker
        at_once = self._late.concurrency
        p95 = forecast_of(self._core.backend, worker, at_once, self._minutes, self._processes, config.redis_retry_for)

        def p95_of(shards: int) -> float | None:
            if shards not in forecasts and (waits := p95(shards)) is not None:
                forecasts[shards] = waits
            return forecasts.get(shards)

        return p95_of


def _with_disturbances(facts: AutoFacts, evidence: Evidence) -> AutoFacts:
    """The same, with what keeps a queue as it is."""
    _, usable, present, samples = evidence
    return replace(
        facts,
        at_it=present.at_it,
        failing=any(failures(minute, present) for minute in usable),
        dying=any(after.dead > before.dead for before, after in pairwise(samples)),
    )

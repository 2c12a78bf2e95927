"""When a gathering id is due: the times of its pushes alone say so, whatever happens to it and others (B-7)."""

import math
from collections.abc import Iterator
from itertools import count, pairwise
from typing import Any, ClassVar, Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from lowkiq_lambda import Batch, Config, Debounce, Later, Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import close_app
from tests.kit.examples import examples
from tests.kit.servers import Server
from tests.kit.workers import declare

GATHER: Final = Debounce(2.0, at_most=3.0)
RETRY_IN, LATER = 7.0, 30.0
TICKS: Final = 0.01
"""Seconds that an operator's action may spread ids over."""
IDS: Final = st.sampled_from("abc")
STEPS: Final = st.sampled_from([0.25, 0.5, 1.0, 1.5, 2.0, 8.0])
"""Seconds that floats hold exactly, so that ends meet."""
GAPS: Final = st.lists(st.sampled_from([0.25, 1.0, 1.75]), max_size=3)
"""Between the pushes of a burst."""
FATES: Final = st.dictionaries(IDS, st.sampled_from(["fails", "later", "pushed to", "pushed to and fails"]))
"""What becomes of the ids of a drain; of the others, done."""


def due_by_definition(pushes: list[float]) -> float:
    """The end of the first pause of the pushes that is long enough, and no later than at_most after the first."""
    quiet = [one + GATHER.quiet for one, following in pairwise([*pushes, math.inf]) if following >= one + GATHER.quiet]
    return min(pushes[0] + GATHER.at_most, quiet[0])


class GatheringId:
    """An id that waits: at a time that it was given, or for more pushes."""

    def __init__(self, *pushes: float, at: float | None = None) -> None:
        self.pushes = [*pushes]
        self.at = at
        self.has_failed = False

    @property
    def due(self) -> float:
        """When it is due."""
        return due_by_definition(self.pushes) if self.at is None else self.at


class GatheringMachine(RuleBasedStateMachine):
    """Pushes, drains and operators on a queue that debounces; and what it should be."""

    numbers = count()

    url: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.app = Lowkiq(Config(redis_url=self.url), clock=self.clock)
        self.fates: dict[str, str] = {}
        self.worker = declare(
            self.app,
            f"gathering-{next(self.numbers)}",
            self.perform,
            debounce=GATHER,
            retry_in=lambda _self, _count: RETRY_IN,
        )
        self.waiting: dict[str, GatheringId] = {}
        self.dead: set[str] = set()

    def teardown(self) -> None:
        """No connection is left."""
        close_app(self.app)

    @property
    def now(self) -> float:
        """The time, for all."""
        return self.clock.time()

    def push(self, job_id: str, **fields: Any) -> float:
        """A payload that is like no other."""
        return self.worker.push_many([{"id": job_id, "payload": next(self.numbers), **fields}])[0].due_at

    def perform(self, batch: Batch) -> None:
        """As the fate of the id is."""
        (job_id,) = batch
        fate = self.fates.pop(job_id, "")
        if "pushed to" in fate:
            self.push(job_id)
        if "fails" in fate:
            raise ValueError(fate)
        if fate == "later":
            raise Later(LATER)

    @rule(job_id=IDS, gaps=GAPS, again=st.integers(1, 2))
    def debounce(self, job_id: str, gaps: list[float], again: int) -> None:
        """A burst of pushes, each of one or two jobs."""
        for gap in [*gaps, 0.0]:
            known = self.waiting.setdefault(job_id, GatheringId())
            known.pushes += [self.now] * again
            pushed = self.worker.push_many([{"id": job_id, "payload": next(self.numbers)} for _ in range(again)])

            assert [known.due] * again == [one.due_at for one in pushed]
            self.clock.advance(gap)

    @rule(job_id=IDS, delay=STEPS)
    def plan(self, job_id: str, delay: float) -> None:
        """A job with a time of its own."""
        known = self.waiting.setdefault(job_id, GatheringId(at=self.now + delay))

        assert known.due == self.push(job_id, due_at=self.now + delay)

    @rule(seconds=STEPS)
    def wait(self, seconds: float) -> None:
        """Time goes by."""
        self.clock.advance(seconds)

    @rule(fates=FATES)
    def drain(self, fates: dict[str, str]) -> None:
        """What is due runs, once."""
        due = {job_id: known for job_id, known in self.waiting.items() if known.due <= self.now}
        self.fates = {job_id: fate for job_id, fate in fates.items() if job_id in due}
        for job_id, known in due.items():
            fate = self.fates.get(job_id, "")
            del self.waiting[job_id]
            if "fails" in fate or fate == "later":
                self.waiting[job_id] = GatheringId(at=self.now + (LATER if fate == "later" else RETRY_IN))
                self.waiting[job_id].has_failed = "fails" in fate or known.has_failed
            elif fate == "pushed to":
                self.waiting[job_id] = GatheringId(self.now)

        counts = self.app.drain()

        assert len(due) == sum(counts.get(word, 0) for word in ("done", "failed", "later"))

    @rule()
    def run_now(self) -> None:
        """An operator makes all due, which may move what has just become due by a tick."""
        late = [job_id for job_id, known in self.waiting.items() if known.due >= self.now - TICKS]
        self.app.operate(self.worker).waiting.run_now(everything=True)
        for job in self.app.operate(self.worker).waiting.fetch(late):
            has_failed = self.waiting[job.id].has_failed
            self.waiting[job.id] = GatheringId(at=job.due_at)
            self.waiting[job.id].has_failed = has_failed

            assert self.now - TICKS <= job.due_at <= self.now

    @rule(job_id=IDS)
    def delete(self, job_id: str) -> None:
        """An operator takes the id away."""
        self.app.operate(self.worker).waiting.delete([job_id])
        self.waiting.pop(job_id, None)

    @rule()
    def kill(self) -> None:
        """An operator sends what has failed to the morgue."""
        self.app.operate(self.worker).waiting.kill(everything=True)
        failed = {job_id for job_id, known in self.waiting.items() if known.has_failed}
        self.dead |= failed
        for job_id in failed:
            del self.waiting[job_id]

    @precondition(lambda self: self.dead)
    @rule()
    def requeue(self) -> None:
        """An operator brings it back, and it is due."""
        self.app.operate(self.worker).morgue.requeue(everything=True)
        self.waiting |= {job_id: GatheringId(at=self.now) for job_id in self.dead}
        self.dead.clear()

    @invariant()
    def each_id_is_due_when_it_should_be(self) -> None:
        """The queue has these ids, at these times, and says which of them debounce."""
        queue = self.app.operate(self.worker)
        explained = {job_id: queue.explain(job_id) for job_id in self.waiting}

        assert {job_id: known.due for job_id, known in self.waiting.items()} == {
            job.id: job.due_at for job in queue.waiting.fetch([*"abc"])
        }
        assert {
            job_id: known.pushes[0] + GATHER.at_most if known.at is None and known.due > self.now else None
            for job_id, known in self.waiting.items()
        } == {job_id: one.debounced_until for job_id, one in explained.items()}


@pytest.fixture(scope="module")
def own_queues() -> Iterator[Server]:
    """A server for all of it, as queues have the same names in each run."""
    with Server() as started:
        yield started


@pytest.mark.hypothesis
def test_b7_an_id_is_due_when_its_pushes_say_so(own_queues: Server) -> None:
    """B-7: after any sequence of pushes, drains, failures and operators' actions."""
    GatheringMachine.url = own_queues.url
    run_state_machine_as_test(
        GatheringMachine, settings=settings(max_examples=examples(60), stateful_step_count=20, deadline=None)
    )

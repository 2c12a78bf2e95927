"""dead_head="block" beside a model of a few lines: nothing behind a blocked head runs; order holds (E-79, P2, P3)."""

from collections.abc import Iterator
from itertools import count
from typing import ClassVar, Final, Literal, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from lowkiq_lambda import Batch, Config, Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import close_app
from tests.kit.examples import examples
from tests.kit.looks import ids_of
from tests.kit.servers import Server
from tests.kit.workers import declare

IDS: Final = st.sampled_from("ab")
SCORES: Final = st.integers(1, 4)


class Place(NamedTuple):
    """A payload, which is its number, in its place."""

    score: int
    number: int


class BlockedMachine(RuleBasedStateMachine):
    """Pushes, drains and operators on a queue that holds; and what it should be."""

    numbers = count()
    url: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.app = Lowkiq(Config(redis_url=self.url), clock=self.clock)
        name = f"blocked-{next(self.numbers)}"
        self.worker = declare(self.app, name, self.perform, max_retry_count=0, dead_head="block")
        self.waiting: dict[str, list[Place]] = {}
        self.heads: dict[str, Place] = {}
        self.morgue: dict[str, list[Place]] = {}
        self.failing: set[str] = set()
        self.meanwhile: dict[str, int] = {}
        self.expected: list[tuple[str, list[int]]] = []
        self.ran: list[tuple[str, list[int]]] = []

    def teardown(self) -> None:
        """No connection is left."""
        close_app(self.app)

    def perform(self, batch: Batch) -> None:
        """As the drain's rule says."""
        ((job_id, numbers),) = batch.items()
        self.ran.append((job_id, [*numbers]))
        if job_id in self.meanwhile:
            self.push(job_id, self.meanwhile.pop(job_id))
        if job_id in self.failing:
            raise ValueError(numbers)

    @initialize()
    def hold_one(self) -> None:
        """An id is blocked, with a payload behind its head, and one in the morgue."""
        for how, scores in (("skip", [2]), ("", [1, 3])):
            for score in scores:
                self.push("a", score)
            self.drain(failing={"a"}, meanwhile={})
            if how == "skip":
                self.unblock("a", how)

    @rule(job_id=IDS, score=SCORES)
    def push(self, job_id: str, score: int) -> None:
        """A payload that is like no other."""
        place = Place(score, next(self.numbers))
        self.waiting[job_id] = sorted([*self.waiting.get(job_id, []), place])
        self.worker.push_many([{"id": job_id, "payload": place.number, "score": score}])

    @rule(failing=st.sets(IDS), meanwhile=st.dictionaries(IDS, SCORES))
    def drain(self, failing: set[str], meanwhile: dict[str, int]) -> None:
        """All that is not blocked runs, an id with all of its payloads; if it fails it is blocked, and later pushes."""
        self.clock.advance(1)
        due = {job_id: places for job_id, places in self.waiting.items() if job_id not in self.heads}
        self.waiting = {job_id: places for job_id, places in self.waiting.items() if job_id not in due}
        self.failing = failing
        # What is pushed to an id that is done then runs in the same drain.
        self.meanwhile = {job_id: score for job_id, score in meanwhile.items() if job_id in due.keys() & failing}
        self.expected += [(job_id, [place.number for place in places]) for job_id, places in due.items()]

        self.app.drain()

        for job_id, places in due.items():
            if job_id in failing:
                self.waiting[job_id] = sorted([*self.waiting.get(job_id, []), *places])
                self.heads[job_id] = places[0]

    @rule(job_id=IDS, how=st.sampled_from(["retry", "skip"]))
    def unblock(self, job_id: str, how: Literal["retry", "skip"]) -> None:
        """An operator lets the id go on."""
        head = self.heads.pop(job_id, None)

        changed = self.app.operate(self.worker).unblock([job_id], how)

        self.expected += [] if bool(changed) is (head is not None) else [("unblock", [changed])]
        if head and how == "skip":
            self.send_to_morgue(job_id, [head])

    def send_to_morgue(self, job_id: str, places: list[Place]) -> None:
        """These leave what waits."""
        left = [place for place in self.waiting.pop(job_id) if place not in places]
        if left:
            self.waiting[job_id] = left
        self.morgue[job_id] = sorted([*self.morgue.get(job_id, []), *places])

    @rule(job_id=IDS)
    def delete(self, job_id: str) -> None:
        """An operator takes away all of it."""
        self.app.operate(self.worker).waiting.delete([job_id])
        self.waiting.pop(job_id, None)
        self.heads.pop(job_id, None)

    @rule()
    def kill(self) -> None:
        """An operator sends what has failed to the morgue."""
        self.app.operate(self.worker).waiting.kill(everything=True)
        for job_id in [*self.heads]:
            del self.heads[job_id]
            self.send_to_morgue(job_id, self.waiting[job_id])

    @rule()
    def requeue(self) -> None:
        """An operator brings all of the morgue back, each payload to its place."""
        self.app.operate(self.worker).morgue.requeue(everything=True)
        for job_id, places in self.morgue.items():
            self.waiting[job_id] = sorted([*self.waiting.get(job_id, []), *places])
        self.morgue = {}

    @rule()
    def run_now(self) -> None:
        """An operator makes all due, which changes nothing of what is blocked."""
        self.app.operate(self.worker).waiting.run_now(everything=True)

    @invariant()
    def the_queue_is_as_the_model(self) -> None:
        """Payloads wait in their order or lie in the morgue, these ids are blocked, and these ran."""
        queue = self.app.operate(self.worker)

        assert {job_id: [(one.number, one.score) for one in places] for job_id, places in self.waiting.items()} == {
            job.id: job.payloads for job in queue.waiting.fetch([*"ab"])
        }
        assert {job_id: [(one.number, one.score) for one in places] for job_id, places in self.morgue.items()} == {
            job.id: job.payloads for job in queue.morgue.fetch([*"ab"])
        }
        assert sorted(self.heads) == sorted(ids_of(queue.waiting.blocked()))
        assert sorted(self.expected) == sorted(self.ran)


@pytest.fixture(scope="module")
def own_queues() -> Iterator[Server]:
    """A server for all of it, as queues have the same names in each run."""
    with Server() as started:
        yield started


@pytest.mark.hypothesis
def test_e79_nothing_passes_a_blocked_head(own_queues: Server) -> None:
    """E-79, P2, P3: after any sequence of pushes, failures, unblocks and other actions."""
    BlockedMachine.url = own_queues.url
    run_state_machine_as_test(
        BlockedMachine, settings=settings(max_examples=examples(40), stateful_step_count=20, deadline=None)
    )

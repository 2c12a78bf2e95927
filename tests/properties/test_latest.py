"""merge = "latest" beside a model of a few lines: marks never fall, and no done score of an id does (P2, P3, P7)."""

from collections.abc import Iterator
from itertools import count
from typing import Any, ClassVar, Final, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from lowkiq_lambda import Batch, Config, Lowkiq
from lowkiq_lambda.jobs.job import decode_score
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import close_app
from tests.kit.examples import examples
from tests.kit.servers import Server
from tests.kit.workers import declare, shard_of

IDS: Final = st.sampled_from("abc")
SCORES: Final = st.integers(1, 6)
MEANWHILE: Final = st.dictionaries(IDS, SCORES)
RETRIES: Final = 1
LATER: Final = 30


class Version(NamedTuple):
    """A payload by its place, and how often it has failed."""

    score: int
    number: int
    failures: int = 0


class LatestMachine(RuleBasedStateMachine):
    """Pushes, drains and operators on a queue of versions; and what it should be."""

    numbers = count()
    url: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.app = Lowkiq(Config(redis_url=self.url), clock=self.clock)
        self.worker = declare(
            self.app,
            f"latest-{next(self.numbers)}",
            self.perform,
            merge="latest",
            max_retry_count=RETRIES,
            retry_in=lambda _self, _count: LATER,
        )
        self.waiting: dict[str, Version] = {}
        self.morgue: dict[str, list[Version]] = {}
        self.marks: dict[str, int] = {}
        self.done: list[tuple[str, int]] = []
        self.failing: set[str] = set()
        self.meanwhile: dict[str, int] = {}
        self.superseded = 0
        self.answers: list[tuple[bool, bool]] = []
        """Of each push whether it stays, and whether the queue said so."""

    def teardown(self) -> None:
        """No connection is left."""
        close_app(self.app)

    def perform(self, batch: Batch) -> None:
        """As the drain's rule says, each id at its first run."""
        ((job_id, (number,)),) = batch.items()
        if job_id in self.meanwhile:
            self.push(job_id, self.meanwhile.pop(job_id))
        if job_id in self.failing:
            self.failing.remove(job_id)
            raise ValueError(number)
        self.done.append((job_id, int(batch.job(job_id).scores[0])))

    def put(self, job_id: str, version: Version) -> bool:
        """Whether it is the latest of what waits: then it does."""
        there = self.waiting.get(job_id)
        self.superseded += there is not None
        if there and there[:2] > version[:2]:
            return False
        self.waiting[job_id] = version
        return True

    @rule(job_id=IDS, score=SCORES)
    def push(self, job_id: str, score: int) -> None:
        """A version, which may be late."""
        number = next(self.numbers)
        below = score < self.marks.get(job_id, 0)
        self.superseded += below
        stays = not below and self.put(job_id, Version(score, number))

        (pushed,) = self.worker.push_many([{"id": job_id, "payload": number, "score": score}])

        # Handlers push too, and what they raise is a failure of their job.
        self.answers.append((stays, not pushed.superseded))

    @rule(failing=st.sets(IDS), meanwhile=MEANWHILE)
    def drain(self, failing: set[str], meanwhile: dict[str, int]) -> None:
        """All that waits runs; of some ids it fails, of some a version is pushed while they run."""
        self.clock.advance(LATER)
        running, self.waiting = self.waiting, {}
        self.failing = failing & running.keys()
        failed = {*self.failing}
        self.meanwhile = {job_id: score for job_id, score in meanwhile.items() if job_id in running}

        self.app.drain()

        for job_id in sorted(running):
            self.settle(job_id, running[job_id], has_failed=job_id in failed)

    def settle(self, job_id: str, version: Version, *, has_failed: bool) -> None:
        """What becomes of it, and of what was pushed meanwhile; that runs, if it has not to wait for a retry."""
        if has_failed and version.failures < RETRIES:
            self.put(job_id, version._replace(failures=version.failures + 1))
            return
        if has_failed:
            self.morgue.setdefault(job_id, []).append(version)
        else:
            self.marks[job_id] = max(self.marks.get(job_id, 0), version.score)
        later = self.waiting.pop(job_id, None)
        if later and later.score < self.marks.get(job_id, 0):
            self.superseded += 1
        elif later:
            self.marks[job_id] = max(self.marks.get(job_id, 0), later.score)

    @rule(job_id=IDS)
    def delete(self, job_id: str) -> None:
        """An operator takes away what waits."""
        self.app.operate(self.worker).waiting.delete([job_id])
        self.waiting.pop(job_id, None)

    @rule()
    def kill(self) -> None:
        """An operator sends what has failed to the morgue."""
        self.app.operate(self.worker).waiting.kill(everything=True)
        for job_id in [job_id for job_id, version in self.waiting.items() if version.failures]:
            self.morgue.setdefault(job_id, []).append(self.waiting.pop(job_id))

    @precondition(lambda self: self.morgue)
    @rule()
    def requeue(self) -> None:
        """An operator brings back the newest of each id, unless a newer one waits or was done."""
        self.app.operate(self.worker).morgue.requeue(everything=True)
        for job_id, versions in [*self.morgue.items()]:
            newest = max(versions)
            there = self.waiting.get(job_id)
            if newest.score < self.marks.get(job_id, 0) or (there and there[:2] > newest[:2]):
                continue
            self.put(job_id, newest._replace(failures=0))
            versions.remove(newest)
            if not versions:
                del self.morgue[job_id]

    @invariant()
    def the_queue_is_as_the_model(self) -> None:
        """One payload of an id waits, the morgue has what died, marks are what was done, and never fell."""
        queries, shard = self.app.operate(self.worker), shard_of(self.app, self.worker, "a")
        client: Any = self.app.core.backend.client
        marks: dict[str, int] = {}
        for name in ("marks_even", "marks_odd"):
            for job_id, score in client.hgetall(shard.key(name)).items():
                marks[job_id.decode()] = int(decode_score(score))
        waiting = {job.id: (job.payloads, job.retry_count) for job in queries.waiting.fetch([*"abc"])}

        assert {
            job_id: ([(version.number, version.score)], version.failures - 1)
            for job_id, version in self.waiting.items()
        } == waiting
        assert {job_id: [(v.number, v.score) for v in sorted(of)] for job_id, of in self.morgue.items()} == {
            job.id: job.payloads for job in queries.morgue.fetch([*"abc"])
        }
        assert [] == [answer for answer in self.answers if answer[0] is not answer[1]]
        assert self.marks == marks
        assert self.superseded == int(client.hget(shard.key("meta"), "superseded") or 0)
        for job_id in "abc":
            scores = [score for owner, score in self.done if owner == job_id]
            assert sorted(scores) == scores


@pytest.fixture(scope="module")
def own_queues() -> Iterator[Server]:
    """A server for all of it, as queues have the same names in each run."""
    with Server() as started:
        yield started


@pytest.mark.hypothesis
def test_p3_no_done_score_of_an_id_falls(own_queues: Server) -> None:
    """P3, P7: after any sequence of pushes, drains, failures and operators' actions."""
    LatestMachine.url = own_queues.url
    run_state_machine_as_test(
        LatestMachine, settings=settings(max_examples=examples(50), stateful_step_count=20, deadline=None)
    )

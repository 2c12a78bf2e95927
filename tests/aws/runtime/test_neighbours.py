"""Two healthy queues beside one whose handler calls sys.exit and one whose handler ends its process, in one event."""

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

import pytest

from lowkiq_lambda import Worker
from lowkiq_lambda.engine.outcomes import EXIT_LIMIT
from tests.aws.runtime.function_stage import DRAIN, PLENTY, TICK, FunctionStage
from tests.kit.servers.lambda_outcome import Crashed, Error, Outcome, Result
from tests.kit.servers.lambda_runtime import LambdaEnvironment
from tests.kit.waiting import eventually

APP: Final = "tests.aws.runtime.neighbours:app"
QUEUES: Final = ("exits", "kills", "good", "fine")
JOBS: Final = [f"id-{number}" for number in range(30)]
MAX_CRASHES: Final = 3
LEASE_TTL: Final = 1.0
NOISE: Final = 0.1
"""Seconds by which two clients may differ about what time it is."""


class Neighbours:
    """The four queues, seen from outside, and the functions that know them."""

    def __init__(self, stage: FunctionStage, queue_name: str, **more: object) -> None:
        self._stage = stage
        self._queue_name = queue_name
        self.app = stage.app
        self.workers = {name: self._worker(name) for name in QUEUES}
        settings: dict[str, Any] = {"app": APP, "lease_ttl": LEASE_TTL, **more}
        self.drain = stage.environment(**settings)
        self._ticking = LambdaEnvironment(DRAIN, stage.variables_with(**settings), stage.folder, name="tick")
        self.pushed_at: dict[str, float] = {}

    def _worker(self, name: str) -> type[Worker]:
        fields = {
            "queue_name": f"{self._queue_name}-{name}",
            "shards_count": 1,
            "perform": lambda _self, _batch: None,
        }
        return self.app.worker(type(name, (Worker,), fields))

    def push(self, name: str, *ids: str) -> None:
        """Jobs for one of the queues."""
        self.pushed_at[name] = time.time()
        self.workers[name].push_many([{"id": job_id} for job_id in ids])

    def ages(self) -> dict[str, float]:
        """What the alarm watches, of each queue, by a tick: once no lease of a dead holder lasts."""
        shards = [self.app.core.queues.agreed(worker).shards[0] for worker in self.workers.values()]
        eventually(lambda: "held" not in {state.obstacle for state in self.app.core.drains.drainer.probe(shards)})
        ticked = self._ticking.invoke(TICK, timeout=PLENTY)
        assert isinstance(ticked, Result)
        queues: dict[str, Any] = ticked.value["queues"]
        return {name: queues[f"{self._queue_name}-{name}"]["oldest_due_age"] for name in QUEUES}

    def done(self, name: str) -> int:
        """How many jobs of a queue came to their end."""
        return len(self._stage.told("end", queue=name))

    def finished(self, name: str) -> set[str]:
        """The ids of a queue that came to their end."""
        return {line["id"] for line in self._stage.told("end", queue=name)}

    def began(self, name: str) -> list[float]:
        """The retry_counts with which jobs of a queue began."""
        return [line["retry_count"] for line in self._stage.told("begin", queue=name)]

    def dead(self, name: str) -> dict[str, str | None]:
        """The ids in the morgue of a queue, and their errors."""
        jobs = self.app.operate(self.workers[name]).morgue.list("updated_at", "-inf", "+inf")
        return {job.id: job.error for job in jobs}

    def close(self) -> None:
        """End the environment that ticks."""
        self._ticking.close()

    def push_all(self) -> None:
        """Jobs for each of the queues, those that do harm first."""
        for name, ids in (("exits", ["x"]), ("kills", ["k"]), ("good", JOBS), ("fine", JOBS)):
            self.push(name, *ids)


@pytest.fixture
def neighbours(stage: FunctionStage, queue_name: str) -> Iterator[Neighbours]:
    """The queues, with jobs in them, visited one at a time."""
    with closing(Neighbours(stage, queue_name, threads_per_node=1)) as made:
        made.push_all()
        yield made


def test_p6_neighbours_that_are_visited_at_once_are_done_one_invocation_later(
    stage: FunctionStage, queue_name: str
) -> None:
    """P6: a death amid several visits has many suspects, which come one by one; the next tells whose it was."""
    with closing(Neighbours(stage, queue_name)) as neighbours:
        neighbours.push_all()
        outcomes: list[Outcome] = []
        while not outcomes or not isinstance(outcomes[-1], Result):
            assert len(outcomes) < 30
            outcomes.append(neighbours.drain.invoke({"shard": 0}, timeout=PLENTY))
            neighbours.ages()
            if len(outcomes) == 3:
                # What had ended and was not yet acknowledged has ended twice.
                assert [{*JOBS}] * 2 == [neighbours.finished(name) for name in ("good", "fine")]

        assert 1 + MAX_CRASHES == sum(isinstance(outcome, Crashed) for outcome in outcomes)
        assert (["x"], ["k"]) == (list(neighbours.dead("exits")), list(neighbours.dead("kills")))
        assert [{}, {}] == [neighbours.dead(name) for name in ("good", "fine")]


def test_p6_p9_neighbours_of_what_exits_and_of_what_kills_are_done_and_the_alarm_knows(neighbours: Neighbours) -> None:
    """P6, P9: by the second invocation they are; both bad ids reach the morgue; neither looks young before that."""
    outcomes: list[Outcome] = []
    while not outcomes or not isinstance(outcomes[-1], Result):
        assert len(outcomes) < 30
        outcomes.append(neighbours.drain.invoke({"shard": 0}, timeout=PLENTY))
        now, ages = time.time(), neighbours.ages()
        if len(outcomes) == 2:
            assert [30, 30] == [neighbours.done(name) for name in ("good", "fine")]
        if not neighbours.dead("kills"):
            assert ages["kills"] >= now - neighbours.pushed_at["kills"] - NOISE
        if len(neighbours.began("exits")) < EXIT_LIMIT:
            assert ages["exits"] >= now - neighbours.pushed_at["exits"] - NOISE

    crashes = [outcome for outcome in outcomes if isinstance(outcome, Crashed)]
    exits = [outcome.message for outcome in outcomes if isinstance(outcome, Error)]
    assert (1 + MAX_CRASHES, 2 * EXIT_LIMIT) == (len(crashes), len(neighbours.began("exits")))
    assert all("-exits': SystemExit: 3" in message for message in exits)
    assert [-1.0] * EXIT_LIMIT + [0.0] * EXIT_LIMIT == neighbours.began("exits")
    assert ["x"] == list(neighbours.dead("exits"))
    assert f"The handler exited {EXIT_LIMIT} times in a row" in str(neighbours.dead("exits")["x"])
    assert ["k"] == list(neighbours.dead("kills"))
    assert str(neighbours.dead("kills")["k"]).startswith("crashed")
    assert 60 == neighbours.done("good") + neighbours.done("fine")


def test_p6_neighbours_of_what_exits_are_done_in_the_same_invocation(stage: FunctionStage, queue_name: str) -> None:
    """P6: where nothing kills the process, the first invocation does all that can be done, and names the one shard."""
    with closing(Neighbours(stage, queue_name)) as neighbours:
        neighbours.push("exits", "x")
        for name in ("good", "fine"):
            neighbours.push(name, *JOBS)
        outcome = neighbours.drain.invoke({"shard": 0}, timeout=PLENTY)

        assert [30, 30] == [neighbours.done(name) for name in ("good", "fine")]
        assert isinstance(outcome, Error)
        assert "DrainFailed" == outcome.type
        assert outcome.message.endswith("-exits': SystemExit: 3")

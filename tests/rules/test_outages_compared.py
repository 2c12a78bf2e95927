"""Streams of failures, with and without what outages spare: who dies, who is retried, and how often."""

from collections.abc import Callable
from random import Random

import pytest

from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.engine import outage
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Broken, Notes
from tests.kit.looks import left_behind
from tests.kit.workers import declare, jobs_of

MOST_RETRIES = 1
ROUNDS = MOST_RETRIES + 2
POISON = "poison"
MANY = 90
LONGEST = {"ok": 1, "down": 12, "slow": 12, "in turns": 4, "flapping": 4}
"""Of stretches of ids, in batches: nothing, two outages, both in turns batch by batch, and one that comes and goes."""
KINDS = ("ok", "down", "down", "slow", "in turns", "flapping")


class Stream:
    """Which ids fail with what, in each round: a stretch ends where it ends, in the middle of a batch or not."""

    def __init__(self, seed: int) -> None:
        rng = Random(seed)
        self.size = rng.randint(3, 5)
        self.first: dict[str, str] = {}
        self.poisons: set[str] = set()
        while len(self.first) < MANY:
            kind = rng.choice(KINDS)
            for number in range(rng.randint(1, LONGEST[kind] * self.size)):
                self._add(self._error(kind, number, rng), rng)

    def errors(self, round_number: int) -> Callable[[str], str]:
        """The error of an id, "" for none: all outages but poison are over after the first round."""
        return lambda name: self.first[name] if round_number == 0 or name in self.poisons else ""

    def _error(self, kind: str, number: int, rng: Random) -> str:
        if kind == "in turns":
            return ("down", "slow")[number // self.size % 2]
        if kind == "flapping":
            return rng.choice(("down", "", "down"))
        return "" if kind == "ok" else kind

    def _add(self, error: str, rng: Random) -> None:
        name = f"{len(self.first):03}"
        if rng.random() < 1 / 30:
            # It fails as all others do in an outage, or in its own way.
            self.poisons.add(name)
            error = rng.choice(("down", POISON))
        self.first[name] = error


def drain_rounds(
    app: Lowkiq, clock: ManualClock, queue_name: str, stream: Stream
) -> tuple[list[dict[str, int]], set[str], list[list[str]]]:
    """How many failures each waiting id has after each round, who is dead in the end, and all batches."""
    notes, error_of = Notes(), [stream.errors(0)]

    def then(batch: Batch) -> None:
        if error := next(filter(None, map(error_of[0], batch)), ""):
            raise Broken(error)

    notes.then = then
    worker = declare(app, queue_name, notes, batch_size=stream.size, max_retry_count=MOST_RETRIES)
    worker.push_many(jobs_of(list(stream.first)))
    rounds = []
    for number in range(ROUNDS):
        error_of[0] = stream.errors(number)
        app.drain()
        rounds.append(failures(app, worker))
        clock.advance(1_000)
    assert {} == left_behind(app, worker)
    return rounds, {job.id for job in notes.dead}, notes.ids


def failures(app: Lowkiq, worker: type[Worker]) -> dict[str, int]:
    """Of the ids that wait."""
    return {job.id: int(job.retry_count) + 1 for job in app.operate(worker).waiting.list(limit=1_000)}


@pytest.mark.parametrize("seed", [0, 2, 7, 12])
def test_p6_an_outage_spares_trials_and_costs_nobody_more_than_its_batch(
    app: Lowkiq, clock: ManualClock, queue_name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6, P7: the same ids die, and who fails alone has as many failures.

    Who does not has one more at most, and only in a batch whose first id fails.
    """
    stream = Stream(seed)
    spared, dead, batches = drain_rounds(app, clock, queue_name, stream)
    monkeypatch.setattr(outage, "BATCHES", 1_000_000)
    tried, dead_if_tried, _ = drain_rounds(app, clock, f"{queue_name}-tried", stream)

    assert stream.poisons == dead == dead_if_tried
    failing = {name for name, error in stream.first.items() if error}
    assert [dict.fromkeys(failing, 1)] * 2 == [
        {name: count for name, count in each[0].items() if name in failing} for each in (spared, tried)
    ]
    behind_failing = {name for batch in batches if stream.first[batch[0]] for name in batch}
    assert set(spared[0]) - set(tried[0]) <= behind_failing
    assert set(tried[0]) <= set(spared[0])
    assert {1} == set(spared[0].values())

"""What a queue that lags looks like, by its cause, and which causes twice as many shards would cure."""

from typing import Any, Final, NamedTuple

import msgspec
import pytest

from lowkiq_lambda.simulate import Choice, Outcome, Times, Trace, simulate

MINUTES: Final = 2
CURED: Final = 5.0
"""A cause is cured if p95 is so many times shorter."""


class CauseOfLag(NamedTuple):
    """A queue that lags, and what its shards look like: busy, held, holder-less, and whether more of them help."""

    choice: Choice
    times: Times
    rate: float
    load: dict[str, Any]
    busy: tuple[float, float]
    held: tuple[float, float]
    holderless: tuple[float, float]
    helps: bool


FULL: Final = (0.9, 1.1)
NONE: Final = (0.0, 0.1)
MOSTLY: Final = (0.7, 1.0)
FEW: Final = (0.05, 0.3)
TEN_MS: Final = Times(fixed=0.010)
CASES: Final = {
    "shards": CauseOfLag(Choice(shards=5, threads=20), TEN_MS, 600, {}, FULL, FULL, NONE, helps=True),
    "slots": CauseOfLag(
        Choice(shards=2, threads=20, concurrency=10), Times(fixed=0.050), 480, {}, FULL, FULL, NONE, helps=True
    ),
    "threads": CauseOfLag(Choice(shards=40, threads=5), TEN_MS, 600, {}, FEW, FEW, MOSTLY, helps=False),
    "a tick": CauseOfLag(
        Choice(shards=5, threads=1, compute="minute"), TEN_MS, 60, {}, FEW, FEW, (0.5, 1.2), helps=False
    ),
    "one id": CauseOfLag(
        Choice(shards=5, threads=20),
        Times(fixed=0.005, each_payload=0.010),
        300,
        {"hot": 0.4},
        (0.9, 3.0),
        (0.3, 2.0),
        NONE,
        helps=False,
    ),
    "frequent ids": CauseOfLag(
        Choice(shards=5, threads=20),
        Times(fixed=0.010, each_payload=0.004),
        600,
        {"ids": 1_000, "skew": 1.1},
        (0.9, 1.6),
        (0.7, 1.6),
        NONE,
        helps=True,
    ),
    "processor": CauseOfLag(
        Choice(shards=20, threads=20), Times(fixed=0.010, computing=1.0), 150, {}, FULL, FULL, NONE, helps=False
    ),
}


def outcomes(case: CauseOfLag) -> tuple[Outcome, Outcome]:
    """Of the queue as it is, and with twice as many shards on the same trace."""
    trace = Trace.of_rates([case.rate] * MINUTES, **{"ids": 100_000, **case.load})
    more = msgspec.structs.replace(case.choice, shards=2 * case.choice.shards)
    before, after = (simulate(trace, case.times, choice) for choice in (case.choice, more))
    return before, after


@pytest.mark.parametrize("name", CASES)
def test_a_cause_shows_in_the_shards_and_more_shards_cure_some(name: str) -> None:
    """The busiest shard, the time under a lease and the time without a holder tell the causes apart."""
    case = CASES[name]
    before, after = outcomes(case)
    seconds = before.end

    assert before.p95 > 1.0
    busiest, held = max(before.shards, key=lambda shard: shard.busy), before.held / seconds
    evidence = (busiest.busy / seconds / case.choice.concurrency, held, before.holderless / seconds)
    bounds = (case.busy, case.held, case.holderless)
    assert [True] * 3 == [least <= value <= most for value, (least, most) in zip(evidence, bounds, strict=True)], (
        evidence
    )
    assert case.helps == (after.p95 * CURED < before.p95), (before.p95, after.p95)

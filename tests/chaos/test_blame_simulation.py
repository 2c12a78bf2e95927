"""Who is to blame for a death: thousands of jobs under holders that die at random, and jobs that kill."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import repeat
from random import Random

import pytest

from lowkiq_lambda.job import NEVER_FAILED
from tests.chaos.simulation import WINDOW, Lifetimes, Simulation
from tests.servers import Server

IDS = [str(number) for number in range(2_000)]
ALONE = 3
"""Strikes of a payload that is alone, after which it is buried."""

Simulate = Callable[..., Simulation]
FOR_EVER = partial(repeat, math.inf)


@pytest.fixture
def simulate(server: Server, queue_name: str) -> Iterator[Simulate]:
    """Builds simulations on the test's queue."""
    made: list[Simulation] = []

    def make(lifetimes: Lifetimes, work: Callable[[], float], **options: Callable[[str, object], bool]) -> Simulation:
        made.append(Simulation(server.url, queue_name, lifetimes, work, **options))
        return made[-1]

    yield make
    for simulation in made:
        simulation.close()


def every_now_and_then(rng: Random) -> Lifetimes:
    """About 1.5 s, and more than any job takes."""
    while True:
        yield rng.uniform(0.5, 2.5)


def without_memory(rng: Random) -> Lifetimes:
    """1.5 s in the mean, and often next to nothing."""
    while True:
        yield rng.expovariate(1 / 1.5)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("lives", "longest_job"), [(every_now_and_then, 0.2), (without_memory, 0.05)], ids=["regular", "memoryless"]
)
def test_e50_holders_that_die_at_random_bury_nobody(
    simulate: Simulate, lives: Callable[[Random], Lifetimes], longest_job: float, seed: int
) -> None:
    """E-50: 2,000 jobs in windows of 20, a holder killed every 1.5 s of its time: all are done, and none is buried."""
    rng = Random(seed)
    simulation = simulate(lives(rng), partial(rng.uniform, longest_job / 4, longest_job))

    simulation.run(jobs_of(IDS), most_deaths=2_000)

    runs = Counter(job_id for job_id, _, _ in simulation.begun)
    figures = f"{simulation.deaths} deaths, {runs.total()} runs, at most {max(runs.values())} of one id"
    print(f"\n{lives.__name__}: {figures}")  # noqa: T201 - for pytest -s
    assert simulation.deaths > 20
    assert set(IDS) == {job_id for job_id, _, _ in simulation.ended}
    assert {NEVER_FAILED} == {retry_count for _, _, retry_count in simulation.begun}
    assert {} == simulation.morgue()
    assert (0, 0) == simulation.left()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("lives", [lambda _rng: FOR_EVER(), every_now_and_then], ids=["only the killer", "others too"])
def test_e50_one_id_that_kills_each_time_is_buried_alone_and_soon(
    simulate: Simulate, lives: Callable[[Random], Lifetimes], seed: int
) -> None:
    """E-50, LB-8, P6: the killer runs once in company and three times alone, then it is buried as crashed."""
    rng = Random(seed)
    ids = IDS[:500]
    killer = rng.choice(ids)
    simulation = simulate(lives(rng), partial(rng.uniform, 0.05, 0.2), deadly=lambda job_id, _: job_id == killer)

    simulation.run(jobs_of(ids), most_deaths=2_000)

    runs = Counter(job_id for job_id, _, _ in simulation.begun)
    assert ALONE <= runs[killer] <= 1 + ALONE
    ((buried, (payloads, error)),) = simulation.morgue().items()
    assert (killer, [("v", 1.0)]) == (buried, payloads)
    assert error is not None
    assert error.startswith("crashed")
    assert [killer] == [job.id for job in simulation.buried]
    assert set(ids) - {killer} == {job_id for job_id, _, _ in simulation.ended}
    assert {NEVER_FAILED} == {retry_count for _, _, retry_count in simulation.begun}
    assert (0, 0) == simulation.left()


@pytest.mark.parametrize("deadly", range(8))
def test_e50_of_eight_payloads_only_the_one_that_kills_is_buried(simulate: Simulate, deadly: int) -> None:
    """E-50: halving finds it, wherever it lies; the other seven are performed in order, and so is the company."""
    simulation = simulate(FOR_EVER(), lambda: 0.1, deadly=lambda job_id, payload: ("a", deadly) == (job_id, payload))
    company = [str(number) for number in range(WINDOW - 1)]

    simulation.run([{"id": "a", "payload": n, "score": n} for n in range(8)] + jobs_of(company), most_deaths=20)

    assert deaths_by(deadly, payloads=8) == simulation.deaths
    ((buried, (payloads, error)),) = simulation.morgue().items()
    assert ("a", [(deadly, float(deadly))]) == (buried, payloads)
    assert error is not None
    assert error.startswith("crashed")
    performed = [payload for job_id, payloads, _ in simulation.ended for payload in payloads if job_id == "a"]
    assert [number for number in range(8) if number != deadly] == performed
    assert {"a", *company} == {job_id for job_id, _, _ in simulation.ended}
    assert (0, 0) == simulation.left()


def jobs_of(ids: Sequence[str]) -> list[dict[str, object]]:
    """One job for each id."""
    return [{"id": job_id, "payload": "v", "score": 1} for job_id in ids]


def deaths_by(position: int, *, payloads: int) -> int:
    """How many holders one of an id's payloads kills until it is buried, by the rules.

    One as long as nobody is suspected, then one for each halving of the slice that it is in. A slice that comes to
    its end clears the id, and it begins anew with the payloads that are left.
    """
    deaths = 1
    sliced = payloads
    while position < sliced and sliced > 1:
        deaths += 1
        sliced //= 2
    if position < sliced:
        return deaths + ALONE
    return deaths + deaths_by(position - sliced, payloads=payloads - sliced)

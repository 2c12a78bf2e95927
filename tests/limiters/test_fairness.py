"""The order in which jobs get their turn at a limiter, and how much of the limit they use: as docs/limits.md says."""

import heapq
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

import pytest

from tests.kit.servers import Server
from tests.limiters.asking import Limit, LimiterScript

A_SECOND = 10
JOBS = 400
_ROUNDED = 1e-5


@dataclass
class TurnSimulation:
    """Jobs that all ask in the first second, and come back at their moment or up to `late` seconds later."""

    asking: LimiterScript
    jobs: int
    late: float
    rng: Random
    granted: list[tuple[float, int]] = field(default_factory=list)
    calls: int = 0

    def run(self) -> None:
        """Until each job is granted."""
        due = [(1_000_000.0 + number / self.jobs, number) for number in range(self.jobs)]
        while due:
            now, number = heapq.heappop(due)
            status, *rest = self.asking(now, who=f"job-{number}")
            self.calls += 1
            if status == "OK":
                self.granted.append((now, number))
            else:
                heapq.heappush(due, (now + rest[0] + self.rng.uniform(0.0, self.late), number))

    @property
    def fullest(self) -> int:
        """How many were granted in that window of a second in which most were."""
        times = [at for at, _ in self.granted]
        return max(
            sum(start <= at < start + 1.0 - _ROUNDED for at in times[index : index + 50])
            for index, start in enumerate(times)
        )

    @property
    def displacement(self) -> int:
        """By how many places a job was served sooner or later than it asked, at most."""
        return max(abs(place - number) for place, (_, number) in enumerate(self.granted))

    @property
    def throughput(self) -> float:
        """The share of what the limit allows."""
        return self.jobs / A_SECOND / (self.granted[-1][0] - self.granted[0][0])


class LateJobs(NamedTuple):
    """How late jobs come back, whether free points are kept for elders, and bounds of what comes of it."""

    late: float
    patience: float
    calls: float
    displacement: int
    throughput: float


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(LateJobs(0.0, 0.0, 2.1, A_SECOND - 1, 0.97), id="at their moment"),
        pytest.param(LateJobs(0.3, 0.0, 4.5, 80, 0.88), id="late"),
        pytest.param(LateJobs(2.0, 0.0, 4.5, 180, 0.85), id="later"),
        pytest.param(LateJobs(0.3, 1.0, 4.5, 15, 0.80), id="late, strict"),
        pytest.param(LateJobs(2.0, 1.0, 7.0, 30, 0.50), id="later, strict"),
    ],
)
def test_jobs_are_served_in_the_order_of_asking_among_those_that_are_there(
    server: Server, queue_name: str, case: LateJobs
) -> None:
    """Never more than the limit; each job asks a few times; displacement and throughput have bounds."""
    asking = LimiterScript(server, queue_name, Limit("rate", A_SECOND, 1.0), patience=case.patience)
    simulation = TurnSimulation(asking, JOBS, case.late, Random(7))

    simulation.run()

    assert simulation.fullest <= A_SECOND
    assert simulation.calls / JOBS <= case.calls
    assert simulation.displacement <= case.displacement
    assert simulation.throughput >= case.throughput

"""Holders that die at random: who is healthy never dies, and who kills dies alone, and soon."""

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from lowkiq_lambda import Batch, Config, Lowkiq, Worker
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.engine.survivors import Survivors
from lowkiq_lambda.testing import ManualClock
from tests.chaos.steps import is_empty
from tests.kit.apps import closing_app
from tests.kit.deaths import Died
from tests.kit.examples import mostly_nightly
from tests.kit.order import is_in_order
from tests.kit.servers import Server
from tests.kit.stored import State, stored

JOBS = 2_000
CLAIM_SIZE = 20
LIFE = 1.5
"""Seconds of its own time after which a holder dies, in the mean."""
TTL = 30.0
SECONDS_PER_ID = 0.02
MAX_CRASHES = 3


@dataclass
class Simulation:
    """One shard, and one holder after the other. `killers`: payloads that kill the process that performs them."""

    server: Server
    app: Lowkiq
    clock: ManualClock
    rng: Random
    life: float = math.inf
    killers: set[Any] = field(default_factory=set)
    dies_at: float = math.inf
    deaths: int = 0
    killed: Counter[str] = field(default_factory=Counter)
    begun: dict[str, list[list[Any]]] = field(default_factory=dict)

    def declare(self, queue_name: str) -> type[Worker]:
        """The worker whose handler takes its time, or dies."""
        fields = {"queue_name": queue_name, "shards_count": 1, "batch_size": CLAIM_SIZE}
        handler = {"perform": lambda _self, batch: self.perform(batch)}
        connected = self.app.core.drains.drainer._backend
        run = connected.run

        def run_if_alive(*args: Any, **options: Any) -> Any:  # as Backend.run
            if self.clock.time() >= self.dies_at:
                raise Died
            return run(*args, **options)

        connected.run = run_if_alive  # type: ignore[method-assign]  # a fault is injected
        return self.app.worker(type("Simulated", (Worker,), fields | handler))

    def perform(self, batch: Batch) -> None:
        """Each id takes a while; a killer ends the process."""
        for job_id, payloads in batch.items():
            self.begun.setdefault(job_id, []).append(payloads)
            self.clock.advance(SECONDS_PER_ID)
            if self.killers.intersection(payloads):
                self.killed[job_id] += 1
                self.dies_at = self.clock.time()
            if self.clock.time() >= self.dies_at:
                raise Died

    def run(self) -> State:
        """Holder after holder, until nothing is left."""
        shard = self.app.core.drains.drainer.shards()[0]
        while not is_empty(state := stored(self.server.admin, shard)):
            self.dies_at = self.clock.time() + self.life * self.rng.expovariate(1.0)
            with suppress(Died):
                self.app.core.drains.drainer.visit(shard, Budget(self.clock))
                continue
            self.deaths += 1
            self.app.core.drains.drainer._survivors = Survivors()
            self.clock.advance(TTL + 1.0)
            self.server.admin.delete(shard.key("lease"))
        return state


@pytest.fixture
def simulation(server: Server) -> Iterator[Simulation]:
    """One whose holders live for ever, until the test says otherwise."""
    clock = ManualClock()
    with closing_app(Lowkiq(Config(redis_url=server.url, lease_ttl=TTL), clock=clock)) as app:
        yield Simulation(server, app, clock, Random(0))


@pytest.mark.parametrize("seed", mostly_nightly(range(5), 0))
def test_p6_holders_killed_at_random_kill_nobody(simulation: Simulation, queue_name: str, seed: int) -> None:
    """E-50: 2,000 healthy jobs in claims of 20, a kill every 1.5 s: all are performed, in not much more time."""
    simulation.rng, simulation.life = Random(seed), LIFE
    simulation.declare(queue_name).push_many([{"id": number} for number in range(JOBS)])
    end = simulation.run()
    assert {} == end["morgue"] == end["trouble"]
    assert JOBS == len(simulation.begun)
    assert simulation.deaths > JOBS * SECONDS_PER_ID / LIFE / 2
    assert sum(map(len, simulation.begun.values())) < 1.25 * JOBS


@pytest.mark.parametrize("seed", mostly_nightly(range(3), 0))
def test_p6_an_id_that_kills_dies_alone(simulation: Simulation, queue_name: str, seed: int) -> None:
    """E-50, LB-8: one kill in company and three alone, however many others kill the process meanwhile."""
    simulation.rng, simulation.life = Random(seed), LIFE
    simulation.killers = {"poison"}
    worker = simulation.declare(queue_name)
    worker.push_many([{"id": number, "payload": "poison" if number == 777 else ""} for number in range(JOBS)])
    end = simulation.run()
    assert ["777"] == list(end["morgue"])
    assert simulation.killed["777"] <= 1 + MAX_CRASHES
    assert JOBS == len(simulation.begun)


@pytest.mark.parametrize("killer", range(1, 9))
def test_p6_the_payload_that_kills_is_found_by_halving(simulation: Simulation, queue_name: str, killer: int) -> None:
    """E-50: of an id with eight payloads that one is dead, the others are performed in order."""
    simulation.killers = {killer}
    worker = simulation.declare(queue_name)
    worker.push_many([{"id": "x", "payload": number, "score": number} for number in range(1, 9)])
    worker.push_many([{"id": number} for number in range(50)])
    end = simulation.run()
    assert {"x": [str(killer)]} == {id_: [one.payload for one in dead[2]] for id_, dead in end["morgue"].items()}
    assert is_in_order(simulation.begun["x"])
    assert {} == end["trouble"]
    assert 51 == len(simulation.begun)
    # Eight halve three times; a part that was well clears the suspicion, and the rest is in company once more.
    assert simulation.killed["x"] <= 3 * (1 + MAX_CRASHES)

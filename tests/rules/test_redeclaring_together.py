"""P1, P2, P3: whoever declares a queue anew, and wherever it breaks off, two declarations are never in use at once."""

from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from random import Random

import pytest

from lowkiq_lambda import Batch, Lowkiq, PushInterrupted, QueueMismatch
from lowkiq_lambda.declare.pushable import FunctionWorker
from lowkiq_lambda.store.shard.keys import ShardRef
from tests.kit.apps import MakeApp
from tests.kit.examples import mostly_nightly
from tests.kit.servers import Cluster
from tests.rules.turnstile import Caller

COUNTS = (1, 2, 3)
ENDS = ("the first dies", "the first goes on", "both die")
IDS = "abcd"
STEPS = 8
"""As many as a call of `redeclare` takes between two of these counts."""
TIMEOUT = 2.0
"""Seconds: with a longer one a push into a queue that is being declared anew is tried more often."""
HOLDING = ("jobs", "flight", "morgue")


class World:
    """Processes of three declarations, each of which was the queue's once, and one who may always make it whole."""

    def __init__(self, apps: list[Lowkiq], queue_name: str) -> None:
        self.queue_name = queue_name
        self.pushed: dict[str, list[int]] = defaultdict(list)
        self.performed: dict[str, list[int]] = defaultdict(list)
        self._number = 0
        self._pairs = {count: (app, self.declared(app, count)) for count, app in zip(COUNTS, apps, strict=True)}
        for count in reversed(COUNTS):
            self.become(count)
            self.push()
            self.drain()

    def declared(self, app: Lowkiq, count: int) -> FunctionWorker:
        """A worker that notes what it performs."""

        def note(batch: Batch) -> None:
            for job_id, payloads in batch.items():
                self.performed[job_id] += payloads

        return app.worker(queue_name=self.queue_name, shards_count=count)(note)

    def become(self, count: int) -> None:
        """Give the queue that many shards, and nobody disturbs."""
        app, worker = self._pairs[count]
        app.operate(worker).redeclare()

    def push(self) -> list[int]:
        """One payload more for each id from each process; the counts under which any was accepted."""
        accepted = []
        for count, (_, worker) in self._pairs.items():
            self._number += 1
            jobs = [{"id": job_id, "payload": self._number, "score": self._number} for job_id in IDS]
            try:
                written = list(range(len(worker.push_many(jobs))))
            except PushInterrupted as error:
                written = error.written
            except QueueMismatch:
                written = []
            for position in written:
                self.pushed[IDS[position]].append(self._number)
            if written:
                accepted.append(count)
        return accepted

    def drain(self) -> None:
        """Every process drains what it can."""
        for app, _ in self._pairs.values():
            with suppress(QueueMismatch):
                app.drain()

    def holding(self) -> list[int]:
        """The counts in whose shards any job lies."""
        client = self._pairs[COUNTS[0]][0].core.backend.client
        shards = [ShardRef(self.queue_name, count, index) for count in COUNTS for index in range(count)]
        return sorted({shard.shards_count for shard in shards for name in HOLDING if client.exists(shard.key(name))})

    def act(self, *, leave: bool) -> None:
        """All push, and all drain unless the jobs are to be left; whatever stands, it is under one count."""
        accepted = self.push()
        assert len(accepted) <= 1
        assert len(self.holding()) <= 1
        if not leave:
            self.drain()

    def settle(self, count: int) -> None:
        """One call makes the queue whole again, and all that was accepted has been performed, in order."""
        self.drain()
        assert [] == self.holding()
        self.become(count)
        assert [count] == self.push()
        self.drain()
        assert self.pushed == self.performed
        self.become(COUNTS[0])


class Callers:
    """Three processes of which each may want the queue to have any of the counts."""

    def __init__(self, world: World, make_app: Callable[[], Lowkiq]) -> None:
        apps = [[make_app() for _ in COUNTS] for _ in range(3)]
        self._apps = [dict(zip(COUNTS, each, strict=True)) for each in apps]
        self._workers = [{count: world.declared(app, count) for count, app in each.items()} for each in self._apps]

    def __call__(self, number: int, count: int, *, twice: bool = False) -> Caller:
        """One of them, which has not begun."""
        app, worker = self._apps[number][count], self._workers[number][count]
        return Caller(app.core.backend, lambda: app.operate(worker).redeclare(), twice=twice)


@pytest.fixture
def world(make_app: MakeApp, queue_name: str) -> World:
    """On one server."""
    return World([make_app(redis_timeout=TIMEOUT) for _ in COUNTS], queue_name)


@pytest.fixture
def callers(world: World, make_app: MakeApp) -> Callers:
    """Those who declare its queue anew."""
    return Callers(world, lambda: make_app(redis_timeout=TIMEOUT))


@pytest.mark.parametrize(("end", "other"), mostly_nightly(product(ENDS, COUNTS), *zip(ENDS, COUNTS, strict=True)))
def test_two_who_redeclare_at_once_never_leave_two_counts_in_use(
    callers: Callers, world: World, other: int, end: str
) -> None:
    """P1, P2, P3: one stops after any of its steps, another begins, and stops, with any count; the rest comes late."""
    for first_steps, other_steps in product(range(STEPS), repeat=2):
        first, second = callers(0, 2), callers(1, other)
        leave = first_steps % 2 == 1 and other_steps % 2 == 1
        first.step(first_steps)
        second.step(other_steps)
        world.act(leave=leave)
        if end != "the first goes on":
            first.kill()
        if end == "both die":
            second.kill()
        first.finish()
        world.act(leave=leave)
        second.finish()
        world.settle(COUNTS[(first_steps + other_steps) % len(COUNTS)])


@pytest.mark.parametrize("seed", mostly_nightly(range(4), 0))
def test_three_who_redeclare_in_any_order_never_leave_two_counts_in_use(
    callers: Callers, world: World, seed: int
) -> None:
    """P1, P2, P3: their calls reach the server in any order, some of them twice, and some of them die."""
    disturb(callers, world, Random(seed), rounds=6)


def test_two_counts_are_never_in_use_in_a_cluster_either(make_app: MakeApp, queue_name: str, cluster: Cluster) -> None:
    """P1, P2, P3: there the declaration and the shards lie on several nodes."""

    def make() -> Lowkiq:
        return make_app(redis_url=cluster.url, redis_timeout=TIMEOUT)

    world = World([make() for _ in COUNTS], queue_name)
    disturb(Callers(world, make), world, Random(0), rounds=3)


def disturb(callers: Callers, world: World, chance: Random, rounds: int) -> None:
    """Let three redeclare at once, as chance has it, while all push and drain; each time all comes to its end."""
    for _ in range(rounds):
        counts = chance.choices(COUNTS, k=3)
        at_it = [callers(number, count, twice=chance.random() < 0.5) for number, count in enumerate(counts)]
        while left := [one for one in at_it if not one.is_over]:
            one = chance.choice(left)
            if chance.random() < 0.05:
                one.kill()
            one.step()
            if chance.random() < 0.5:
                world.act(leave=chance.random() < 0.3)
        world.settle(chance.choice(COUNTS))

"""What a test does with a scenario: push, drain to the end, and judge what the journal says."""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.engine.budget import Budget, VisitResult
from lowkiq_lambda.store.shard.keys import ShardRef
from tests.chaos.child import Orders
from tests.chaos.process import Child
from tests.chaos.scenario import Journal, Scenario
from tests.kit.apps import closing_app
from tests.kit.order import is_in_order
from tests.kit.servers import Server
from tests.kit.stored import State, stored
from tests.kit.waiting import eventually

IDS = "abcdefghijklmnopqrst"


@contextmanager
def opened(scenario: Scenario) -> Iterator[Lowkiq]:
    """An app in this process, its connections closed at the end."""
    with closing_app(scenario.app()) as app:
        yield app


def child(
    scenario: Scenario,
    work: str = "visit",
    *,
    stops: Sequence[str] = (),
    jobs: Sequence[Any] = (),
    upgraded: bool = False,
) -> Child:
    """A process that visits the shard or pushes the jobs, and stops at the points."""
    return Child(Orders(scenario, work, list(stops), list(jobs), upgraded=upgraded))


def kill_at(scenario: Scenario, point: str, *, jobs: Sequence[dict[str, Any]] = (), upgraded: bool = False) -> None:
    """A process dies at a point of its visit ("in item 3": the third time), the jobs being pushed just before.

    Its lease has ended when this returns.
    """
    with child(scenario, stops=[point], upgraded=upgraded) as holder:
        holder.wait_at(re.sub(r" \d+$", "", point))
        if jobs:
            push(scenario, jobs)
        holder.kill()
    end_lease(scenario)


def end_lease(scenario: Scenario) -> None:
    """Let the lease of a holder that is gone end now, as its time would end it a while later: nobody has to wait."""
    shard = shard_of(scenario)
    # By a new connection: what the holder sent last has been answered before that is accepted.
    with opened(scenario) as app:
        client: Any = app.core.backend.client
        if client.delete(shard.key("lease")):
            seconds, micros = client.time()
            client.hset(shard.key("meta"), "until", f"{seconds + micros / 1_000_000:.6f}")


def numbered(ids: str | Sequence[str], *numbers: int) -> list[dict[str, Any]]:
    """For each id (each letter, or each word of several) and each number a job with that payload and score."""
    return [{"id": job_id, "payload": number, "score": number} for job_id in ids for number in numbers]


def push(scenario: Scenario, jobs: Sequence[dict[str, Any]]) -> None:
    """Push them from this process; the queue is declared then, also where there are none."""
    with opened(scenario) as app:
        app.push_many(app.workers[0], jobs)


def shard_of(scenario: Scenario, index: int = 0) -> ShardRef:
    """One of its shards."""
    return ShardRef(scenario.queue_name, scenario.shards_count, index)


def state_of(server: Server, scenario: Scenario, index: int = 0) -> State:
    """A shard as it lies in Redis."""
    return stored(server.admin, shard_of(scenario, index))


def visit(app: Lowkiq, seconds: float = 30.0) -> VisitResult:
    """One visit to the first shard."""
    return app.core.drains.drainer.visit(app.core.drains.drainer.shards()[0], Budget(SystemClock(), seconds))


def is_empty(state: State) -> bool:
    """Whether nothing waits and nothing is in flight."""
    return not state["waiting"] and not state["flight"]


def drain_to_the_end(server: Server, scenario: Scenario) -> State:
    """Drain in this process, as soon as leases allow it, until nothing is left; the state then."""
    # What drains here lives: its leases may last, so that a slow machine takes none from it.
    with opened(msgspec.structs.replace(scenario, lease_ttl=10.0)) as app:

        def drained() -> bool:
            app.drain(10.0)
            return all(is_empty(state_of(server, scenario, index)) for index in range(scenario.shards_count))

        eventually(drained, timeout=30.0)
    return state_of(server, scenario)


def wait_until_free(server: Server, scenario: Scenario) -> None:
    """Return when the first shard's lease has ended."""

    def free() -> bool:
        _, until, key = state_of(server, scenario)["lease"]
        seconds, micros = server.admin.time()
        return not key and until <= seconds + micros / 1_000_000

    eventually(free)


def journal_of(scenario: Scenario) -> Journal:
    """What the handlers did."""
    return Journal(Path(scenario.journal))


@contextmanager
def disturbed(scenario: Scenario, batches: Sequence[int], act: Callable[[], object]) -> Iterator[Lowkiq]:
    """An app in whose batches of these numbers, counted from 1, something happens to the server."""
    numbers = itertools.count(1)

    def reach(point: str) -> None:
        if point == "in handler" and next(numbers) in batches:
            act()

    with closing_app(scenario.app(reach)) as app:
        yield app


def when_waiting(app: Lowkiq, act: Callable[[], object]) -> list[float]:
    """Let something happen each time that a call is about to be tried again; how long it would wait."""
    waits: list[float] = []

    def waiting(rest: Callable[[float], object]) -> Callable[[float], None]:
        def wait(seconds: float) -> None:
            waits.append(seconds)
            act()
            rest(seconds)

        return wait

    # Calls under a lease, and pushes.
    for backend in (app.core.drains.drainer._backend, app.core.backend):
        backend._wait = waiting(backend._wait)
    return waits


def check_that_nobody_paid(scenario: Scenario, ends: Sequence[State], *, deliveries: int) -> None:
    """Everything was performed in order, each payload at most so often, and no job is the worse for it."""
    performed = journal_of(scenario).performed()
    assert set(IDS) == performed.keys()
    for executions in performed.values():
        assert is_in_order(executions)
        assert {1, 2} == {number for numbers in executions for number in numbers}
        assert len(executions) <= deliveries
    for end in ends:
        assert is_empty(end)
        assert {} == end["morgue"] == end["trouble"] == end["errors"]
        assert 0 == end["counters"]["retried"] == end["counters"]["dead"]

"""What a test does with a stage: push, drain to the end, and judge what the journal says."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.clock import SystemClock
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.engine.visit import DrainResult
from lowkiq_lambda.store.shard.keys import ShardRef
from tests.apps import close_app
from tests.chaos.child import Orders
from tests.chaos.process import Child
from tests.chaos.stage import Journal, Stage
from tests.properties.observed import State, stored
from tests.servers import Server
from tests.waiting import eventually

IDS = "abcdefghijklmnopqrst"


@contextmanager
def opened(stage: Stage) -> Iterator[Lowkiq]:
    """An app in this process, its connections closed at the end."""
    with closing(stage.app()) as app:
        yield app


@contextmanager
def closing(app: Lowkiq) -> Iterator[Lowkiq]:
    """The app, its connections closed at the end."""
    try:
        yield app
    finally:
        close_app(app)


def child(
    stage: Stage,
    work: str = "visit",
    *,
    stops: Sequence[str] = (),
    jobs: Sequence[Any] = (),
    upgraded: bool = False,
) -> Child:
    """A process that visits the shard or pushes the jobs, and stops at the points."""
    return Child(Orders(stage, work, list(stops), list(jobs), upgraded=upgraded))


def numbered(ids: str, *numbers: int) -> list[dict[str, Any]]:
    """For each id (each letter) and each number a job with that payload and score."""
    return [{"id": job_id, "payload": number, "score": number} for job_id in ids for number in numbers]


def push(stage: Stage, jobs: Sequence[dict[str, Any]]) -> None:
    """Push them from this process; the queue is declared then, also where there are none."""
    with opened(stage) as app:
        app.push(app.workers[0], jobs)


def shard_of(stage: Stage, index: int = 0) -> ShardRef:
    """One of its shards."""
    return ShardRef(stage.queue_name, stage.shards_count, index)


def state_of(server: Server, stage: Stage, index: int = 0) -> State:
    """A shard as it lies in Redis."""
    return stored(server.admin, shard_of(stage, index))


def visit(app: Lowkiq, seconds: float = 30.0) -> DrainResult:
    """One visit to the first shard."""
    return app.drainer.visit(app.drainer.shards()[0], Budget(SystemClock(), seconds))


def is_empty(state: State) -> bool:
    """Whether nothing waits and nothing is in flight."""
    return not state["waiting"] and not state["flight"]


def drain_to_the_end(server: Server, stage: Stage) -> State:
    """Drain in this process, as soon as leases allow it, until nothing is left; the state then."""
    # What drains here lives: its leases may last, so that a slow machine takes none from it.
    with opened(msgspec.structs.replace(stage, lease_ttl=10.0)) as app:

        def drained() -> bool:
            app.drain(10.0)
            return all(is_empty(state_of(server, stage, index)) for index in range(stage.shards_count))

        eventually(drained, timeout=30.0)
    return state_of(server, stage)


def wait_until_free(server: Server, stage: Stage) -> None:
    """Return when the first shard's lease has ended."""

    def free() -> bool:
        _, until, key = state_of(server, stage)["lease"]
        seconds, micros = server.admin.time()
        return not key and until <= seconds + micros / 1_000_000

    eventually(free)


def journal_of(stage: Stage) -> Journal:
    """What the handlers did."""
    return Journal(Path(stage.journal))


def is_in_order(executions: Sequence[Sequence[int]]) -> bool:
    """Whether payloads 1, 2, 3, ... of one id came in order: what was delivered may be again, nothing is skipped."""
    highest = 0
    for payloads in executions:
        first, last = payloads[0], payloads[-1]
        if list(payloads) != list(range(first, last + 1)) or first > highest + 1:
            return False
        highest = max(highest, last)
    return True


@contextmanager
def disturbed(stage: Stage, batches: Sequence[int], act: Callable[[], object]) -> Iterator[Lowkiq]:
    """An app in whose batches of these numbers, counted from 1, something happens to the server."""
    numbers = itertools.count(1)

    def reach(point: str) -> None:
        if point == "in handler" and next(numbers) in batches:
            act()

    with closing(stage.app(reach)) as app:
        yield app


def when_waiting(app: Lowkiq, act: Callable[[], object]) -> list[float]:
    """Let something happen each time that a call under a lease is about to be tried again; how long it would wait."""
    waits: list[float] = []
    connected = app.drainer._backend
    rest = connected._wait

    def wait(seconds: float) -> None:
        waits.append(seconds)
        act()
        rest(seconds)

    connected._wait = wait
    return waits


def check_that_nobody_paid(stage: Stage, ends: Sequence[State], *, deliveries: int) -> None:
    """Everything was performed in order, each payload at most so often, and no job is the worse for it."""
    performed = journal_of(stage).performed()
    assert set(IDS) == performed.keys()
    for executions in performed.values():
        assert is_in_order(executions)
        assert {1, 2} == {number for numbers in executions for number in numbers}
        assert len(executions) <= deliveries
    for end in ends:
        assert is_empty(end)
        assert {} == end["morgue"] == end["trouble"] == end["errors"]
        assert 0 == end["counters"]["retried"] == end["counters"]["buried"]

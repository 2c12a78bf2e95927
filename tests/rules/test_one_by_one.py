"""Batches of one id, one after the other: they share a look at the time, and all that is not about the single id."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from lowkiq_lambda import Batch, BatchJob, Lowkiq
from lowkiq_lambda.base.errors import BatchClosed
from lowkiq_lambda.engine.budget import MOMENT, Budget, VisitResult
from lowkiq_lambda.engine.leased_shard import Claim, LeasedShard
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.testing import ManualClock
from tests.kit.workers import declare

ROOT = Path(__file__).parents[2]
JOBS = 100
MOST_CALLS = 13
"""Of Python functions for a batch, apart from its ids. Think twice before this is raised."""
SPARE = 30
"""Of those that the thread which renews leases and the first looks need."""

FORKING = """
import ctypes, os, sys
from lowkiq_lambda import Worker
from lowkiq_lambda.engine.perform import Performer
from lowkiq_lambda.jobs.job import Delivery, encode_score
from lowkiq_lambda.store.shard.codec import load_json

def fork(place):
    if sys.argv[1:] == [place]:
        if os.fork():
            os.wait()
    elif sys.argv[1:] == ["C " + place]:
        if ctypes.CDLL(None).fork():
            os.wait()

class Forking(Worker):
    queue_name = "forking"

    def __init__(self):
        fork("worker")

    def perform(self, batch):
        fork("handler")

class Context:
    requests = {}

performer = Performer(Forking, lambda handle: handle, load_json, str)
for job_id in "ab":
    performer.run([Delivery(job_id, [encode_score(0.0) + bytes(6) + b"1"], 0.0, -1.0)], Context())
    os.write(1, job_id.encode())
"""


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[LeasedShard]:
    """The shard of each look at the time."""
    shards: list[LeasedShard] = []
    look = LeasedShard.look_holds_for

    def noting(shard: LeasedShard, claim: Claim) -> float:
        shards.append(shard)
        return look(shard, claim)

    monkeypatch.setattr(LeasedShard, "look_holds_for", noting)
    return shards


def nothing(*_arguments: object) -> None:
    """A handler."""


def push(app: Lowkiq, queue_name: str, handler: Callable[[Batch], object], **fields: object) -> None:
    """A worker of one shard with its jobs; the pace of its batches is known from an earlier drain."""
    worker = declare(app, queue_name, handler, **fields)
    worker.push_many([{"id": "first"}])
    app.drain()
    worker.push_many([{"id": f"job {number:03}"} for number in range(JOBS)])


def visit(app: Lowkiq, clock: ManualClock, seconds: float = 1_000.0) -> VisitResult:
    """A visit to the one shard."""
    drainer = app.core.drains.drainer
    return drainer.visit(drainer.shards()[0], Budget(clock, seconds))


def calls_in(call: Callable[[], object]) -> int:
    """How many Python functions are called in it by this thread."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("kind", ["perform", "perform_job"])
def test_a_batch_costs_few_calls(app: Lowkiq, clock: ManualClock, queue_name: str, kind: str) -> None:
    """So many Python functions are called for each batch, with the handler and four looks at the test's clock."""
    calls = []
    for batch_size in (1, 10):
        name = f"{queue_name}-{batch_size}"
        push(app, name, nothing, batch_size=batch_size, **({kind: nothing} if kind == "perform_job" else {}))
        shard = ShardRef(name, 1, 0)
        calls.append(calls_in(partial(app.core.drains.drainer.visit, shard, Budget(clock))))

    assert calls[0] - calls[1] <= MOST_CALLS * (JOBS - JOBS // 10) + SPARE


@pytest.mark.parametrize(("takes", "batches"), [(0.0, JOBS), (MOMENT / 4, 4), (MOMENT, 1)])
def test_p5_a_look_at_the_time_holds_for_a_moment(
    app: Lowkiq, clock: ManualClock, looks: list[LeasedShard], takes: float, batches: int
) -> None:
    """P1, P5: lease and budget are looked at again as soon as a millisecond is over, however little a batch takes."""
    push(app, f"moments-{batches}", lambda _batch: clock.advance(takes), batch_size=1)
    looks.clear()

    assert JOBS == visit(app, clock).counts["done"]

    assert JOBS // batches <= len(looks) <= JOBS // batches + 1


def test_p1_no_batch_begins_after_a_freeze(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P1: the machine stood still for as long as the lease lasts, and its monotonic clock with it."""
    begun: list[str] = []

    def handle(batch: Batch) -> None:
        begun.extend(batch)
        if "job 049" in batch:
            clock.set_wall(clock.time() + app.config.lease_ttl)

    push(app, queue_name, handle, batch_size=1)
    result = visit(app, clock)

    assert "lease lost" == result.reason
    assert "job 049" == begun[-1]


@pytest.mark.parametrize("reason", ["lease lost", "stopping", "paused"])
def test_what_comes_between_two_batches_is_seen_at_once(
    app: Lowkiq, clock: ManualClock, queue_name: str, looks: list[LeasedShard], reason: str
) -> None:
    """P1: the time has not moved, but the lease is lost, the process is to stop, or an operator pauses the queue."""
    begun: list[str] = []

    def handle(batch: Batch) -> None:
        begun.extend(batch)
        if "job 049" in batch and reason == "lease lost":
            looks[-1].lease.lose()
        elif "job 049" in batch and reason == "paused":
            looks[-1].session.stop_request = "paused"

    push(app, queue_name, handle, batch_size=1)
    drainer = app.core.drains.drainer
    budget = Budget(clock, stopping=lambda: reason == "stopping" and "job 049" in begun)
    result = drainer.visit(drainer.shards()[0], budget)

    assert reason == result.reason
    assert "job 049" == begun[-1]


def test_a_batch_is_of_its_handler_alone(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Each id has its own batch, which is closed when the next one begins."""
    before: list[Batch] = []
    refused: list[str] = []

    def handle(batch: Batch) -> None:
        for other in before[-1:]:
            try:
                other.done(*other)
            except BatchClosed:
                refused.extend(other)
        before.append(batch)

    push(app, queue_name, handle, batch_size=1)

    assert JOBS == visit(app, clock).counts["done"]
    assert JOBS == len(refused)
    assert JOBS + 1 == len({job_id for batch in before for job_id in batch})


def test_jobs_are_equal_by_what_is_known_of_them(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A job is a value: it does not change, and the batch that has it is no part of it."""
    jobs: list[BatchJob] = []
    push(app, queue_name, lambda batch: jobs.extend(batch.job(job_id) for job_id in [*batch, *batch]), batch_size=1)
    visit(app, clock)

    one, same, other = jobs[-4], jobs[-3], jobs[-2]
    assert one == same
    assert one != other
    assert "batch" not in repr(one)
    assert repr(one.id) in repr(one)
    with pytest.raises(AttributeError):
        one.id = "another"  # type: ignore[misc]  # the type says so, too


@pytest.mark.parametrize("place", ["handler", "C handler", "worker"])
def test_p1_a_child_that_a_bare_handler_forks_performs_nothing_more(place: str) -> None:
    """P1: without a middleware there is one guard around worker and handler, and no child gets beyond it."""
    command = [sys.executable, "-c", FORKING, place]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=True)

    assert b"ab" == ended.stdout

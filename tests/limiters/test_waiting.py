"""How long a job waits for a limiter, here and now, before it is put off."""

import threading
from collections.abc import Callable
from typing import Any, Final

import pytest

from lowkiq_lambda import BatchJob, Concurrent, LimitExceeded, Lowkiq, Rate, Worker
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.limiters.limiter import Limiter
from lowkiq_lambda.testing import ManualClock
from tests.kit.limiting import LimitedRuns, not_called
from tests.kit.servers import Server
from tests.kit.workers import declare
from tests.limiters.asking import Limit, LimiterScript

LIMITS: Final[tuple[Concurrent | Rate, ...]] = (Concurrent(1, hold=60), Rate(1, per=60))


def waiting(limiter: Limiter, seconds: float) -> Callable[[str], object]:
    """What a job asks that waits for so long."""
    return lambda _: limiter.acquire(wait=seconds)


def blocking(limiter: Limiter) -> Callable[[Worker, BatchJob], Any]:
    """A handler that takes one."""

    def perform_job(_self: Worker, _job: BatchJob) -> None:
        limiter.acquire()

    return perform_job


def awaiting(limiter: Limiter) -> Callable[[Worker, BatchJob], Any]:
    """A handler that takes one on its event loop."""

    async def perform_job(_self: Worker, _job: BatchJob) -> None:
        await limiter.aacquire()

    return perform_job


@pytest.mark.parametrize("taking", [blocking, awaiting])
def test_a_job_waits_five_seconds_for_a_place_and_not_for_points(
    app: Lowkiq, clock: ManualClock, queue_name: str, taking: Callable[[Limiter], Callable[[Worker, BatchJob], Any]]
) -> None:
    """In one call of its handler; after that it is put off."""
    cases: list[tuple[Concurrent | Rate, str, float]] = [
        (Concurrent(1, hold=3), "done", 3.0),
        (Concurrent(1, hold=60), "later", 5.0),
        (Rate(1, 3), "later", 0.0),
    ]
    for number, (limit, outcome, seconds) in enumerate(cases):
        limiter = app.limiter(f"{queue_name}-{number}", limit)
        worker = declare(app, limiter.name, not_called, perform_job=taking(limiter))
        limiter.acquire()
        began = clock.time()
        worker.push("a")

        assert {outcome: 1} == app.drain()

        assert seconds == pytest.approx(clock.time() - began, abs=0.3)


def test_outside_of_jobs_a_place_is_waited_for_as_long(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Five seconds by default; `try_acquire`, and a wait of none, never wait."""
    limiter = app.limiter(queue_name, Concurrent(1, hold=60))
    limiter.acquire()
    began = clock.time()

    assert not limiter.try_acquire()
    with pytest.raises(LimitExceeded):
        limiter.acquire(wait=0)
    assert began == clock.time()
    with pytest.raises(LimitExceeded):
        limiter.acquire()

    assert 5.0 == pytest.approx(clock.time() - began)
    assert 0 == limiter.explain().waiting


def test_no_wait_is_longer_than_the_budget(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """What is left of the drain's time bounds it; then the job is put off, and has its ticket."""
    for number, limit in enumerate(LIMITS):
        limiter = app.limiter(f"{queue_name}-{number}", limit)
        runs = LimitedRuns(app, limiter.name, waiting(limiter, 50))
        limiter.acquire()
        began = clock.time()
        runs.worker.push("a")

        assert {"later": 1} == app.drain(2)

        assert 2.0 == pytest.approx(clock.time() - began, abs=0.1)
        assert 1 == limiter.explain().waiting


def test_a_wait_ends_when_the_batch_must_stop(
    app: Lowkiq, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process stops while its job waits: the job is put off, and takes no place that has become free."""
    for number, limit in enumerate(LIMITS):
        limiter, stop, rests = app.limiter(f"{queue_name}-{number}", limit), threading.Event(), list[float]()
        runs = LimitedRuns(app, limiter.name, waiting(limiter, 600))
        grant = limiter.acquire()
        runs.worker.push("a")

        def rest(seconds: float, *, grant: Any = grant, rests: list[float] = rests, stop: Any = stop) -> None:
            clock.advance(seconds)
            rests.append(seconds)
            if len(rests) == 3:
                grant.give_back()
                stop.set()

        with monkeypatch.context() as patching:
            patching.setattr(clock, "sleep", rest)
            result = app.core.drains.drainer.visit(
                app.core.queues.agreed(runs.worker).shards[0], Budget(clock, stopping=stop.is_set)
            )

        assert ({"later": 1}, []) == (result.counts, runs.ran)
        assert [0.1, 0.1, 0.1] == pytest.approx(rests)
        assert 1 == limiter.explain().left


@pytest.mark.parametrize(("held", "line"), [(0.2, [0.2, 0.4, 0.6]), (0.01, [0.1] * 3), (9.0, [1.0, 2.0, 3.0])])
def test_who_is_put_off_comes_back_when_the_places_ahead_are_free(
    server: Server, queue_name: str, held: float, line: list[float]
) -> None:
    """By the mean time for which places were held lately, a second at most; a tenth of a second later at least."""
    asking, now = LimiterScript(server, queue_name, Limit("concurrent", 2, 30.0)), 1_000_000.0
    for number in range(30):
        asking(now, nonce=f"place-{number}")
        asking(now + held, op="give", nonce=f"place-{number}", date=now)
        now += held
    for nonce in "ab":
        assert "OK" == asking(now, nonce=nonce)[0]

    told = [asking(now, who=str(number))[1] for number in range(6)]

    assert line == pytest.approx(told[::2], abs=0.02)
    assert line == pytest.approx(told[1::2], abs=0.02)

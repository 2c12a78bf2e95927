"""The simulation beside the engine: the same pushes, a real daemon or real drains."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import fmean, pstdev
from typing import Any, Final, NamedTuple

import pytest

from lowkiq_lambda import Batch, Config, Lowkiq, Worker
from lowkiq_lambda.local.daemon import Daemon
from lowkiq_lambda.simulate import Choice, Times, Trace, simulate
from tests.kit.apps import closing_app
from tests.kit.waiting import eventually
from tests.kit.workers import declare

SECONDS: Final = 5
LONGER: Final = 20
"""Seconds of a run in the night: where each call takes another time, p95 of five varies by a quarter by itself."""
WARMING: Final = 100
"""Jobs before the first that counts."""
OTHERS: Final = pytest.mark.nightly("one of these runs is part of each check")
PERIOD: Final = 2.0
"""Seconds between two drains, where a schedule starts them."""
MOST_WRONG: Final = 0.25
LEAST_WRONG: Final = 0.005
"""By so much of p95, or by so many seconds, the simulation may be wrong: whichever is more."""


class RealRun(NamedTuple):
    """A queue, what is pushed, and how long calls take."""

    choice: Choice
    times: Times
    rate: float
    load: dict[str, Any]


RUNS: Final = {
    "shards": RealRun(Choice(shards=5, threads=5), Times(fixed=0.010), 300, {}),
    "one id": RealRun(
        Choice(shards=5, threads=5), Times(fixed=0.020, each_payload=0.001, spread=0.5), 120, {"hot": 0.3}
    ),
    "side by side": RealRun(Choice(shards=2, threads=5, concurrency=10), Times(fixed=0.050, spread=0.5), 200, {}),
    "few threads": RealRun(Choice(shards=20, threads=3, batch=5), Times(fixed=0.010), 200, {}),
    "a tick": RealRun(
        Choice(shards=5, threads=1, batch=20, compute="minute", period=PERIOD, cold_start=0.0),
        Times(fixed=0.004),
        60,
        {"ids": 500},
    ),
    "overload": RealRun(Choice(shards=4, threads=5), Times(fixed=0.010), 440, {}),
}


class MeasuredCalls:
    """A handler that sleeps, and notes how long its payloads had waited, and how long its calls took."""

    def __init__(self, times: Times) -> None:
        self.waits: list[float] = []
        self.took: list[tuple[int, float]] = []
        self._times = times
        self._rng = random.Random(5)

    def forget(self) -> None:
        """As if it had not been called."""
        self.waits, self.took = [], []

    def __call__(self, batch: Batch) -> None:
        """The handler."""
        begun = time.monotonic()
        pushed = [payload for payloads in batch.values() for payload in payloads]
        self.waits += [begun - at for at in pushed]
        seconds = self._times.of(len(batch), len(pushed))
        if self._times.spread:
            seconds *= self._rng.lognormvariate(-(self._times.spread**2) / 2, self._times.spread)
        threading.Event().wait(seconds)
        self.took.append((len(pushed), time.monotonic() - begun))


@contextmanager
def draining(app: Lowkiq, choice: Choice, begins_at: float) -> Iterator[None]:
    """The daemon; or a drain in each period, from the middle of the first on."""
    if choice.compute == "daemon":
        with Daemon(app):
            yield
        return
    over = threading.Event()

    def tick() -> None:
        at = begins_at + PERIOD / 2
        while not over.wait(max(0.0, at - time.monotonic())):
            app.drain()
            at += PERIOD

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def push_all(worker: type[Worker], trace: Trace, begins_at: float) -> Trace:
    """Push at the times of the trace; the trace as it was pushed, for a machine that was late for it."""
    waits, rows = threading.Event(), []
    for at, number in zip(trace.at, trace.ids, strict=True):
        waits.wait(max(0.0, begins_at + at - time.monotonic()))
        pushed_at = time.monotonic()
        worker.push(str(number), pushed_at)
        rows.append((pushed_at - begins_at, number, 1))
    return Trace.of_rows(rows)


def warm_up(app: Lowkiq, worker: type[Worker], handler: MeasuredCalls) -> None:
    """What a process does once, such as to send its scripts, is over: of five seconds it would be what p95 shows."""
    for number in range(WARMING):
        worker.push(f"first-{number}", time.monotonic())
    app.drain()
    handler.forget()


def as_measured(handler: MeasuredCalls, times: Times) -> Times:
    """The times that the handler really took: sleeps are longer than they are asked to be, on a busy machine more."""
    factors = [seconds / times.of(1, payloads) for payloads, seconds in handler.took]
    return times.scaled(fmean(factors)) if pstdev(factors) < 2 else times


def p95s_of(run: RealRun, seconds: int, server_url: str, queue_name: str) -> tuple[float, float]:
    """p95 of a run of the engine, and of the simulation of the same pushes with the times that calls took."""
    choice, handler = run.choice, MeasuredCalls(run.times)
    fields = {"shards_count": choice.shards, "batch_size": choice.batch, "concurrency": choice.concurrency}
    with closing_app(Lowkiq(Config(redis_url=server_url, threads_per_node=choice.threads))) as app:
        worker = declare(app, queue_name, handler, **fields)
        warm_up(app, worker, handler)
        begins_at = time.monotonic() + 0.5
        with draining(app, choice, begins_at):
            trace = push_all(worker, Trace.of_rates([run.rate], float(seconds), **run.load), begins_at)
            eventually(lambda: len(handler.waits) == trace.jobs)
    real = sorted(handler.waits)[int(0.95 * len(handler.waits))]
    return real, simulate(trace, as_measured(handler, run.times), choice).p95


@pytest.mark.parametrize(
    ("name", "seconds"), [("a tick", SECONDS), *(pytest.param(name, LONGER, marks=OTHERS) for name in RUNS)]
)
def test_the_simulation_is_near_to_the_engine(server_url: str, queue_name: str, name: str, seconds: int) -> None:
    """p95 of what waits is within a quarter of the engine's, or 5 ms: on a busy machine in one of three runs."""
    pairs: list[tuple[float, float]] = []
    while not any(abs(real - simulated) <= max(LEAST_WRONG, MOST_WRONG * real) for real, simulated in pairs):
        assert len(pairs) < 3, pairs
        pairs.append(p95s_of(RUNS[name], seconds, server_url, f"{queue_name}-{len(pairs)}"))

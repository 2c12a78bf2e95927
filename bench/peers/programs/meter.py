"""What the programs of all Python peers share: the load, the handlers, and the report of what the jobs took.

It imports Python's own library alone, as it runs in the environments of the peers.
"""

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Final

URL: Final = os.environ["BENCH_URL"]
JOBS: Final = int(os.environ["BENCH_JOBS"])
WAIT: Final = float(os.environ["BENCH_WAIT"])
"""Seconds that a handler waits; 0: it does nothing."""
AT_ONCE: Final = 1_000
"""Jobs in a call, where a peer has a call for many."""
IN_FLIGHT: Final = 20
"""Calls at the same time, where a peer has coroutines for one job."""


def setting(name: str) -> str:
    """One of those that are tried."""
    return os.environ[f"BENCH_{name.upper()}"]


def calls() -> Iterator[list[str]]:
    """The payloads of all jobs, as many at a time as a call takes."""
    for start in range(0, JOBS, AT_ONCE):
        yield [str(number) for number in range(start, min(start + AT_ONCE, JOBS))]


@contextmanager
def pushing() -> Iterator[None]:
    """What the block takes is reported."""
    began = _now()
    yield
    _report(began)


def push_one_by_one(push: Callable[[str], object]) -> None:
    """For a peer that has no call for many jobs."""
    with pushing():
        for payloads in calls():
            for payload in payloads:
                push(payload)


async def push_side_by_side(push: Callable[[str], Awaitable[object]]) -> None:
    """For a peer that has no call for many jobs, but coroutines."""
    payloads = (payload for call in calls() for payload in call)

    async def lane() -> None:
        for payload in payloads:
            await push(payload)

    with pushing():
        await asyncio.gather(*(lane() for _ in range(IN_FLIGHT)))


class _Meter:
    """From the beginning of the first call of a handler to the end of the last."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._left = JOBS
        self._began: tuple[float, ...] = ()

    def begin(self) -> None:
        if not self._began:
            with self._lock:
                self._began = self._began or _now()

    def end(self, jobs: int) -> None:
        with self._lock:
            self._left -= jobs
            if self._left == 0:
                _report(self._began)


_meter: Final = _Meter()


def work(jobs: int = 1) -> None:
    """What a handler does for so many jobs."""
    _meter.begin()
    if WAIT:
        time.sleep(WAIT)
    _meter.end(jobs)


async def work_async(jobs: int = 1) -> None:
    """The same as a coroutine."""
    _meter.begin()
    if WAIT:
        await asyncio.sleep(WAIT)
    _meter.end(jobs)


def blank(_payload: str) -> None:
    """A handler."""
    work()


async def blank_async(_payload: str) -> None:
    """A handler that is a coroutine."""
    await work_async()


def _now() -> tuple[float, ...]:
    return time.perf_counter(), time.process_time()


def _report(began: tuple[float, ...]) -> None:
    seconds, processor = (after - before for after, before in zip(_now(), began, strict=True))
    report = Path(os.environ["BENCH_REPORT"])
    whole = report.with_suffix(".part")
    whole.write_text(json.dumps({"seconds": seconds, "processor": processor}))
    whole.replace(report)

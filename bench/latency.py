"""Idle latency: from the call of push_many to the handler, one job at a time into an idle daemon.

The daemon runs here, the program that pushes in a process of its own; both read the machine's monotonic clock. Beside
it stands a list of the same server, with the same rests: from the call of redis-py's LPUSH to the return of its BRPOP.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Event
from typing import Any, Final

import redis

from bench.away import away
from bench.blank import Load, declare
from lowkiq_lambda import Batch
from lowkiq_lambda.local.daemon import Daemon

WARM_UP: Final = 5
"""Jobs at first that are not counted: connections are made, scripts loaded."""
_TIMEOUT: Final = 60.0
_LIST: Final = "handover"


def latencies(url: str, load: Load, trials: int) -> list[float]:
    """Seconds that each of the jobs waited."""
    found: list[float] = []
    finished = Event()

    def note(batch: Batch) -> None:
        now = time.monotonic()
        found.extend(now - pushed_at for payloads in batch.values() for pushed_at in payloads)
        if len(found) == WARM_UP + trials:
            finished.set()

    app, _ = declare(url, load, note)
    with Daemon(app):
        away(push_one_by_one, url, load, WARM_UP + trials)
        if not finished.wait(_TIMEOUT):
            raise TimeoutError(f"{len(found)} of {WARM_UP + trials} jobs were handled.")
    return found[WARM_UP:]


def handovers(url: str, trials: int) -> list[float]:
    """Seconds that each of so many elements of a list took to a client that waits for it."""
    client = redis.Redis.from_url(url, socket_timeout=2 * _TIMEOUT)
    with client, ThreadPoolExecutor(1) as waiting:
        received = waiting.submit(_receive, client, WARM_UP + trials)
        away(lpush_one_by_one, url, WARM_UP + trials)
        return received.result()[WARM_UP:]


def lpush_one_by_one(url: str, elements: int) -> None:
    """Push elements, each the time of its push, with the rests of `push_one_by_one`."""
    with redis.Redis.from_url(url) as client:
        for rest in _rests(elements):
            time.sleep(rest)
            client.lpush(_LIST, repr(time.monotonic()))


def _receive(client: redis.Redis, elements: int) -> list[float]:
    seconds: list[float] = []
    while len(seconds) < elements:
        answer = client.brpop([_LIST], timeout=_TIMEOUT)
        now = time.monotonic()
        if answer is None:
            raise TimeoutError(f"{len(seconds)} of {elements} elements came.")
        seconds.append(now - float(answer[1]))
    return seconds


def push_one_by_one(url: str, load: Load, jobs: int) -> None:
    """Push single jobs, each with the time of its push, with rests in between that have no rhythm."""
    _, worker = declare(url, load, lambda _batch: None)
    for number, rest in enumerate(_rests(jobs)):
        time.sleep(rest)
        job: dict[str, Any] = {"id": number, "payload": time.monotonic()}
        worker.push_many([job])


def _rests(count: int) -> Iterator[float]:
    rng = Random(count)
    return (rng.uniform(0.02, 0.06) for _ in range(count))

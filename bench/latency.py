"""Idle latency: from the call of perform_async to the handler, one job at a time into an idle daemon.

The daemon runs here, who pushes in a process of its own; both read the machine's monotonic clock. Beside it a PING
after the same rests: what the machine takes to wake a server that sleeps, and its client, once.
"""

import time
from collections.abc import Iterator
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


def pings(client: redis.Redis, trials: int) -> list[float]:
    """Seconds that each of so many PINGs took."""
    found: list[float] = []
    for rest in _rests(trials):
        time.sleep(rest)
        asked_at = time.monotonic()
        client.ping()
        found.append(time.monotonic() - asked_at)
    return found


def push_one_by_one(url: str, load: Load, jobs: int) -> None:
    """Push single jobs, each with the time of its push, with rests in between that have no rhythm."""
    _, worker = declare(url, load, lambda _batch: None)
    for number, rest in enumerate(_rests(jobs)):
        time.sleep(rest)
        job: dict[str, Any] = {"id": number, "payload": time.monotonic()}
        worker.perform_async([job])


def _rests(count: int) -> Iterator[float]:
    rng = Random(count)
    return (rng.uniform(0.02, 0.06) for _ in range(count))

"""Draining in the measuring process: one call of `app.drain`, on a queue that nothing else uses."""

import time
from dataclasses import dataclass
from itertools import count
from typing import Final

import redis

from bench.usage import reset, scripts
from lowkiq_lambda import Lowkiq

_TIMEOUT: Final = 600.0
_numbers: Final = count()


@dataclass(frozen=True, slots=True)
class DrainedHere:
    """How many seconds it took, how many calls of scripts, and how many microseconds the server had for each."""

    seconds: float
    calls: int
    server: float


def new_queue(what: str) -> str:
    """A name that no queue has yet."""
    return f"{what}-{next(_numbers)}"


def drain_here(app: Lowkiq, jobs: int, admin: redis.Redis) -> DrainedHere:
    """Drain so many jobs, all that the app has."""
    reset(admin)
    began_at = time.perf_counter()
    counts = app.drain(_TIMEOUT)
    seconds = time.perf_counter() - began_at
    if counts != {"done": jobs}:
        raise RuntimeError(f"not all of {jobs} jobs were done: {counts}")
    calls, server = scripts(admin)
    return DrainedHere(seconds, calls, server)

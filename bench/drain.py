"""Draining: one daemon in a process of its own, with default settings, on what was pushed before."""

import time
from dataclasses import dataclass
from threading import Event, Lock
from typing import Final

import redis

from bench.away import away
from bench.blank import Load, declare
from bench.usage import Usage, reset
from lowkiq_lambda import Batch
from lowkiq_lambda.local.daemon import Daemon

_TIMEOUT: Final = 600.0


@dataclass(frozen=True, slots=True)
class Drained:
    """Jobs a second, and what one cost; `window`: how many jobs a script call brought, on the average."""

    rate: float
    round_trips: float
    commands: float
    window: int


class Meter:
    """A handler that does nothing but count, from its first call to its last."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._lock = Lock()
        self._handled = 0
        self._began_at = 0.0
        self.seconds = 0.0
        self.finished = Event()

    def __call__(self, batch: Batch) -> None:
        """Count a batch."""
        with self._lock:
            if not self._handled:
                self._began_at = time.perf_counter()
            self._handled += len(batch)
            if self._handled == self._jobs:
                self.seconds = time.perf_counter() - self._began_at
                self.finished.set()


def drain(url: str, load: Load, admin: redis.Redis) -> Drained:
    """Let a daemon work off the load."""
    reset(admin)
    seconds = away(run_daemon, url, load)
    usage = Usage.of(admin)
    # Each shard's last call brings nothing.
    calls = max(1, usage.script_calls - load.shards)
    return Drained(
        rate=load.jobs / seconds,
        round_trips=usage.reads / load.jobs,
        commands=sum(usage.commands.values()) / load.jobs,
        window=round(load.jobs / calls),
    )


def run_daemon(url: str, load: Load) -> float:
    """Seconds that a daemon takes for the load."""
    meter = Meter(load.jobs)
    app, _ = declare(url, load, meter)
    with Daemon(app):
        if not meter.finished.wait(_TIMEOUT):
            raise TimeoutError(f"{load} is not drained after {_TIMEOUT:.0f} s.")
    return meter.seconds

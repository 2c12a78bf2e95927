"""Draining: one daemon in a process of its own, with default settings, on what was pushed before."""

import time
from dataclasses import dataclass
from threading import Event, Lock
from typing import Final

import redis

from bench.away import away
from bench.blank import Load, declare
from bench.usage import MICROSECONDS, Usage, processor_time, reset
from lowkiq_lambda.local.daemon import Daemon

_TIMEOUT: Final = 600.0


@dataclass(frozen=True, slots=True)
class Drained:
    """Jobs a second, and what one cost; `claim_size`: how many jobs a script call brought, on the average.

    `client` and `server` are microseconds of the processor.
    """

    rate: float
    client: float
    server: float
    reads: float
    commands: float
    claim_size: int


class Meter:
    """Counts the jobs that handlers got, from the first call to the last."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._lock = Lock()
        self._handled = 0
        self._began: tuple[float, float] = (0.0, 0.0)
        self._took: tuple[float, float] = (0.0, 0.0)
        self._finished = Event()

    def count(self, jobs: int = 1) -> None:
        """A handler got so many."""
        with self._lock:
            if not self._handled:
                self._began = _now()
            self._handled += jobs
            if self._handled == self._jobs:
                (began_at, used), (at, in_all) = self._began, _now()
                self._took = at - began_at, in_all - used
                self._finished.set()

    def took(self) -> tuple[float, float]:
        """Seconds that all of them took, waited for, and those that this process had of the processor."""
        if not self._finished.wait(_TIMEOUT):
            raise TimeoutError(f"{self._handled} of {self._jobs} jobs were handled in {_TIMEOUT:.0f} s.")
        return self._took


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def drain(url: str, load: Load, admin: redis.Redis) -> Drained:
    """Let a daemon work off the load."""
    reset(admin)
    used = processor_time(admin)
    seconds, client = away(run_daemon, url, load)
    server, each = processor_time(admin) - used, MICROSECONDS / load.jobs
    usage = Usage.of(admin)
    # Each shard's last call brings nothing.
    calls = max(1, usage.script_calls - load.shards)
    return Drained(
        rate=load.jobs / seconds,
        client=client * each,
        server=server * each,
        reads=usage.reads / load.jobs,
        commands=sum(usage.commands.values()) / load.jobs,
        claim_size=round(load.jobs / calls),
    )


def run_daemon(url: str, load: Load) -> tuple[float, float]:
    """Seconds that a daemon takes for the load, and those that it has of the processor."""
    meter = Meter(load.jobs)
    app, _ = declare(url, load, lambda batch: meter.count(len(batch)))
    with Daemon(app):
        return meter.took()

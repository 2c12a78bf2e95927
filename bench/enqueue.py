"""Pushing: how fast, and what a queued job takes in Redis."""

import time
from dataclasses import dataclass

import redis

from bench.blank import Load, declare
from bench.usage import MICROSECONDS, processor_time, used_memory


@dataclass(frozen=True, slots=True)
class Enqueued:
    """Jobs a second; bytes in Redis for each, beyond its id and its payload.

    `client` and `server` are microseconds of the processor for each.
    """

    rate: float
    client: float
    server: float
    bytes_per_job: float


def enqueue(url: str, load: Load, admin: redis.Redis) -> Enqueued:
    """Push all jobs of the load from one thread; only the calls of push_many are timed."""
    app, worker = declare(url, load, lambda _batch: None)
    app.core.queues.agreed(worker)
    memory, server, seconds, client = used_memory(admin), processor_time(admin), 0.0, 0.0
    for jobs in load.pushes():
        began_at, used = time.perf_counter(), time.process_time()
        worker.push_many(jobs)
        seconds += time.perf_counter() - began_at
        client += time.process_time() - used
    server, each = processor_time(admin) - server, MICROSECONDS / load.jobs
    taken = used_memory(admin) - memory - load.own_bytes()
    return Enqueued(load.jobs / seconds, client * each, server * each, taken / load.jobs)

"""Jobs, leftovers and counters, as the server has them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

from lowkiq_lambda import JobView, Lowkiq, MorgueJob, Worker
from lowkiq_lambda.views.jobs import Page

Listed = TypeVar("Listed", JobView, MorgueJob)


class Look(NamedTuple):
    """A job that waits, as the server has it; payloads with their scores."""

    payloads: list[tuple[object, float]]
    due_at: float
    retry_count: float
    error: str | None


def look(app: Lowkiq, worker: type[Worker], job_id: str) -> Look | None:
    """The job, or None if it does not wait."""
    found = app.operate(worker).waiting.fetch([job_id])
    if not found:
        return None
    (job,) = found
    return Look([(payload, score) for payload, score in job.payloads], job.due_at, job.retry_count, job.error)


def all_of(page: Callable[..., Page[Listed]]) -> Iterator[Listed]:
    """The jobs of all pages."""
    after = None
    while True:
        jobs = page(limit=1_000, after=after)
        yield from jobs
        if not (after := jobs.next):
            return


def dead_numbers(app: Lowkiq, worker: type[Worker]) -> dict[str, list[int]]:
    """What lies in the morgue, by id, of a queue whose payloads are numbers."""
    dead: dict[str, list[int]] = {}
    for job in all_of(partial(app.operate(worker).morgue.list, "id")):
        dead.setdefault(job.id, []).extend(int(str(payload)) for payload, _ in job.payloads)
    return dead


def left_behind(app: Lowkiq, worker: type[Worker]) -> dict[str, int]:
    """The number of entries of each key that holds jobs or notes about them; empty keys are left out."""
    kept = ("due", "jobs", "flight", "retry", "errors", "trouble", "suspects", "groups", "since")
    client, sizes = app.core.backend.client, dict[str, int]()
    for shard in app.core.queues.agreed(worker).shards:
        for name in (*kept, "box", "seen"):
            key = shard.key(name)
            size = client.zcard(key) if client.type(key) == b"zset" else client.hlen(key)
            # Places in the morgue lie behind what is no id.
            dead = sum(field[:1] == b"\xff" for field in client.hkeys(key)) if name == "seen" else 0
            sizes[name] = sizes.get(name, 0) + int(str(size)) - dead
    return {name: size for name, size in sizes.items() if size}


def counters(app: Lowkiq, worker: type[Worker]) -> Mapping[str, int]:
    """The counters of the worker's shards, in sum."""
    total: dict[str, int] = {}
    for shard in app.core.queues.agreed(worker).shards:
        meta: dict[bytes, bytes] = app.core.backend.client.hgetall(shard.key("meta"))  # type: ignore[assignment]  # no future here
        for field, value in meta.items():
            if re.fullmatch(rb"[0-9]+", value):
                total[field.decode()] = total.get(field.decode(), 0) + int(value)
    return total


def ids_of(jobs: Iterable[JobView | MorgueJob]) -> list[str]:
    """Their ids."""
    return [job.id for job in jobs]


def pairs(job: JobView | MorgueJob) -> list[tuple[object, float]]:
    """Its payloads and scores, as plain tuples."""
    return [(payload, score) for payload, score in job.payloads]

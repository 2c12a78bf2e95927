"""A program whose handler forks; it prints what parent and child do, a JSON object on each line.

Arguments: the URL of a server, a queue's name, how the child leaves the handler, and which kind of handler it is.
"""

import asyncio
import atexit
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

from lowkiq_lambda import Batch, BatchJob, Config, Lowkiq, Worker


def tell(what: str, **fields: object) -> None:
    """Print it at once: a child shares no buffer with its parent."""
    os.write(1, json.dumps({"what": what, "parent": os.getpid() == PARENT, **fields}).encode() + b"\n")


def leave_by_exit() -> None:
    """As a script does."""
    sys.exit(7)


def leave_by_error() -> None:
    """As a bug does."""
    raise ValueError("in the child")


def leave_by_return() -> None:
    """Into what called the handler."""


def leave_by_waiting() -> None:
    """Into the event loop: the coroutine that forked awaits something."""


WAYS: Final[dict[str, Callable[[], None]]] = {
    "exit": leave_by_exit,
    "error": leave_by_error,
    "return": leave_by_return,
    "wait": leave_by_waiting,
}
PARENT: Final = os.getpid()


def fork(leave: Callable[[], None]) -> None:
    """The child leaves; the parent waits for its end, and looks at what is in flight then."""
    child = os.fork()
    if not child:
        return leave()
    _, status = os.waitpid(child, 0)
    keys = [shard.key(name) for shard in app.core.drains.drainer.shards() for name in ("flight", "lease")]
    tell("waited", code=os.waitstatus_to_exitcode(status), held=app.core.backend.client.exists(*keys))
    return None


def declare(queue_name: str, leave: Callable[[], None], kind: str) -> type[Worker]:
    """A worker whose first job forks: in `perform`, in `perform_job`, in an item, or in a middleware around them.

    `async_perform`, `async_perform_job` and `async_middleware` are coroutines, on the loop with those of other batches;
    `async_in_thread` has a plain middleware around it.
    """

    def perform(_worker: Worker, batch: Batch) -> None:
        for job_id in batch:
            perform_job(_worker, batch.job(job_id))

    def perform_job(_worker: Worker, job: BatchJob) -> None:
        tell("begin", id=job.id)
        if job.id == "a" and not kind.endswith("middleware"):
            fork(leave)

    def perform_items(_worker: Worker, job: BatchJob) -> Iterator[int]:
        if job.cursor is None:
            perform_job(_worker, job)
            yield 1
        tell("item", id=job.id)
        yield 2

    def middleware(worker: Worker, batch: Batch, call_next: Any) -> None:
        call_next(worker, batch)
        tell("around")
        if "a" in batch and kind == "middleware":
            fork(leave)

    handlers: dict[str, Any] = {"perform_job": perform_job, "perform_items": perform_items}
    plain = {"perform_job": handlers[kind]} if kind in handlers else {"perform": perform}
    fields = coroutines(perform_job, leave, kind) if kind.startswith("async") else plain
    if kind not in {"async_perform", "async_perform_job", "async_middleware"}:
        app.server_middlewares.append(middleware)
    return app.worker(type("Forking", (Worker,), {"queue_name": queue_name, "shards_count": 1, **fields}))


def coroutines(
    perform_job: Callable[[Worker, BatchJob], None], leave: Callable[[], None], kind: str
) -> dict[str, object]:
    """The fields of a worker whose handlers are coroutines, and their middleware."""

    async def async_perform(worker: Worker, batch: Batch) -> None:
        for job_id in batch:
            await async_perform_job(worker, batch.job(job_id))

    async def async_perform_job(worker: Worker, job: BatchJob) -> None:
        # Others stand at the loop when one of them forks: a child that went on with it would perform them, too.
        await asyncio.sleep(0.01)
        perform_job(worker, job)
        if os.getpid() == PARENT or leave is leave_by_waiting:
            await asyncio.sleep(0)

    async def middleware(worker: Worker, batch: Batch, call_next: Any) -> None:
        await call_next(worker, batch)
        tell("around")
        if "a" in batch and kind == "async_middleware":
            fork(leave)

    if kind != "async_in_thread":
        app.server_middlewares.append(middleware)
    return {
        "concurrency": 2,
        **({"perform_job": async_perform_job} if kind == "async_perform_job" else {"perform": async_perform}),
    }


if __name__ == "__main__":
    url, name, way, kind_of_handler = sys.argv[1:]
    app = Lowkiq(Config(redis_url=url))
    atexit.register(tell, "atexit")
    declare(name, WAYS[way], kind_of_handler).push_many([{"id": "a"}, {"id": "b"}])
    tell("drained", counts=app.drain())

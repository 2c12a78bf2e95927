"""Workers whose handlers are coroutines, and loops of a test's own."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.engine.budget import Budget, VisitResult
from tests.kit.beside import TIMEOUT
from tests.kit.handlers import Notes
from tests.kit.workers import declare

Handle: TypeAlias = Callable[[Batch], Awaitable[object]]


def declare_async(app: Lowkiq, queue_name: str, handle: Handle, **fields: Any) -> type[Worker]:
    """A worker whose `perform` awaits the handler."""

    async def perform(_self: Worker, batch: Batch) -> None:
        await handle(batch)

    return declare(app, queue_name, Notes(), **{"perform": perform, **fields})


def visit(app: Lowkiq, worker: type[Worker], budget: Budget) -> VisitResult:
    """Visit its only shard."""
    return app.core.drains.drainer.visit(app.core.queues.agreed(worker).shards[0], budget)


@contextmanager
def running_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop of the test's own that runs in a thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    if not loop.is_closed():
        loop.call_soon_threadsafe(loop.stop)
    thread.join(TIMEOUT)
    loop.close()

"""Mistakes that code on an event loop makes easily: the error says what to write."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.local.daemon import Daemon
from tests.kit.coroutines import declare_async
from tests.kit.handlers import Notes
from tests.kit.workers import declare, jobs_of

CallNext = Callable[[], Awaitable[object]]


async def forget(_worker: Worker, _batch: Batch, call_next: CallNext) -> None:
    """Make the coroutine, and drop it."""
    call_next()


async def forget_return(_worker: Worker, _batch: Batch, call_next: CallNext) -> object:
    """Return the coroutine as it is."""
    return call_next()


async def awaited(_worker: Worker, _batch: Batch, call_next: CallNext) -> object:
    """As it should be."""
    return await call_next()


def plain(_worker: Worker, _batch: Batch, call_next: Callable[[], object]) -> object:
    """Each batch has a thread that waits for its coroutine."""
    return call_next()


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize("others", [[], [awaited], [plain], [plain, awaited]])
@pytest.mark.parametrize("wrong", [forget, forget_return])
def test_a_middleware_that_does_not_await_is_a_failure(
    app: Lowkiq, queue_name: str, wrong: Callable[..., object], others: list[Callable[..., object]]
) -> None:
    """E-58: the handler has not run, so the job is not done, within plain middlewares neither."""
    app.server_middlewares += [*others, wrong]
    worker = declare_async(app, queue_name, lambda _batch: asyncio.sleep(0), max_retry_count=0)
    worker.push_many(jobs_of("a"))
    assert {"dead": 1, "failed": 1} == app.drain()
    (dead,) = app.operate(worker).morgue.fetch(["a"])

    assert dead.error is not None
    said = "The handler was not run: each server middleware must return await call_next()."
    assert said == dead.error.splitlines()[0]


class Called:
    """An object that is called as a coroutine function is."""

    async def __call__(self, _worker: Worker, _batch: Batch, call_next: CallNext) -> object:
        """As `awaited`."""
        return await call_next()


def test_a_middleware_may_be_an_object_that_is_awaited(app: Lowkiq, queue_name: str) -> None:
    """Its `__call__` says which kind it is."""
    app.server_middlewares += [plain, Called()]
    declare_async(app, queue_name, lambda _batch: asyncio.sleep(0)).push_many(jobs_of("a"))

    assert {"done": 1} == app.drain()


@pytest.mark.parametrize("given", ["uvloop", 5, asyncio.new_event_loop])
def test_what_is_no_loop_is_refused_at_once(app: Lowkiq, given: object) -> None:
    """Not in the drain that would need it."""
    with pytest.raises(TypeError, match=r"use_loop takes an event loop, .* or None, not "):
        app.use_loop(given)  # type: ignore[arg-type]  # that is the point


def test_a_nested_drain_is_refused_whether_there_is_work_or_not(app: Lowkiq, queue_name: str) -> None:
    """A mistake that shows only under load would be found late."""

    async def drain(batch: Batch) -> None:
        try:
            app.drain()
        except RuntimeError as error:
            refused.extend([str(error)] * len(batch))

    refused: list[str] = []
    worker = declare_async(app, queue_name, drain)
    worker.push_many(jobs_of("a"))
    assert {"done": 1} == app.drain()
    asyncio.run(_push_and_adrain(app, worker))

    assert ["A drain on the thread of its handlers' loop would wait for itself: await app.adrain()."] * 2 == refused


async def _push_and_adrain(app: Lowkiq, worker: type[Worker]) -> None:
    await worker.apush_many(jobs_of("b"))
    await app.adrain()


def test_a_drain_of_plain_handlers_may_be_called_on_any_loop(app: Lowkiq, queue_name: str) -> None:
    """It blocks the loop, and waits for nothing that runs there."""

    async def drain() -> dict[str, int]:
        app.use_loop(asyncio.get_running_loop())
        return app.drain()

    worker = declare(app, queue_name, Notes())
    worker.push_many(jobs_of("a"))

    assert {"done": 1} == asyncio.run(drain())


def test_a_daemon_is_not_left_on_the_loop_of_its_handlers(app: Lowkiq, queue_name: str) -> None:
    """Leaving would block the loop on which they are to end, for all of `shutdown_timeout`: it is refused before."""

    async def enter() -> None:
        app.use_loop(asyncio.get_running_loop())
        with Daemon(app):
            raise AssertionError("it began")

    declare_async(app, queue_name, lambda _batch: asyncio.sleep(0))

    with pytest.raises(RuntimeError, match=r"call start, and at the end stop and await asyncio\.to_thread"):
        asyncio.run(enter())


def test_a_daemon_may_live_as_long_as_the_loop_of_its_handlers(app: Lowkiq, queue_name: str) -> None:
    """As in the lifespan of a web server: written as the error says, the handlers that run come to their end."""

    async def live() -> bool:
        begun = asyncio.Event()

        async def handle(batch: Batch) -> None:
            begun.set()
            await asyncio.sleep(0.01)
            done.extend(batch)

        app.use_loop(asyncio.get_running_loop())
        worker = declare_async(app, queue_name, handle)
        daemon = Daemon(app)
        await asyncio.to_thread(daemon.start)
        await worker.apush_many(jobs_of("a"))
        await begun.wait()
        daemon.stop()
        return await asyncio.to_thread(daemon.join, 30)

    done: list[str] = []

    assert (True, ["a"]) == (asyncio.run(live()), done)


def test_a_daemon_that_came_to_be_on_the_loop_of_its_handlers_stops_all_the_same(app: Lowkiq, queue_name: str) -> None:
    """`use_loop` within the block: the error comes at its end, nobody waits, and the daemon ends by itself."""

    async def leave() -> bool:
        with pytest.raises(RuntimeError, match="Leaving `with Daemon"), daemon:
            app.use_loop(asyncio.get_running_loop())
        return await asyncio.to_thread(daemon.join, 30)

    declare_async(app, queue_name, lambda _batch: asyncio.sleep(0))
    daemon = Daemon(app)

    assert asyncio.run(leave())

"""Pushes from an event loop: `apush_many` (L-3, L-40)."""

import asyncio
import os
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

from lowkiq_lambda import Batch, DeclarationError, JobError, Lowkiq, Worker
from lowkiq_lambda.push import pushes
from tests.kit.handlers import Notes
from tests.kit.workers import declare

tenant: ContextVar[str] = ContextVar("tenant", default="nobody")


def test_a_push_from_a_loop_is_a_push(app: Lowkiq, queue_name: str) -> None:
    """The answer tells of each job, and the jobs are performed in order."""
    notes = Notes()
    worker = declare(app, queue_name, notes, batch_size=2)

    pushed = asyncio.run(worker.apush_many([{"id": "a", "payload": 1}, {"id": "a", "payload": 2}]))
    app.drain()

    assert (2, [{"a": [1, 2]}]) == (len(pushed), notes.batches)


def test_a_function_is_pushed_to_from_a_loop(app: Lowkiq, queue_name: str) -> None:
    """A function that was declared takes jobs the same way."""
    notes = Notes()

    @app.worker(queue_name=queue_name, shards_count=1)
    def function(batch: Batch) -> None:
        notes(batch)

    asyncio.run(function.apush_many([{"id": "a"}]))
    app.drain()

    assert [["a"]] == notes.ids


def test_the_loop_goes_on_while_a_push_waits(app: Lowkiq, queue_name: str) -> None:
    """Another task of the loop runs while a push has not come back: the push waits for it here."""
    worker = declare(app, queue_name, Notes())
    other_ran = threading.Event()

    def wait(_worker: type[Worker], _jobs: object, call_next: Callable[[], Any]) -> object:
        waited = other_ran.wait(10)
        call_next()
        return waited

    async def both() -> object:
        pushing = asyncio.create_task(worker.apush_many([{"id": "a"}]))
        await asyncio.sleep(0)
        other_ran.set()
        return await pushing

    app.client_middlewares.append(wait)

    assert asyncio.run(both()) is True


def test_middlewares_of_a_push_see_the_callers_context(app: Lowkiq, queue_name: str) -> None:
    """L-52: a context variable of the task is there in a client middleware, which runs in another thread."""
    worker = declare(app, queue_name, Notes())
    seen: list[tuple[str, bool]] = []

    def note(_worker: type[Worker], _jobs: object, call_next: Callable[[], Any]) -> object:
        seen.append((tenant.get(), threading.current_thread() is threading.main_thread()))
        return call_next()

    app.client_middlewares.append(note)

    async def push() -> None:
        tenant.set("acme")
        await worker.apush_many([{"id": "a"}])

    asyncio.run(push())

    assert [("acme", False)] == seen


def test_bad_jobs_are_refused_on_a_loop_with_the_same_words(app: Lowkiq, queue_name: str) -> None:
    """L-40: a job without id, a job in place of a list, a worker without an app."""
    worker = declare(app, queue_name, Notes())

    with pytest.raises(JobError, match="job 0: id: is required"):
        asyncio.run(worker.apush_many([{"payload": 1}]))
    with pytest.raises(JobError, match=r"write apush_many\(\[\{\.\.\.\}\]\)"):
        asyncio.run(worker.apush_many({"id": 1}))  # type: ignore[dict-item]  # wrong on purpose
    with pytest.raises(DeclarationError, match="is not bound to an app"):
        asyncio.run(Worker.apush_many([]))


def test_a_push_that_blocks_a_loop_is_told_once(
    app: Lowkiq, queue_name: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`push_many` on a loop's thread works, and a single warning says what to write."""
    monkeypatch.setattr(pushes, "_warned_of_loop", False)
    worker = declare(app, queue_name, Notes())

    async def push_twice() -> None:
        worker.push_many([{"id": "a"}])
        worker.push_many([{"id": "b"}])

    asyncio.run(push_twice())

    instead = "write `await Noting.apush(...)` or `await Noting.apush_many(...)`"
    assert [f"a push to Noting blocks the event loop: {instead}"] == caplog.messages


def test_pushes_outside_of_a_loop_and_beside_it_are_no_blocking(
    app: Lowkiq, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither a plain push nor `apush_many` is warned of."""
    worker = declare(app, queue_name, Notes())

    worker.push_many([{"id": "a"}])
    asyncio.run(worker.apush_many([{"id": "b"}]))

    assert [] == caplog.messages


def test_a_forked_child_pushes_from_a_loop_of_its_own(app: Lowkiq, queue_name: str) -> None:
    """E-99: the threads of the parent do not exist in the child, which makes its own."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    asyncio.run(worker.apush_many([{"id": "a"}]))

    child = os.fork()
    if not child:
        try:
            asyncio.run(worker.apush_many([{"id": "b"}]))
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    app.drain()

    assert (0, [["a"], ["b"]]) == (status, sorted(notes.ids))

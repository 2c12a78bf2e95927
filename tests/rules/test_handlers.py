"""The handler in its other forms, and the middlewares around it (E-57, E-58, L-52)."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from lowkiq_lambda import Batch, BatchJob, Lowkiq, Worker
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Broken, Notes, raising
from tests.kit.looks import look
from tests.kit.workers import declare, jobs_of

CallNext = Callable[[], Any]


def test_perform_job_is_called_for_each_id(app: Lowkiq, queue_name: str) -> None:
    """`perform_job` gets one job at a time, with its payloads, its token and its time."""
    seen: list[tuple[str, list[Any], bool]] = []

    def perform_job(_self: Worker, job: BatchJob) -> None:
        seen.append((job.id, list(job.payloads), job.token > 0 and job.remaining > 0 and not job.stopping))

    worker = declare(app, queue_name, print, batch_size=3, perform_job=perform_job)
    worker.push_many(jobs_of("abc", payload=1))

    assert {"done": 3} == app.drain()
    assert [(job_id, [1], True) for job_id in "abc"] == seen


def test_perform_job_fails_alone(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A failure in `perform_job` is that id's own; the others of its batch go on, and nobody is suspected."""
    ran: list[str] = []

    def perform_job(_self: Worker, job: BatchJob) -> None:
        ran.append(job.id)
        if job.id in "bc":
            raise Broken(job.id)

    worker = declare(app, queue_name, print, batch_size=4, perform_job=perform_job)
    worker.push_many(jobs_of("abcd"))

    assert {"done": 2, "failed": 2, "retried": 2} == app.drain()
    assert list("abcd") == ran
    assert ([("", clock.time())], clock.time() + 10, 0.0, "c") == look(app, worker, "c")


def accidental_coroutine(_batch: Batch) -> object:
    """What a plain function that calls a coroutine function returns."""

    async def work() -> None:
        """Never awaited."""

    return work()


def accidental_generator(_batch: Batch) -> Iterator[None]:
    """What a plain function that calls a generator function returns."""
    yield from ()


class Soon:
    """Something else that can be awaited."""

    def __await__(self) -> Iterator[None]:
        yield


def test_a_handler_that_returns_its_work_unfinished_has_failed(app: Lowkiq, queue_name: str) -> None:
    """A coroutine or generator that comes back by accident was not run, so the ids are not done."""
    for name, handler, hint in (
        ("coroutine", accidental_coroutine, " Write async def, and await what it returns."),
        (
            "generator",
            accidental_generator,
            " Yield from it; if perform_job yields already, put functools.wraps into its decorator.",
        ),
        ("Soon", lambda _batch: Soon(), ""),
    ):
        worker = declare(app, f"{queue_name}-{name}", handler)
        worker.push_many(jobs_of("a"))
        app.drain()

        waiting = look(app, worker, "a")
        assert waiting is not None
        wrong = f"The handler returned a {name}, so its work was not done: it must be a plain or a coroutine function."
        assert wrong + hint == waiting.error


def test_what_a_handler_returns_otherwise_is_nothing(app: Lowkiq, queue_name: str) -> None:
    """False, a number, a list or an error object as a result mean nothing."""

    def answer(result: object, _batch: Batch) -> object:
        return result

    for number, result in enumerate((False, 0, [], "failed", Broken("returned"))):
        declare(app, f"{queue_name}-{number}", partial(answer, result)).push_many(jobs_of("a"))

    assert {"done": 5} == app.drain()


def test_l52_middlewares_wrap_the_handler(app: Lowkiq, queue_name: str) -> None:
    """L-52: the first is outermost; each gets the worker object, the batch and the rest; a later one counts too."""
    seen: list[object] = []

    def noting(name: str) -> Callable[[Worker, Batch, CallNext], Any]:
        def middleware(worker: Worker, batch: Batch, call_next: CallNext) -> Any:
            seen.append((name, worker.queue_name, dict(batch)))
            result = call_next()
            seen.append((name, result))
            return result

        return middleware

    worker = declare(app, queue_name, lambda _batch: "result")
    app.server_middlewares.append(noting("outer"))
    worker.push_many(jobs_of("a"))
    app.drain()
    app.server_middlewares.append(noting("added later"))
    worker.push_many(jobs_of("b"))
    app.drain()

    outer, inner = ("outer", "result"), ("added later", "result")
    assert [("outer", queue_name, {"a": [""]}), outer] == seen[:2]
    assert [("outer", queue_name, {"b": [""]}), ("added later", queue_name, {"b": [""]}), inner, outer] == seen[2:]


def test_l52_a_middleware_may_catch_log_and_raise_again(app: Lowkiq, queue_name: str) -> None:
    """L-52, L-65: an error passes through the middlewares, which may change it, and then counts."""

    def translating(_worker: Worker, _batch: Batch, call_next: CallNext) -> Any:
        try:
            return call_next()
        except Broken as error:
            raise LookupError("translated") from error

    app.server_middlewares.append(translating)
    worker = declare(app, queue_name, raising())
    worker.push_many(jobs_of("a"))
    app.drain()

    waiting = look(app, worker, "a")
    assert waiting is not None
    assert "translated" == waiting.error


def test_e58_a_middleware_that_swallows_makes_it_a_success(app: Lowkiq, queue_name: str) -> None:
    """E-58: swallowed is success."""

    def swallowing(_worker: Worker, _batch: Batch, call_next: CallNext) -> None:
        with suppress(Broken):
            call_next()

    app.server_middlewares.append(swallowing)
    declare(app, queue_name, raising()).push_many(jobs_of("a"))

    assert {"done": 1} == app.drain()


def test_e58_a_middleware_that_does_not_call_next_is_a_failure(app: Lowkiq, queue_name: str) -> None:
    """E-58: what was not run is not done."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    app.server_middlewares.append(lambda _worker, _batch, _call_next: None)
    worker.push_many(jobs_of("a"))

    assert {"failed": 1, "retried": 1} == app.drain()
    waiting = look(app, worker, "a")
    assert waiting is not None
    assert ("The handler was not run: each server middleware must call call_next.", []) == (
        waiting.error,
        notes.batches,
    )


def test_a_middleware_may_mark_ids_itself(app: Lowkiq, queue_name: str) -> None:
    """A middleware that settles ids by marks and runs nothing has said what became of them."""

    def rejecting(_worker: Worker, batch: Batch, call_next: CallNext) -> Any:
        batch.fail("b", "not allowed")
        return call_next()

    app.server_middlewares.append(rejecting)
    worker = declare(app, queue_name, Notes(), batch_size=2)
    worker.push_many(jobs_of("ab"))

    assert {"done": 1, "failed": 1, "retried": 1} == app.drain()


def test_middleware_around_perform_job_sees_no_failure_of_one_id(app: Lowkiq, queue_name: str) -> None:
    """With `perform_job` a failing id does not end the batch, so a middleware around it returns normally."""
    results: list[object] = []

    def noting(_worker: Worker, _batch: Batch, call_next: CallNext) -> None:
        results.append(call_next())

    def perform_job(_self: Worker, job: BatchJob) -> None:
        raise Broken(job.id)

    app.server_middlewares.append(noting)
    declare(app, queue_name, print, batch_size=2, perform_job=perform_job).push_many(jobs_of("ab"))

    assert {"failed": 2, "retried": 2} == app.drain()
    assert [None] == results

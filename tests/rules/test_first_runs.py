"""What a job with a cursor does once, what it is told of its size, and when it goes on after a stop."""

from collections.abc import Iterator
from datetime import timedelta
from io import BytesIO
from typing import Any

import msgspec
import pytest

from lowkiq_lambda import BatchJob, DeclarationError, Later, Lowkiq, Worker
from lowkiq_lambda.iterate import chunks, csv_rows, sequence, throttled
from lowkiq_lambda.jobs.progress import JobProgress, load_progress
from lowkiq_lambda.testing import ManualClock, run_job, run_through
from tests.kit.apps import MakeApp
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Broken, Notes
from tests.kit.looks import left_behind
from tests.kit.workers import declare, jobs_of

FILE = b"n\n" + b"".join(b"%d\n" % number for number in range(10, 19))


def beginning(begun: list[str], then: Any) -> Any:
    """A `perform_job` that begins something in its first run, and then does as the test says, run by run."""
    runs: list[bool] = []

    def perform_job(_self: Worker, job: BatchJob) -> Iterator[Any]:
        if job.is_first_run:
            begun.append(job.id)
        runs.append(job.is_first_run)
        yield from then(len(runs)) or ()

    return perform_job


def test_a_job_begins_once_whatever_stops_it(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """J-20: a throttle, a failure and a stop come before it has any cursor; none of them lets it begin again."""
    begun: list[str] = []

    def then(run: int) -> Any:
        if run == 1:
            raise Later(5, "throttled")
        if run == 2:
            raise Broken("no")
        return {3: [None, None], 4: [7]}.get(run)

    worker = declare(app, queue_name, Notes(), perform_job=beginning(begun, then), max_run_items=1, resume_in=5)
    worker.push_many(jobs_of("a"))
    outcomes = []
    for _ in range(5):
        outcomes.append(dict(app.drain()))
        clock.advance(60)

    assert [{"later": 1}, {"retried": 1, "failed": 1}, {"later": 1}] == outcomes[:3]
    assert ({"later": 1, "checkpointed": 1}, {"done": 1}) == (outcomes[3], outcomes[4])
    assert (["a"], {}) == (begun, left_behind(app, worker))


def test_a_job_of_which_nothing_was_kept_begins_again(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P2: a death may have come before it began, so that it begins once more, and never not at all."""
    begun: list[str] = []
    mortal = Mortal(app)

    def then(run: int) -> Any:
        if run == 1:
            mortal.die()
        return [1]

    worker = declare(app, queue_name, Notes(), perform_job=beginning(begun, then))
    worker.push_many(jobs_of("a"))
    mortal.drain()
    outlive(app, clock, worker)
    app.drain()

    assert ["a", "a"] == begun


def test_a_death_after_a_save_does_not_begin_again(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """J-20, J-44: the next holder finds the progress that was saved."""
    app, begun = make_app(settle_interval=0.0), list[str]()
    mortal = Mortal(app)

    def then(run: int) -> Any:
        yield run
        if run == 1:
            mortal.die()
            yield "never saved"

    worker = declare(app, queue_name, Notes(), perform_job=beginning(begun, then))
    worker.push_many(jobs_of("a"))
    mortal.drain()
    outlive(app, clock, worker)
    counts = app.drain()

    assert (["a"], 1) == (begun, counts["done"])


def test_a_job_of_bare_yields_saves_once_that_it_began(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """J-37: there is no cursor to save, so a later yield has nothing new."""
    app, begun = make_app(settle_interval=0.0), list[str]()
    mortal = Mortal(app)
    backend, saves = app.core.drains.drainer._backend, list[str]()
    run = backend.run

    def noting(name: str, *args: Any, **options: Any) -> Any:
        saves.append(name)
        return run(name, *args, **options)

    def then(run: int) -> Any:
        yield None
        yield None
        if run == 1:
            mortal.die()

    backend.run = noting  # type: ignore[method-assign]  # that is the point
    worker = declare(app, queue_name, Notes(), perform_job=beginning(begun, then))
    worker.push_many(jobs_of("a"))
    mortal.drain()
    outlive(app, clock, worker)
    app.drain()

    assert (["a"], 1) == (begun, saves.count("checkpoint"))


def test_the_next_payloads_of_an_id_begin_anew(app: Lowkiq, queue_name: str) -> None:
    """A job that is done is forgotten, and so is that it began."""
    begun: list[str] = []
    worker = declare(app, queue_name, Notes(), perform_job=beginning(begun, lambda _run: [1]))
    for _ in range(2):
        worker.push_many(jobs_of("a"))
        app.drain()

    assert ["a", "a"] == begun


def test_a_middleware_that_calls_twice_is_one_beginning(app: Lowkiq, queue_name: str) -> None:
    """The first call has begun it, and failed."""
    begun: list[str] = []

    def twice(_worker: Worker, _batch: Any, call_next: Any) -> Any:
        call_next()
        return call_next()

    def then(run: int) -> Any:
        if run == 1:
            raise Broken("no")
        return [1]

    app.server_middlewares.append(twice)
    declare(app, queue_name, Notes(), perform_job=beginning(begun, then)).push_many(jobs_of("a"))

    assert (1, ["a"]) == (app.drain()["done"], begun)


def test_a_job_that_does_not_ask_keeps_no_more_than_before(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """No byte: without a cursor its progress is not stored, and a later payload joins it."""
    begun: list[Any] = []

    def perform_job(_self: Worker, job: BatchJob) -> Iterator[None]:
        begun.append([*job.payloads])
        yield None
        if len(begun) == 1:
            raise Later(5)

    worker = declare(app, queue_name, Notes(), perform_job=perform_job)
    worker.push_many(jobs_of("a", payload=1))
    app.drain()
    [waiting] = app.operate(worker).waiting.fetch(["a"])
    worker.push_many(jobs_of("a", payload=2))
    clock.advance(5)
    app.drain()

    assert (None, [[1], [1, 2]]) == (waiting.progress, begun)


def test_the_kit_knows_first_runs() -> None:
    """A job that is stopped without a cursor, or put off, has begun all the same."""
    begun: list[str] = []

    def then(run: int) -> Any:
        if run == 1:
            raise Later(5)
        return {2: [None], 3: [1]}.get(run)

    class Beginning(Worker):
        perform_job = beginning(begun, then)

    run_through(Beginning, [])

    assert ["job"] == begun
    assert run_job(Beginning, [], cursor=1).ended
    assert ["job"] == begun


def follow(loop_of: Any, seen: list[Any]) -> Any:
    """A `perform_job` that follows a loop, and notes how far it is at each item."""

    def perform_job(_self: Worker, job: BatchJob) -> Iterator[Any]:
        for item, cursor in job.follow(loop_of(job.cursor)):
            seen.append((item, job.progress.items, job.progress.total, job.progress.fraction))
            yield cursor

    return perform_job


def test_a_loop_that_is_followed_tells_its_size(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """J-32, J-33: `expect` once, in the first run; a later deploy with a longer list changes no number."""
    seen: list[Any] = []
    lengths = [4, 6]
    worker = declare(
        app,
        queue_name,
        Notes(),
        perform_job=follow(lambda after: sequence(range(lengths[after is not None]), after), seen),
        max_run_items=3,
        resume_in=5,
    )
    worker.push_many(jobs_of("a"))
    app.drain()
    [waiting] = app.operate(worker).waiting.fetch(["a"])
    clock.advance(5)
    app.drain()

    assert waiting.progress is not None
    assert (3, 4, 0.75) == (waiting.progress.items, waiting.progress.total, waiting.progress.fraction)
    assert [(0, 0, 4, 0.0), (1, 1, 4, 0.25), (2, 2, 4, 0.5), (3, 3, 4, 0.75), (4, 4, 4, 1.0), (5, 5, 4, 1.0)] == seen


def test_a_file_is_followed_by_its_bytes(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """J-33: nobody counts its rows; the fraction is that of the rows which are done, and stays over a stop."""
    seen: list[Any] = []

    def rows(after: Any) -> Any:
        return csv_rows(BytesIO(FILE), after)

    worker = declare(app, queue_name, Notes(), perform_job=follow(rows, seen), max_run_items=5, resume_in=5)
    worker.push_many(jobs_of("a"))
    app.drain()
    [waiting] = app.operate(worker).waiting.fetch(["a"])
    clock.advance(5)
    app.drain()

    fractions = [round(fraction * len(FILE)) for _, _, _, fraction in seen]
    assert [2 + 3 * number for number in range(9)] == fractions
    assert waiting.progress is not None
    assert (None, 14 / 29) == (waiting.progress.total, waiting.progress.fraction)


def test_what_is_made_of_loops_has_their_size() -> None:
    """J-32: chunks count chunks, of what is left; a throttled loop is as long as its own."""
    loop = chunks(sequence(range(10), after=2), 3)
    wrapped = throttled(sequence(range(10), after=2), lambda: False, 5)

    assert (3, 0) == (loop.total, loop.position)
    assert (10, 3) == (wrapped.total, wrapped.position)
    assert [[3, 4, 5], [6, 7, 8], [9]] == [items for items, _ in loop]
    assert (3, None) == (loop.position, chunks(iter([(1, 1)]), 2).total)
    assert chunks(csv_rows(BytesIO(FILE)), 2).fraction == csv_rows(BytesIO(FILE)).fraction == 2 / len(FILE)


def test_a_plain_iterable_and_a_job_without_a_cursor_are_followed_too(app: Lowkiq, queue_name: str) -> None:
    """There is no size to tell, and the pairs are the same."""
    seen: list[Any] = []

    def perform_job(_self: Worker, job: BatchJob) -> None:
        seen.extend(job.follow([("x", job.is_first_run)]))

    declare(app, queue_name, Notes(), perform_job=perform_job).push_many(jobs_of("a"))
    app.drain()

    class Plain(Worker):
        perform_job = follow(lambda _after: [("y", 1)], seen)

    run_job(Plain, [])
    assert [("x", True), ("y", 0, None, None)] == seen


def test_a_progress_without_a_measure_has_the_bytes_that_it_had() -> None:
    """Who follows no file pays no byte, and what was kept before is read."""
    progress = JobProgress(b"7", items=3)
    measured = JobProgress(b"7", items=3, measured=0.5)

    assert 11 == len(msgspec_array(progress.dump()))
    assert progress == load_progress(progress.dump())
    assert measured == load_progress(measured.dump())


def msgspec_array(data: bytes) -> list[Any]:
    """The fields of a record as they are stored."""
    array: list[Any] = msgspec.msgpack.decode(data)
    return array


@pytest.mark.parametrize("delay", [30, timedelta(seconds=30)])
def test_a_stopped_job_rests_if_its_worker_says_so(
    app: Lowkiq, clock: ManualClock, queue_name: str, delay: Any
) -> None:
    """J-12: a default delay for each stop; the job's own `Later` has precedence."""
    runs: list[Any] = []

    def perform_job(_self: Worker, job: BatchJob) -> Iterator[int]:
        runs.append(clock.time())
        if job.cursor == 1:
            raise Later(5)
        yield (job.cursor or 0) + 1
        yield 2

    worker = declare(app, queue_name, Notes(), perform_job=perform_job, max_run_items=1, resume_in=delay)
    worker.push_many(jobs_of("a"))
    app.drain()
    due = [app.operate(worker).waiting.fetch(["a"])[0].due_at - clock.time()]
    clock.advance(30)
    app.drain()
    due.append(app.operate(worker).waiting.fetch(["a"])[0].due_at - clock.time())

    assert [30.0, 5.0] == due
    assert 2 == len(runs)


@pytest.mark.parametrize("delay", [-1, "5", True, float("nan")])
def test_a_rest_that_cannot_be_is_refused(app: Lowkiq, queue_name: str, delay: Any) -> None:
    """When the worker is declared, and not at its first stop."""
    with pytest.raises(DeclarationError, match=r"Noting\.resume_in must be seconds, at least 0, or a timedelta"):
        declare(app, queue_name, Notes(), perform_job=beginning([], None), resume_in=delay)

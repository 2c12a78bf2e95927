"""Ids whose handlers exit, and Ctrl-C: who is held up by that, and when it counts (E-54, P6)."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable

import pytest

from lowkiq_lambda import Batch, BatchJob, Lowkiq, Worker
from lowkiq_lambda.engine.outcomes import EXIT_LIMIT
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Notes, failing
from tests.kit.looks import counters, left_behind, look
from tests.kit.workers import declare, jobs_of

KINDS = [SystemExit, GeneratorExit, asyncio.CancelledError]


def leaving(job_id: str, error: BaseException) -> Callable[[Batch], None]:
    """Raises where that id is in the batch."""

    def leave(batch: Batch) -> None:
        if job_id in batch:
            raise error

    return leave


def drain_until_the_rest_is_over(app: Lowkiq, clock: ManualClock, error: BaseException, times: int) -> None:
    """Drain so many times, each of which ends with the error."""
    for _ in range(times):
        with pytest.raises(type(error)):
            app.drain()
        clock.advance(20)


@pytest.mark.parametrize("kind", KINDS)
def test_p6_the_other_shards_are_drained_before_an_interruption_passes_on(
    app: Lowkiq, clock: ManualClock, queue_name: str, kind: type[BaseException]
) -> None:
    """P6: one id that exits, however late it is, keeps no job of another shard from its turn in the same drain."""
    late = declare(app, f"{queue_name}-late", leaving("x", kind()))
    late.push_many(jobs_of("x"))
    clock.advance(60)
    notes = Notes()
    declare(app, queue_name, notes, shards_count=3).push_many(jobs_of("abcdefghi"))

    with pytest.raises(kind):
        app.drain()

    assert set("abcdefghi") == {job_id for batch in notes.ids for job_id in batch}
    assert look(app, late, "x") is not None


@pytest.mark.parametrize("batch_size", [1, 4])
def test_p6_all_that_do_not_exit_are_performed_in_one_drain(app: Lowkiq, queue_name: str, batch_size: int) -> None:
    """P6: of one shard, too: each that exits is tried alone once, and holds up nobody behind it."""

    def leave(batch: Batch) -> None:
        if any(job_id.isupper() for job_id in batch):
            raise SystemExit(3)

    notes = Notes(leave)
    worker = declare(app, queue_name, notes, batch_size=batch_size)
    worker.push_many(jobs_of("AbBcCdDefg"))

    with pytest.raises(SystemExit):
        app.drain()

    assert list("ABCD") == [job_id for job_id in "AbBcCdDefg" if look(app, worker, job_id)]
    assert [1] * 4 == [notes.ids.count([job_id]) for job_id in "ABCD"]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_an_exit_is_logged_with_the_ids_that_may_have_caused_it(
    app: Lowkiq, queue_name: str, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    """Whatever drains: a warning says what the handler exited with, and with which ids of which shard."""
    worker = declare(app, queue_name, leaving("b", error), batch_size=2)
    worker.push_many(jobs_of("ab"))

    with pytest.raises(type(error)):
        app.drain()

    line = next(vars(record) for record in caplog.records if record.getMessage().startswith("a handler exited"))
    assert (logging.WARNING, queue_name, 0) == (line["levelno"], line["queue"], line["shard"])
    assert (2, ["a", "b"]) == (line["count"], line["ids"])
    assert type(error).__name__ in caplog.text


def test_ctrl_c_ends_a_drain_at_once(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """KeyboardInterrupt comes from a person who waits: the other shards are left for the next drain."""
    late = declare(app, f"{queue_name}-late", leaving("x", KeyboardInterrupt()))
    late.push_many(jobs_of("x"))
    clock.advance(60)
    notes = Notes()
    declare(app, queue_name, notes).push_many(jobs_of("a"))

    with pytest.raises(KeyboardInterrupt):
        app.drain()

    assert [] == notes.ids


@pytest.mark.parametrize("kind", KINDS)
def test_p6_an_id_that_exits_again_and_again_has_failed(
    app: Lowkiq, clock: ManualClock, queue_name: str, kind: type[BaseException]
) -> None:
    """P6, P7: so many ends in a row are a failure of the id, which counts and says so; then it starts anew."""
    error = kind("enough")
    notes = Notes(leaving("x", error))
    worker = declare(app, queue_name, notes, max_retry_count=1)
    worker.push_many(jobs_of("x"))

    drain_until_the_rest_is_over(app, clock, error, EXIT_LIMIT - 1)
    found = look(app, worker, "x")
    assert (-1.0, None) == (found and found.retry_count, found and found.error)

    drain_until_the_rest_is_over(app, clock, error, 1)
    found = look(app, worker, "x")
    assert found is not None
    assert 0.0 == found.retry_count
    assert found.error is not None
    assert f"The handler exited {EXIT_LIMIT} times in a row, at last with {kind.__name__}: enough" == found.error
    assert [] == notes.dead

    drain_until_the_rest_is_over(app, clock, error, EXIT_LIMIT)
    assert (2 * EXIT_LIMIT, ["x"]) == (len(notes.ids), [job.id for job in notes.dead])
    assert look(app, worker, "x") is None
    assert {} == left_behind(app, worker)


def test_p6_who_exits_in_company_is_told_apart(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P6: an id that was in the batch of one that exits has no part in its failure."""
    notes = Notes(leaving("x", SystemExit(3)))
    worker = declare(app, queue_name, notes, batch_size=3)
    worker.push_many(jobs_of("axb"))

    drain_until_the_rest_is_over(app, clock, SystemExit(3), EXIT_LIMIT)

    assert (EXIT_LIMIT, {"retried": 1, "done": 2}) == (
        notes.ids.count(["x"]),
        {name: n for name, n in counters(app, worker).items() if name in ("retried", "done", "dead")},
    )


@pytest.mark.parametrize("instead", [None, ValueError("instead")])
def test_p6_a_middleware_that_swallows_an_exit_hides_no_id_that_exits_again_and_again(
    app: Lowkiq, clock: ManualClock, queue_name: str, instead: Exception | None
) -> None:
    """P6: with `perform_job` it runs once in a drain, its neighbours are done, and five exits are a failure."""
    runs: list[str] = []

    def perform_job(_self: object, job: BatchJob) -> None:
        runs.append(job.id)
        if job.id == "x":
            raise SystemExit(3)

    def swallow(_worker: Worker, _batch: Batch, call_next: Callable[[], object]) -> object:
        try:
            return call_next()
        except SystemExit:
            if instead:
                raise instead from None
            return None

    app.server_middlewares.append(swallow)
    worker = declare(app, queue_name, Notes(), batch_size=5, perform_job=perform_job)
    worker.push_many(jobs_of("axb"))

    drain_until_the_rest_is_over(app, clock, SystemExit(3), EXIT_LIMIT)

    assert {"a": 1, "b": 1, "x": EXIT_LIMIT} == Counter(runs)
    (waiting,) = app.operate(worker).waiting.fetch(["x"])
    assert str(waiting.error).startswith(f"The handler exited {EXIT_LIMIT} times in a row")


def test_what_came_to_an_end_between_two_exits_begins_the_row_anew(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """Only ends in a row count: an outcome of any kind between them forgets those before it."""
    notes = Notes(leaving("x", SystemExit(3)))
    worker = declare(app, queue_name, notes)
    worker.push_many(jobs_of("x"))
    drain_until_the_rest_is_over(app, clock, SystemExit(3), EXIT_LIMIT - 1)
    notes.then = failing("x")
    app.drain()
    clock.advance(60)
    notes.then = leaving("x", SystemExit(3))
    drain_until_the_rest_is_over(app, clock, SystemExit(3), EXIT_LIMIT - 1)

    found = look(app, worker, "x")
    assert 0.0 == (found and found.retry_count)


def test_ctrl_c_is_never_a_failure_of_an_id(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A person who stops drains again and again makes no failure, and what does exit is still found out."""
    notes = Notes(leaving("x", KeyboardInterrupt()))
    worker = declare(app, queue_name, notes)
    worker.push_many(jobs_of("x"))

    drain_until_the_rest_is_over(app, clock, KeyboardInterrupt(), 3 * EXIT_LIMIT)
    notes.then = leaving("x", SystemExit())
    drain_until_the_rest_is_over(app, clock, SystemExit(), EXIT_LIMIT - 1)
    notes.then = leaving("x", KeyboardInterrupt())
    drain_until_the_rest_is_over(app, clock, KeyboardInterrupt(), 3)
    found = look(app, worker, "x")
    assert -1.0 == (found and found.retry_count)

    notes.then = leaving("x", SystemExit())
    drain_until_the_rest_is_over(app, clock, SystemExit(), 1)
    found = look(app, worker, "x")
    assert 0.0 == (found and found.retry_count)


def test_p9_an_id_that_is_given_back_again_and_again_does_not_look_young(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """P9: how long it has been due counts from its own time, whatever it queues behind."""
    worker = declare(app, queue_name, leaving("x", SystemExit(3)))
    worker.push_many(jobs_of("x"))
    ages = []
    for _ in range(EXIT_LIMIT - 1):
        clock.advance(100)
        with pytest.raises(SystemExit):
            app.drain()
        ages.append(app.operate.metrics()[queue_name].oldest_due_age)

    assert [100.0, 200.0, 300.0, 400.0] == ages


def test_p6_a_backlog_is_drained_though_an_id_of_it_exits(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P6: where a visit ends because another shard waits, its backlog goes on in its next turn of the same drain."""
    leave, notes = leaving("x", SystemExit(3)), Notes()

    def perform(batch: Batch) -> None:
        clock.advance(0.1)
        leave(batch)
        notes(batch)

    worker = declare(app, f"{queue_name}-long", perform)
    worker.push_many(jobs_of("x"))
    clock.advance(60)
    worker.push_many(jobs_of("abcdefghijkl"))
    declare(app, queue_name, perform).push_many(jobs_of("m"))

    with pytest.raises(SystemExit):
        app.drain(60.0)

    assert set("abcdefghijklm") == {job_id for (job_id,) in notes.ids}
    assert look(app, worker, "x") is not None

"""Runs of jobs with a cursor: cases of job-iteration 1.15.0, Shopify's library for Ruby, translated."""

import enum
import itertools
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from lowkiq_lambda import BatchJob, CursorError, DeclarationError, Later, Lowkiq, Worker
from lowkiq_lambda.testing import ManualClock, run_job
from tests.kit.handlers import Broken, Notes
from tests.kit.looks import left_behind
from tests.kit.workers import declare
from tests.peers.counting import CountingItems, RunEvents, drain, start, times


class Symbol(enum.Enum):
    """What Ruby's symbols are here."""

    NAME = "name"


class SubclassedText(str):
    """A text of another class."""

    __slots__ = ()


def yielding(*cursors: Any) -> type[Worker]:
    """A job that yields these."""

    class Yielding(Worker):
        def perform_job(self, job: BatchJob) -> Iterator[Any]:
            yield from cursors if job.cursor is None else ()

    return Yielding


def test_a_job_with_a_loop_runs(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """It is done.

    Peer: test/unit/iteration_test.rb, "test_jobs_that_define_build_enumerator_and_each_iteration_will_not_raise".
    """
    counting = CountingItems(times(2))
    start(app, queue_name, counting)

    assert ([{"done": 1}], [0, 1]) == (drain(app, clock), counting.items)


def test_a_job_without_a_handler_is_refused(app: Lowkiq, queue_name: str) -> None:
    """When declared.

    Peer: test/unit/iteration_test.rb, "test_jobs_that_do_not_define_build_enumerator_or_each_iteration_raises".
    """
    with pytest.raises(DeclarationError, match="must define one of perform and perform_job; it defines neither"):
        app.worker(type("Empty", (Worker,), {"queue_name": queue_name}))


def test_a_job_that_cannot_take_its_cursor_is_refused(app: Lowkiq, queue_name: str) -> None:
    """`perform_job` gets the job, which has it.

    Peer: test/unit/iteration_test.rb,
    "test_jobs_that_defines_methods_but_do_not_declare_cursor_as_keyword_argument_raises".
    """

    def perform_job(_self: Worker) -> Iterator[int]:
        yield 1

    with pytest.raises(DeclarationError, match="cannot be called as perform_job"):
        declare(app, queue_name, Notes(), perform_job=perform_job)


def test_a_job_with_both_handlers_is_refused(app: Lowkiq) -> None:
    """Peer: test/unit/active_job_iteration_test.rb, "test_cannot_override_perform"."""
    with pytest.raises(DeclarationError, match="it defines both"):
        app.worker(type("Both", (Worker,), {"perform": lambda _self, _batch: None, "perform_job": lambda *_: None}))


def test_a_time_is_a_cursor() -> None:
    """Differs: it comes back as a time. Peer: test/unit/iteration_test.rb, "test_jobs_using_time_cursor_will_raise"."""
    at = datetime.now().astimezone()

    assert at == run_job(yielding(at), [], stop_after=1).cursor


@pytest.mark.parametrize(
    "cursor",
    [
        pytest.param(Worker(), id="test_jobs_using_active_record_cursor_will_raise"),
        pytest.param(Symbol.NAME, id="test_jobs_using_symbol_cursor_will_raise"),
        pytest.param(SubclassedText("a"), id="test_jobs_using_string_subclass_cursor_will_raise"),
        pytest.param(object(), id="test_jobs_using_basic_object_cursor_will_raise"),
    ],
)
def test_an_object_is_not_a_cursor(cursor: Any) -> None:
    """Exact types. Peer: test/unit/iteration_test.rb, the cases of the ids."""
    with pytest.raises(CursorError, match="The cursor cannot be kept"):
        run_job(yielding(cursor), [])


def test_any_json_is_a_cursor() -> None:
    """Peer: test/unit/iteration_test.rb, "test_jobs_using_complex_but_serializable_cursor_will_not_raise"."""
    cursor = [{"string": "abc", "integer": 123, "float": 4.56, "booleans": [True, False], "null": None}]

    assert cursor == run_job(yielding(cursor), [], stop_after=1).cursor


def test_a_cursor_that_cannot_be_kept_is_the_jobs_failure(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Nothing is corrupted on its way.

    Peer: test/integration/integration_behaviour.rb, "unserializable corruption is prevented".
    """
    worker = start(app, queue_name, CountingItems(lambda _after: [("item", timedelta(1))]))

    assert [{"retried": 1, "failed": 1}] == drain(app, clock)
    assert "The cursor cannot be kept" in str(app.operate(worker).waiting.fetch(["a"])[0].error)


def slow(clock: ManualClock) -> CountingItems:
    """Three items of 30 seconds."""
    return CountingItems(times(3), lambda _item: clock.advance(30.0))


def test_a_drain_has_a_limit_for_all_jobs(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Differs in that an item is not begun that would not fit.

    Peer: test/unit/iteration_test.rb, "test_global_max_job_runtime".
    """
    counting = slow(clock)
    worker = start(app, queue_name, counting)
    app.drain(seconds=75.0)

    assert [0, 1] == counting.items
    progress = app.operate(worker).waiting.fetch(["a"])[0].progress
    assert progress is not None
    assert (1, 1) == (progress.cursor, progress.interruptions)


def test_the_limit_is_read_when_it_runs(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Peer: test/unit/iteration_test.rb, "test_global_max_job_runtime_with_updated_value"."""
    counting = slow(clock)
    worker = start(app, queue_name, counting, max_run_time=600)
    worker.max_run_time = 60
    drain(app, clock)

    assert [0, 1] == counting.items


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param((None, None, 60, [3, 2]), id="test_per_class_max_job_runtime_with_default_global"),
        pytest.param((75.0, None, 30, [2, 1]), id="test_per_class_max_job_runtime_with_global_set"),
        pytest.param((45.0, None, 60, [1, 1]), id="test_per_class_max_job_runtime_with_global_set_lower"),
        pytest.param((75.0, 30, None, [1, 2]), id="test_unset_per_class_max_job_runtime_and_global_set"),
        pytest.param(
            (None, 30, None, [1, 3]), id="test_unset_per_class_max_job_runtime_and_unset_global_and_set_parent"
        ),
    ],
)
def test_a_class_has_a_limit_and_the_smaller_applies(
    app: Lowkiq, clock: ManualClock, queue_name: str, limits: tuple[float | None, Any, Any, list[int]]
) -> None:
    """A subclass replaces that of its parent. Peer: test/unit/iteration_test.rb, the cases of the ids."""
    seconds, of_parent, of_child, expected = limits
    counts = list[int]()
    parent: type[Worker] = type("Parent", (Worker,), {"max_run_time": of_parent})
    for base, own in ((parent, {}), (parent, {"max_run_time": of_child})):
        counting = slow(clock)
        body = {
            "queue_name": f"{queue_name}-{len(counts)}",
            "resume_in": 1_000,
            "perform_job": lambda _self, job, counting=counting: (yield from counting.perform_job(job)),
        }
        worker: type[Worker] = app.worker(type("Limited", (base,), {**body, **own}))
        worker.push("a", 5)
        app.drain(seconds)
        counts.append(len(counting.items))

    assert expected == counts


def test_seconds_count_over_stops(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Peer: test/unit/iteration_test.rb, "test_total_time_is_updated_for_successful_jobs_with_interruptions"."""
    told = RunEvents(app)
    start(app, queue_name, CountingItems(times(2), lambda _item: clock.advance(10.0)), max_run_items=1)
    drain(app, clock, 3)

    assert [10.0, 20.0, 20.0] == told.seconds


def test_seconds_of_a_job_in_one_run(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Peer: test/unit/iteration_test.rb, "test_jobs_using_on_complete_have_accurate_total_time"."""
    told = RunEvents(app)
    start(app, queue_name, CountingItems(times(3), lambda _item: clock.advance(1.0)))
    drain(app, clock)

    assert [3.0] == told.seconds


def failing(clock: ManualClock) -> Any:
    """Takes ten seconds to fail."""

    def before(_item: Any) -> None:
        clock.advance(10.0)
        raise Broken("no")

    return before


def test_seconds_of_a_failed_run(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Peer: test/unit/iteration_test.rb, "test_total_time_is_updated_for_failed_jobs"."""
    worker = start(app, queue_name, CountingItems(times(1), failing(clock)))
    drain(app, clock)

    progress = app.operate(worker).waiting.fetch(["a"])[0].progress
    assert progress is not None
    assert (10.0, 1) == (progress.seconds, progress.failures)


def test_observers_are_told_of_a_run(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Differs: of a run and its items, not of each item.

    Peer: test/unit/iteration_test.rb, "test_each_iteration_instrumentation".
    """
    told = RunEvents(app)
    start(app, queue_name, CountingItems(times(2)))
    drain(app, clock)

    assert [("done", False, 2, "")] == told.runs


def test_observers_are_told_of_a_run_that_fails(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Peer: test/unit/iteration_test.rb, "test_exception_in_each_iteration_instrumentation"."""
    told = RunEvents(app)
    start(app, queue_name, CountingItems(times(1), failing(clock)))
    drain(app, clock)

    assert [("retried", False, 0, "")] == told.runs


def test_a_result_is_nobodys_business(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Peer: test/unit/iteration_test.rb, "test_perform_returns_nil"."""

    def perform_job(_self: Worker, _job: BatchJob) -> Any:
        yield 1
        return "a result"

    declare(app, queue_name, Notes(), perform_job=perform_job).push_many([{"id": "a"}])

    assert [{"done": 1}] == drain(app, clock)


def test_a_job_without_a_loop_is_done(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """`return` before any yield. Peer: test/unit/active_job_iteration_test.rb, "test_build_enumerator_returns_nil"."""
    told = RunEvents(app)

    def perform_job(_self: Worker, job: BatchJob) -> Iterator[int]:
        if job.payloads:
            return
        yield 1

    declare(app, queue_name, Notes(), perform_job=perform_job).push_many([{"id": "a"}])

    assert ([{"done": 1}], [("done", False, 0, "")]) == (drain(app, clock), told.runs)


def test_an_empty_loop_is_told_and_done(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Nothing was found: done, without items.

    Peer: test/unit/active_job_iteration_test.rb, "test_log_no_iterations".
    """
    told, counting = RunEvents(app), CountingItems(times(0))
    start(app, queue_name, counting)
    drain(app, clock)

    assert ([("done", False, 0, "")], ["start", "shutdown", "complete"]) == (told.runs, counting.notes)


def test_what_begins_and_ends_runs_once(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Plain Python. Peer: test/unit/active_job_iteration_test.rb, "test_works_with_private_methods"."""
    counting = CountingItems(times(3))
    start(app, queue_name, counting)
    drain(app, clock)

    assert (["start", "shutdown", "complete"], 3) == (counting.notes, len(counting.items))


def test_a_job_of_one_item_begins_and_ends_once(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Peer: test/unit/active_job_iteration_test.rb, "test_single_iteration"."""
    counting = CountingItems(times(1))
    worker = start(app, queue_name, counting)
    drain(app, clock)

    assert (["start", "shutdown", "complete"], {}) == (counting.notes, left_behind(app, worker))


def test_a_job_that_fails_goes_on_at_the_item(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Differs: failures between which it moves use up no retry.

    Peer: test/unit/active_job_iteration_test.rb, "test_failing_job".
    """
    calls = itertools.count(1)

    def before(_item: Any) -> None:
        if next(calls) % 4 == 0:
            raise Broken("no")

    counting = CountingItems(times(10), before)
    worker = start(app, queue_name, counting, max_retry_count=2)
    states = []
    for _ in range(3):
        drain(app, clock)
        [waiting] = app.operate(worker).waiting.fetch(["a"])
        assert waiting.progress is not None
        states.append((waiting.progress.cursor, waiting.retry_count, waiting.progress.interruptions))
    drain(app, clock)

    assert [(2, 0.0, 0), (5, 0.0, 0), (8, 0.0, 0)] == states
    assert ([*range(10)], 1, 1) == (counting.items, counting.notes.count("start"), counting.notes.count("complete"))


def test_a_job_that_pushes_itself_at_the_end_of_a_run_waits_once(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """Peer: test/unit/active_job_iteration_test.rb, "test_retry_job_from_shutdown_hook_doesnt_retry_job"."""

    def perform_job(self: Worker, job: BatchJob) -> Iterator[int]:
        try:
            yield 1
        finally:
            self.push(job.id, 5)

    worker = declare(app, queue_name, Notes(), perform_job=perform_job, max_run_items=1, resume_in=1)
    worker.push("a", 5)
    drain(app, clock)

    assert 1 == app.operate(worker).waiting.count()


def test_payloads_come_to_each_run(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """And nothing beside them.

    Peer: test/unit/active_job_iteration_test.rb,
    "test_passes_params_to_each_iteration_without_extra_information_on_interruption".
    """
    seen: list[Any] = []

    def perform_job(_self: Worker, job: BatchJob) -> Iterator[int]:
        seen.append(list(job.payloads))
        yield (job.cursor or 0) + 1

    worker = declare(app, queue_name, Notes(), perform_job=perform_job, max_run_items=1, resume_in=1)
    worker.push("a", {"walrus": "yes"})
    drain(app, clock, 2)

    assert [[{"walrus": "yes"}]] * 2 == seen


def test_the_end_is_told(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """With all its interruptions. Peer: test/unit/active_job_iteration_test.rb, "test_log_completion_data"."""
    told = RunEvents(app)
    start(app, queue_name, CountingItems(times(3)), max_run_items=2)
    drain(app, clock, 2)

    assert [("later", False, 2, "run items over"), ("done", True, 1, "run items over")] == told.runs


def test_a_stop_is_told_with_its_reason(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Peer: test/unit/active_job_iteration_test.rb, "test_log_interruption_with_max_job_runtime_reason"."""
    told = RunEvents(app)
    start(app, queue_name, CountingItems(times(3), lambda _item: clock.advance(2.0)), max_run_time=1)
    drain(app, clock)

    assert [("later", False, 1, "run time over")] == told.runs


def test_a_reason_of_ones_own_is_told(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Peer: test/unit/active_job_iteration_test.rb, "test_log_interruption_with_custom_adapter_reason"."""
    told = RunEvents(app)

    def before(item: int) -> None:
        if item == 1 and len(told.runs) == 0:
            raise Later(0, "process_shutdown")

    start(app, queue_name, CountingItems(times(3), before))
    drain(app, clock)

    assert ("later", False, 1, "process_shutdown") == told.runs[0]


@pytest.mark.parametrize(
    ("completes", "notes"),
    [
        pytest.param(
            True,
            ["shutdown", "complete"],
            id="test_aborting_in_each_iteration_job_will_execute_on_complete_callback",
        ),
        pytest.param(
            False,
            ["shutdown"],
            id="test_throwing_skip_complete_callbacks_in_each_iteration_job_will_not_execute_on_complete_callback",
        ),
    ],
)
def test_a_job_may_end_early(*, completes: bool, notes: list[str]) -> None:
    """`break` or `return`. Peer: test/unit/active_job_iteration_test.rb, the cases of the ids."""
    seen: list[str] = []

    class Aborting(Worker):
        def perform_job(self, job: BatchJob) -> Iterator[int]:
            try:
                for item, cursor in times(5)(job.cursor):
                    if item == 2:
                        if completes:
                            break
                        return
                    yield cursor
            finally:
                seen.append("shutdown")
            seen.append("complete")

    assert (True, notes) == (run_job(Aborting, []).ended, seen)


def test_a_stop_is_looked_for_after_each_item() -> None:
    """And never before the first.

    Peer: test/unit/active_job_iteration_test.rb, "test_checks_for_exit_after_iteration".
    """
    counting = CountingItems(times(3))
    run_job(
        type("Checking", (Worker,), {"perform_job": lambda _self, job: (yield from counting.perform_job(job))}),
        [],
        stop_after=1,
    )

    assert [0] == counting.items

"""Other loops, and the kit for tests: cases of job-iteration 1.15.0, Shopify's library for Ruby, translated."""

from collections.abc import Iterator
from io import BytesIO, StringIO
from typing import Any

import pytest

from lowkiq_lambda import BatchJob, Later, Lowkiq, Worker
from lowkiq_lambda.base.errors import BackendUnavailable
from lowkiq_lambda.iterate import chunks, csv_rows, nested, parts, sequence, share, throttled
from lowkiq_lambda.testing import ManualClock, run_job, run_through
from tests.kit.handlers import Notes
from tests.kit.workers import declare
from tests.peers.counting import CountingItems, RunEvents, drain, start, times

FILE = b"id,name\n" + b"".join(b"%d,n%d\n" % (number, number) for number in range(11))


def rows(after: Any = None) -> Any:
    """Those of the file."""
    return csv_rows(BytesIO(FILE), after)


@pytest.mark.parametrize("file", [[], True, StringIO("text")])
def test_what_is_no_file_is_refused(file: Any) -> None:
    """Peer: test/unit/csv_enumerator_test.rb, "#initialize raises if passed object is not CSV"."""
    with pytest.raises((TypeError, AttributeError)):
        csv_rows(file)


def test_every_row_comes_with_its_cursor() -> None:
    """Differs: it has the byte behind the row.

    Peer: test/unit/csv_enumerator_test.rb, "#rows yields every record with their cursor position".
    """
    assert [(str(number), number + 1) for number in range(11)] == [(row["id"], cursor[0]) for row, cursor in rows()]


def test_rows_can_be_resumed() -> None:
    """Peer: test/unit/csv_enumerator_test.rb, "#rows enumerator can be resumed"."""
    cursor = [cursor for _, cursor in rows()][3]

    assert [str(number) for number in range(4, 11)] == [row["id"] for row, _ in rows(cursor)]


def test_a_file_knows_its_bytes() -> None:
    """Differs: nobody reads it to count rows.

    Peer: test/unit/csv_enumerator_test.rb, "#rows enumerator returns total size if resumed".
    """
    loop = rows([cursor for _, cursor in rows()][9])

    assert (None, 10) == (loop.total, loop.position)
    assert (len(FILE) - len(b"10,n10\n")) / len(FILE) == loop.fraction


def test_batches_of_rows() -> None:
    """Peer: test/unit/csv_enumerator_test.rb, "#batches yields every batch with their cursor position"."""
    assert [3, 3, 3, 2] == [len(batch) for batch, _ in chunks(rows(), 3)]


def test_batches_of_rows_go_on_with_the_last_uneven_one() -> None:
    """Peer: test/unit/csv_enumerator_test.rb, "#batches enumerator can be resumed from the last uneven batch"."""
    *_, before, _ = [cursor for _, cursor in chunks(rows(), 2)]

    assert [["10"]] == [[row["id"] for row in batch] for batch, _ in chunks(rows(before), 2)]


def letters(word: str, after: Any) -> Any:
    """Those of a word."""
    return sequence(word, after)


def of_words(after: Any = None) -> Any:
    """Letters of three words."""
    return nested(lambda outer: sequence(["a", "bc", "def"], outer), letters, after=after)


def test_only_functions_are_levels() -> None:
    """Peer: test/unit/nested_enumerator_test.rb, "accepts only callables as enums"."""
    levels: Any = (sequence("ab"), letters)

    with pytest.raises(TypeError):
        next(nested(*levels))


def test_a_cursor_of_other_levels_is_refused() -> None:
    """Peer: test/unit/nested_enumerator_test.rb, "raises when cursor is not of the same size as enums"."""
    with pytest.raises(ValueError, match="is not one of nested"):
        next(of_words([1]))


def test_every_inner_item_comes_with_the_cursors_of_its_levels() -> None:
    """Differs: the outer item's own cursor is there, too.

    Peer: test/unit/nested_enumerator_test.rb, "yields every nested record with their cursor position".
    """
    assert [
        (("a", "a"), [None, 0, 0]),
        (("bc", "b"), [0, 1, 0]),
        (("bc", "c"), [0, 1, 1]),
        (("def", "d"), [1, 2, 0]),
        (("def", "e"), [1, 2, 1]),
        (("def", "f"), [1, 2, 2]),
    ] == list(of_words())


def test_nested_loops_can_be_resumed() -> None:
    """Peer: test/unit/nested_enumerator_test.rb, "cursor can be used to resume"."""
    assert (("bc", "b"), [0, 1, 0]) == next(of_words([None, 0, 0]))


def test_an_empty_level_has_no_items() -> None:
    """Peer: test/unit/nested_enumerator_test.rb, "doesn't yield anything if contains empty enum"."""
    assert [] == list(nested(lambda outer: sequence("ab", outer), lambda _letter, after: sequence("", after)))


def test_one_level_is_no_nesting() -> None:
    """Differs: it is refused. Peer: test/unit/nested_enumerator_test.rb, "works with single level nesting"."""
    with pytest.raises(ValueError, match="two levels or more"):
        nested(lambda outer: sequence("ab", outer))


@pytest.mark.parametrize("count", [0, -1, None, 3.5, "3"])
def test_a_number_of_parts_that_cannot_be_is_refused(count: Any) -> None:
    """A number of parts that cannot be is refused.

    Peer: test/unit/parallel_enumerator_test.rb, "build_parallel_enumerator raises ArgumentError when instances is
    not a positive Integer".
    """
    with pytest.raises(ValueError, match="parts"):
        parts("a", {}, count)


def parted(app: Lowkiq, queue_name: str, done: list[Any], count: int = 3) -> type[Worker]:
    """A queue whose job is divided into so many."""

    def perform_job(self: Worker, job: BatchJob) -> Iterator[int]:
        [request] = job.payloads
        if "part" not in request:
            self.push_many(parts(job.id, request, count))
            return
        for item, cursor in sequence(share(range(10), request["part"]), job.cursor):
            done.append((job.id, item))
            yield cursor

    return declare(app, queue_name, Notes(), perform_job=perform_job, payloads_at_once=1)


def test_the_first_run_pushes_a_job_for_each_part() -> None:
    """With the arguments of its own.

    Peer: test/unit/parallel_enumerator_test.rb, "iteration with parallel enumerator forwards arguments to enqueued
    jobs".
    """
    assert [{"shop_id": 42, "part": [number, 3]} for number in range(3)] == [
        job["payload"] for job in parts("a", {"shop_id": 42}, 3)
    ]


def test_parts_go_to_the_queue_of_their_job(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Each runs once.

    Peer: test/unit/parallel_enumerator_test.rb, "iteration with parallel enumerator enqueues jobs of the same class
    as the calling job".
    """
    done: list[Any] = []
    parted(app, queue_name, done).push("a", {})

    assert [4] == [counts["done"] for counts in drain(app, clock)]
    assert [*range(10)] == sorted(item for _, item in done)


def test_the_job_that_is_divided_does_no_item(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """The job that is divided does no item.

    Peer: test/unit/parallel_enumerator_test.rb, "iteration with parallel enumerator does not iterate or run
    iteration callbacks on the parent job".
    """
    done: list[Any] = []
    parted(app, queue_name, done).push("a", {})
    drain(app, clock)

    assert {"a/0", "a/1", "a/2"} == {job_id for job_id, _ in done}


def test_a_deploy_with_another_number_changes_no_job(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A deploy with another number changes no job.

    Peer: test/unit/parallel_enumerator_test.rb, "ParallelEnumerator reads instances from the cursor, even if
    build_parallel_enumerator's argument has changed".
    """
    done: list[Any] = []
    parted(app, queue_name, done, count=10).push_many(parts("a", {}, 3)[:1])
    drain(app, clock)

    assert [0, 1, 2] == [item for _, item in done]


def test_a_part_goes_on_from_its_own_cursor() -> None:
    """A part goes on from its own cursor.

    Peer: test/unit/parallel_enumerator_test.rb, "build_parallel_array_enumerator resumes from a partial
    inner_cursor".
    """
    assert [(4, 1), (5, 2)] == list(sequence(share(range(10), [1, 3]), after=0))


def test_shares_of_equal_length() -> None:
    """Shares of equal length.

    Peer: test/unit/parallel_enumerator_test.rb, "build_parallel_array_enumerator splits the array evenly when size
    divides by instances".
    """
    assert [4, 4, 4] == [len(share(range(12), [number, 3])) for number in range(3)]


def test_shares_of_nearly_equal_length() -> None:
    """Shares of nearly equal length.

    Peer: test/unit/parallel_enumerator_test.rb, "build_parallel_array_enumerator covers the array with near-equal
    partitions when size does not divide by instances".
    """
    assert [3, 3, 4] == [len(share(range(10), [number, 3])) for number in range(3)]


def test_a_part_knows_how_many_items_it_has() -> None:
    """Peer: test/unit/parallel_enumerator_test.rb, "ParallelEnumerator size delegates to the inner enumerator"."""
    assert 4 == sequence(share(range(10), [2, 3])).total


def test_a_part_that_cannot_be_pushed_fails_the_job(
    app: Lowkiq, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part that cannot be pushed fails the job.

    Peer: test/unit/parallel_enumerator_test.rb, "iteration with parallel enumerator raises EnqueueError if any
    child job fails to enqueue".
    """
    worker = parted(app, queue_name, [])
    worker.push("a", {})

    def refuse(_jobs: Any) -> None:
        raise BackendUnavailable("no")

    monkeypatch.setattr(worker, "push_many", refuse)

    assert [{"retried": 1, "failed": 1}] == drain(app, clock)


def test_a_throttled_loop_has_the_pairs_and_the_size_of_its_own() -> None:
    """Peer: test/unit/throttle_enumerator_test.rb, "throttle enumerator proxies wrapped enumerator"."""
    loop = throttled(sequence([1, 2, 3]), lambda: False, 30)

    assert (3, [(1, 0), (2, 1), (3, 2)]) == (loop.total, list(loop))


def throttling(answers: str) -> CountingItems:
    """Three items; an answer is "y" or "n", one after the other, and then no."""
    left = [*answers]
    return CountingItems(lambda after: throttled(sequence([1, 2, 3], after), lambda: left and left.pop(0) == "y", 30))


def test_a_throttled_loop_goes_through_its_items(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Peer: test/unit/throttle_enumerator_test.rb, "throttle enumerator works with iteration API"."""
    counting = throttling("nnn")
    start(app, queue_name, counting)

    assert ([{"done": 1}], [1, 2, 3]) == (drain(app, clock), counting.items)


def test_a_throttled_job_waits_at_its_item(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """It has not ended. Peer: test/unit/throttle_enumerator_test.rb, "pushes job back to the queue if throttle"."""
    counting = throttling("nyn")
    worker = start(app, queue_name, counting)
    drain(app, clock)
    [waiting] = app.operate(worker).waiting.fetch(["a"])

    assert waiting.progress is not None
    assert ([1], 0, 1) == (counting.items, waiting.progress.cursor, waiting.progress.interruptions)
    assert "complete" not in counting.notes


def test_the_delay_of_a_throttle_has_precedence(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """The delay of a throttle has precedence.

    Peer: test/unit/throttle_enumerator_test.rb, "pushes job back to the queue with the configured throttle
    backoff".
    """
    worker = start(app, queue_name, throttling("y"), resume_in=15)
    began_at = clock.time()
    drain(app, clock)

    assert 30.0 == app.operate(worker).waiting.fetch(["a"])[0].due_at - began_at


def test_a_throttle_is_told(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Peer: test/unit/throttle_enumerator_test.rb, "throttle event is instrumented"."""
    told = RunEvents(app)
    start(app, queue_name, throttling("y"))
    drain(app, clock)

    assert [("later", False, 0, "throttled")] == told.runs


def test_a_stopped_job_rests_as_its_class_says(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Peer: test/unit/active_job_iteration_test.rb, "test_interrupted_job_uses_default_retry_backoff"."""
    worker = start(app, queue_name, CountingItems(times(3)), max_run_items=1, resume_in=10)
    began_at = clock.time()
    drain(app, clock)

    assert 10.0 == app.operate(worker).waiting.fetch(["a"])[0].due_at - began_at


def test_a_method_of_the_class_may_stop_it() -> None:
    """Peer: test/unit/active_job_iteration_test.rb, "test_respects_job_should_exit_from_parent_class"."""

    class Exiting(Worker):
        def stop(self) -> None:
            raise Later(0, "enough")

    done: list[int] = []

    class Own(Exiting):
        def perform_job(self, job: BatchJob) -> Iterator[int]:
            for item, cursor in times(3)(job.cursor):
                done.append(item)
                yield cursor
                self.stop()

    ran = run_job(Own, [])

    assert ([0], 0) == (done, ran.cursor)


def test_the_end_of_a_run_comes_before_the_job_waits(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Peer: test/unit/active_job_iteration_test.rb, "test_on_shutdown_called_before_reenqueue"."""
    waiting: list[int] = []

    def perform_job(self: Worker, _job: BatchJob) -> Iterator[int]:
        try:
            yield 1
        finally:
            waiting.append(app.operate(type(self)).waiting.count())

    declare(app, queue_name, Notes(), perform_job=perform_job, max_run_items=1, resume_in=1).push("a", 5)
    drain(app, clock)

    assert [0] == waiting


def counter(done: list[int]) -> type[Worker]:
    """Ten items."""

    class Counter(Worker):
        def perform_job(self, job: BatchJob) -> Iterator[int]:
            for item, cursor in times(10)(job.cursor):
                done.append(item)
                yield cursor

    return Counter


@pytest.mark.parametrize(
    ("stop_after", "items"),
    [
        pytest.param(3, 3, id="#iterate_exact_times interrupts jobs after the given number of iterations"),
        pytest.param(1, 1, id="#iterate_once interrupts jobs after a single iteration"),
        pytest.param(None, 10, id="#continue_iterating allows jobs to iterate until the end"),
    ],
)
def test_a_test_stops_a_job_where_it_likes(stop_after: int | None, items: int) -> None:
    """Peer: test/unit/test_helper_test.rb, the cases of the ids."""
    done: list[int] = []
    run_job(counter(done), [], stop_after=stop_after)

    assert items == len(done)


def test_a_test_goes_on_after_the_first_items() -> None:
    """A test goes on after the first items.

    Peer: test/unit/test_helper_test.rb, "#continue_iterating allows the job to finish after running initial
    iterations".
    """
    done: list[int] = []
    first = run_job(counter(done), [], stop_after=1)
    rest = run_job(counter(done), [], cursor=first.cursor)

    assert ([*range(10)], False, True) == (done, first.ended, rest.ended)


def test_a_test_goes_through_a_job_one_item_at_a_time() -> None:
    """Peer: test/unit/test_helper_test.rb, "#iterate_once allows jobs to run one iteration at a time"."""
    done: list[int] = []

    assert (11, [*range(10)]) == (len(run_through(counter(done), [])), done)

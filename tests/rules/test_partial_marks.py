"""The marks of payloads: their order, what they refuse, and what else is kept of the payloads that end so."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lowkiq_lambda import Batch, BatchClosed, BatchJob, Lowkiq, Rejected, Worker
from lowkiq_lambda.store.shard.keys import HEADERS
from lowkiq_lambda.testing import ManualClock, run_job
from tests.kit.apps import MakeApp
from tests.kit.coroutines import declare_async
from tests.kit.handlers import Broken, Notes, failing
from tests.kit.looks import left_behind
from tests.kit.marking import SOLD_OUT, marking, push_payloads
from tests.kit.servers import Server
from tests.kit.tracking import Item, TaskOfTests
from tests.kit.workers import declare


def test_the_mark_of_the_latest_is_that_of_the_id(app: Lowkiq, queue_name: str) -> None:
    """`merge = "latest"`: there is one payload, so the id is done, and no smaller score runs after it."""
    notes = Notes(marking(0, then=failing("a")))
    worker = declare(app, queue_name, notes, merge="latest")
    worker.push_many([{"id": "a", "payload": 2, "score": 2}])
    app.drain()

    assert [True] == [one.superseded for one in worker.push_many([{"id": "a", "payload": 1, "score": 1}])]
    app.drain()
    assert [{"a": [2]}] == notes.batches


def test_positions_are_those_of_the_delivery(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """`payloads_at_once`: the first of each chunk is payload 0, and what is left comes before the next chunk."""
    notes = Notes()
    worker = declare(app, queue_name, notes, payloads_at_once=2)
    push_payloads(worker, 1, 2, 3)

    def mark(batch: Batch) -> None:
        notes.then = None
        marking(0, then=failing("a"))(batch)

    notes.then = mark
    app.drain()
    clock.advance(100)
    app.drain()

    assert [{"a": [1, 2]}, {"a": [2, 3]}] == notes.batches


def test_jobs_mark_their_payloads(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """`job.done(n)` in `perform_job`, as `batch.done` with the id."""
    seen: list[list[Any]] = []

    def perform_job(_self: Worker, job: BatchJob) -> None:
        seen.append(list(job.payloads))
        if len(seen) == 1:
            job.done(0)
            raise Broken

    worker = declare(app, queue_name, Notes(), perform_job=perform_job)
    push_payloads(worker, 1, 2)
    app.drain()
    clock.advance(100)
    app.drain()

    assert [[1, 2], [2]] == seen


@pytest.mark.parametrize("concurrency", [1, 3])
def test_coroutines_mark_payloads(app: Lowkiq, clock: ManualClock, queue_name: str, concurrency: int) -> None:
    """Side by side, too: each batch has its own."""
    seen: list[tuple[str, list[Any]]] = []

    async def handle(batch: Batch) -> None:
        for job_id, payloads in batch.items():
            seen.append((job_id, list(payloads)))
            if len(payloads) > 1:
                batch.done(job_id, payload=0)
                raise Broken

    worker = declare_async(app, queue_name, handle, concurrency=concurrency)
    for job_id in "abc":
        push_payloads(worker, 1, 2, job_id=job_id)
    app.drain()
    clock.advance(100)
    app.drain()

    assert [(job_id, payloads) for payloads in ([1, 2], [2]) for job_id in "abc"] == sorted(
        seen, key=lambda one: (-len(one[1]), one[0])
    )
    assert {} == left_behind(app, worker)


def test_a_job_with_a_cursor_marks_nothing(app: Lowkiq, queue_name: str) -> None:
    """The cursor says what is done: in a drain, and where a test runs the job by itself."""
    raised: list[str] = []

    def perform_job(_self: Worker, job: BatchJob) -> Iterator[int]:
        yield 1
        try:
            job.done(0)
        except ValueError as error:
            raised.append(str(error))

    worker = declare(app, queue_name, Notes(), perform_job=perform_job)
    push_payloads(worker, 1, 2)
    app.drain()
    run_job(worker, [1, 2], job_id="a")

    told = "payload 0 of 'a' cannot be marked as done: its job yields a cursor, which says what is done"
    assert [told, told] == raised


def test_the_cursor_of_payloads_that_end_goes_with_them(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """A deploy made a plain handler of a generator: the cursor was of all payloads, so the others begin anew."""

    def perform_job(_self: Worker, _job: BatchJob) -> Iterator[int]:
        yield 1
        raise Broken

    before, after = make_app(), make_app()
    push_payloads(declare(before, queue_name, Notes(), perform_job=perform_job), 1, 2)
    before.drain()
    notes = Notes(marking(0, then=failing("a")))
    worker = declare(after, queue_name, notes)
    clock.advance(100)
    after.drain()
    notes.then = None
    clock.advance(100)
    after.drain()

    assert [[1, 2], [2]] == [batch["a"] for batch in notes.batches]
    assert [1, None] == [jobs[0].cursor for jobs in notes.jobs]
    assert {} == left_behind(after, worker)


Marks = Callable[[Batch], object]
REFUSED: dict[str, tuple[Marks, type[Exception], str]] = {
    "a later one": (
        lambda batch: batch.done("a", payload=1),
        ValueError,
        "is not done: payloads end in order; declare `ordered = False` if they do not depend on each other",
    ),
    "before the first": (lambda batch: batch.done("a", payload=2), ValueError, "payload 0 of 'a' is not done"),
    "behind a gap": (marking(0, 2), ValueError, "payload 1 of 'a' is not done"),
    "no such payload": (lambda batch: batch.done("a", payload=3), IndexError, "'a' has no payload 3: it has 3"),
    "from the end": (lambda batch: batch.done("a", payload=-1), IndexError, "'a' has no payload -1"),
    "no such id": (lambda batch: batch.done("b", payload=0), KeyError, "'b' is not in this batch"),
}


@pytest.mark.parametrize("which", REFUSED)
def test_marks_that_cannot_be_are_refused(app: Lowkiq, queue_name: str, which: str) -> None:
    """In order by default: a loop that goes on behind a failure would apply 3 before 2 without anybody noticing."""
    mark, error, told = REFUSED[which]
    raised: list[Exception] = []

    def handle(batch: Batch) -> None:
        try:
            mark(batch)
        except (ValueError, IndexError, KeyError) as refused:
            raised.append(refused)

    worker = declare(app, queue_name, handle)
    push_payloads(worker, 1, 2, 3)
    app.drain()

    (one,) = raised
    assert type(one) is error
    assert told in one.args[0]


def test_marks_behind_the_end_of_the_batch_are_refused(app: Lowkiq, queue_name: str) -> None:
    """As any other: its outcome is written."""
    batches: list[Batch] = []
    push_payloads(declare(app, queue_name, batches.append), 1)
    app.drain()

    with pytest.raises(BatchClosed):
        batches[0].done("a", payload=0)


def test_what_the_handler_does_with_its_list_changes_no_position(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """The list is its own: a handler may take from it what it has applied, and mark it."""
    notes = Notes()

    def take(batch: Batch) -> None:
        notes.then = None
        for position in range(2):
            batch["a"].pop(0)
            batch.done("a", payload=position)
        raise Broken

    notes.then = take
    worker = declare(app, queue_name, notes)
    push_payloads(worker, 1, 2, 3)
    app.drain()
    clock.advance(100)
    app.drain()

    assert [[1, 2, 3], [3]] == [batch["a"] for batch in notes.batches]


def test_marks_may_come_again_and_behind_a_refused_payload(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A refused payload is over, as one that is done, so the order holds behind it."""
    notes = Notes()

    def mark(batch: Batch) -> None:
        notes.then = None
        batch.done("a", payload=0)
        batch.done("a", payload=0)
        batch.fail("a", SOLD_OUT, payload=1)
        batch.done("a", payload=2)
        batch.fail("a", "no connection")

    notes.then = mark
    worker = declare(app, queue_name, notes)
    push_payloads(worker, 1, 2, 3, 4)
    app.drain()
    clock.advance(100)
    app.drain()

    assert [[1, 2, 3, 4], [4]] == [batch["a"] for batch in notes.batches]


def test_without_an_order_any_payload_may_end(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """`ordered = False`: what fails first has its retry_count, and what was done behind it is gone."""
    notes = Notes(marking(1, 3, then=failing("a")))
    worker = declare(app, queue_name, notes, ordered=False)
    push_payloads(worker, 1, 2, 3, 4)
    app.drain()
    notes.then = None
    clock.advance(100)
    app.drain()

    assert [[1, 2, 3, 4], [1, 3]] == [batch["a"] for batch in notes.batches]
    assert 0 == notes.last.retry_count
    assert {} == left_behind(app, worker)


def test_the_items_of_marked_payloads_are_done_at_the_settling(
    app: Lowkiq, server: Server, clock: ManualClock, queue_name: str
) -> None:
    """Those of the others wait for the retry; notes of the run are told to all of them."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    task = TaskOfTests(worker, server.admin)
    task.push_many((1, "a", "one"), (1, "b", "two"), (1, "b", "also two"), (1, "c", "three"))

    def mark(batch: Batch) -> None:
        notes.then = None
        batch.note("1", "looked at")
        marking(0, 1, then=failing("1"))(batch)

    notes.then = mark
    app.drain()
    assert {"one": "d", "two": "d", "also two": "d", "three": "e"} == task.statuses
    clock.advance(100)
    app.drain()

    done = Item("d", "1", 1, ("looked at",))
    assert {
        "one": done,
        "two": done,
        "also two": done,
        "three": Item("d", "1", 2, ("looked at", "1 is broken")),
    } == task.items


def test_a_refused_id_leaves_done_what_was_marked(app: Lowkiq, server: Server, queue_name: str) -> None:
    """The items of marked payloads are done, those of a payload that was refused before have its reason."""

    def refuse(batch: Batch) -> None:
        batch.done("1", payload=0)
        batch.fail("1", SOLD_OUT, payload=1)
        raise Rejected("not qualified")

    worker = declare(app, queue_name, refuse)
    task = TaskOfTests(worker, server.admin)
    task.push_many((1, "a", "one"), (1, "b", "two"), (1, "c", "three"), (1, "d", "four"))

    assert {"rejected": 1} == dict(app.drain())
    others = Item("f", "1", 1, ("not qualified",))
    assert {
        "one": Item("d", "1", 1),
        "two": Item("f", "1", 1, ("sold out",)),
        "three": others,
        "four": others,
    } == task.items
    assert {} == left_behind(app, worker)


def test_an_id_that_fails_with_all_its_payloads_over_has_ended(app: Lowkiq, server: Server, queue_name: str) -> None:
    """Each of them is done or refused, so nothing is left to be tried again."""

    def handle(batch: Batch) -> None:
        batch.done("1", payload=0)
        batch.fail("1", SOLD_OUT, payload=1)
        raise Broken

    worker = declare(app, queue_name, handle)
    task = TaskOfTests(worker, server.admin)
    task.push_many((1, "a", "one"), (1, "b", "two"))

    assert {"rejected": 1} == dict(app.drain())
    assert {"one": Item("d", "1", 1), "two": Item("f", "1", 1, ("sold out",))} == task.items
    assert {} == left_behind(app, worker)


def test_headers_go_with_the_payloads_that_end(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """What is left has its own, and no other."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    worker.push_many({"id": "a", "payload": n, "headers": {"n": str(n)}} for n in range(3))
    told: list[list[str]] = []

    def mark(batch: Batch) -> None:
        told.append([headers["n"] for headers in batch.headers["a"]])
        notes.then = tell
        marking(0, 1, then=failing("a"))(batch)

    def tell(batch: Batch) -> None:
        told.append([headers["n"] for headers in batch.headers["a"]])

    notes.then = mark
    app.drain()
    shard = app.core.queues.agreed(worker).shards[0].using((HEADERS,))
    kept = sum(app.core.backend.client.hlen(shard.key(name)) for name in ("headers_even", "headers_odd"))
    assert 1 == kept
    clock.advance(100)
    app.drain()

    assert [["0", "1", "2"], ["2"]] == told

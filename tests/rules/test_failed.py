"""Failed, a reason of the business that ends a job; and notes, which items of tasks are told (A-28, A-38, D-10)."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from lowkiq_lambda import Batch, BatchClosed, BatchJob, Lowkiq, Rejected, Worker
from lowkiq_lambda.testing import ManualClock
from tests.kit.coroutines import declare_async
from tests.kit.handlers import Broken, Notes, failing, raising
from tests.kit.looks import left_behind, look
from tests.kit.recording import EventRecorder
from tests.kit.servers import Server
from tests.kit.tracking import Item, TaskOfTests
from tests.kit.workers import declare, jobs_of

NOT_QUALIFIED = Rejected("the seller is not qualified")


def test_a28_failed_ends_a_job_and_is_no_error(
    app: Lowkiq, server: Server, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A-28: the item has the reason; nothing is tried again, nothing is warned of, and the outcome says `refused`."""
    recorder = EventRecorder()
    caplog.set_level(logging.INFO)
    app.observers.append(recorder)
    worker = declare(app, queue_name, raising(NOT_QUALIFIED))
    task = TaskOfTests(worker, server.admin)
    task.push_many((1, "a", "one"), (1, "b", "two"))

    counts = app.drain()

    assert {"rejected": 1} == dict(counts)
    assert {"1": "rejected"} == recorder.events[-1].outcomes
    told = Item("f", "1", 1, ("the seller is not qualified",))
    assert {"one": told, "two": told} == task.items
    (line,) = [record for record in caplog.records if record.message.endswith("Rejected: the seller is not qualified")]
    assert ("INFO", ["1"]) == (line.levelname, line.__dict__["ids"])
    assert [] == [record for record in caplog.records if record.levelno > logging.INFO]


def test_failed_ends_an_untracked_job_too(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Also one that had failed before: its error and its count go, as those of a job that is done."""
    notes = Notes(raising(Broken("bug")))
    worker = declare(app, queue_name, notes)
    worker.push_many(jobs_of("a"))
    app.drain()
    clock.advance(100)

    notes.then = raising(NOT_QUALIFIED)
    counts = app.drain()

    assert {"rejected": 1} == dict(counts)
    assert {} == left_behind(app, worker)


def test_failed_over_several_ids_is_nobodys_until_they_ran_alone(app: Lowkiq, server: Server, queue_name: str) -> None:
    """P7: as any error that names no id; the one that it is about ends by it, and the others are done."""

    def refuse(batch: Batch) -> None:
        if "b" in batch:
            raise NOT_QUALIFIED

    worker = declare(app, queue_name, refuse, batch_size=3)
    task = TaskOfTests(worker, server.admin)
    task.push_many(*((id_, "v", id_) for id_ in "abc"))

    app.drain()

    assert {"a": "d", "b": "f", "c": "d"} == task.statuses
    assert ("failed in company", "the seller is not qualified") == task.items["b"].messages


def test_without_isolation_failed_ends_all_ids_of_the_batch(app: Lowkiq, queue_name: str) -> None:
    """Whoever says that the ids of a batch fail together is taken at that word."""
    worker = declare(app, queue_name, raising(NOT_QUALIFIED), batch_size=3, isolate=False)
    worker.push_many(jobs_of("abc"))

    assert {"rejected": 3} == dict(app.drain())


def test_one_payload_may_fail_alone(app: Lowkiq, server: Server, queue_name: str) -> None:
    """Its items have the reason, and the other payloads of the id are done; the id is counted as refused."""

    def refuse_second(batch: Batch) -> None:
        batch.fail("1", NOT_QUALIFIED, payload=1)

    worker = declare(app, queue_name, refuse_second)
    task = TaskOfTests(worker, server.admin)
    task.push_many((1, "a", "one"), (1, "b", "two"), (1, "b", "also two"), (1, "c", "three"))

    counts = app.drain()

    assert {"rejected": 1} == dict(counts)
    assert {"one": "d", "two": "f", "also two": "f", "three": "d"} == task.statuses
    assert ("the seller is not qualified",) == task.items["two"].messages


def test_payloads_and_the_rest_may_fail_for_different_reasons(app: Lowkiq, server: Server, queue_name: str) -> None:
    """Each item has its own."""

    def refuse(batch: Batch) -> None:
        batch.fail("1", NOT_QUALIFIED, payload=0)
        batch.fail("1", Rejected("sold out"))

    worker = declare(app, queue_name, refuse)
    task = TaskOfTests(worker, server.admin)
    task.push_many((1, "a", "one"), (1, "b", "two"))

    app.drain()

    told = {label: item.messages for label, item in task.items.items()}
    assert {"one": ("the seller is not qualified",), "two": ("sold out",)} == told


def test_a_payload_that_failed_alone_ends_though_its_id_fails(app: Lowkiq, server: Server, queue_name: str) -> None:
    """D-10: the others of the id are tried again, and it is not handed over with them."""

    def fail(batch: Batch) -> None:
        batch.fail("1", NOT_QUALIFIED, payload=0)
        batch.fail("1", "no connection")

    worker = declare(app, queue_name, fail)
    task = TaskOfTests(worker, server.admin)
    task.push_many((1, "a", "one"), (1, "b", "two"))

    counts = app.drain()

    assert {"failed": 1, "retried": 1} == dict(counts)
    assert {"one": "f", "two": "e"} == task.statuses
    assert ("the seller is not qualified",) == task.items["one"].messages
    waiting = look(app, worker, "1")
    assert waiting is not None
    assert ["b"] == [payload for payload, _ in waiting.payloads]


@pytest.mark.parametrize(
    ("given", "error"), [((NOT_QUALIFIED, 2), IndexError), ((NOT_QUALIFIED, -1), IndexError), (("bug", 0), ValueError)]
)
def test_a_payload_that_cannot_fail_alone_is_refused(
    app: Lowkiq, queue_name: str, given: tuple[Any, int], error: type[Exception]
) -> None:
    """There is no such payload, or the error is one that the whole id has."""
    raised: list[BaseException] = []

    def fail(batch: Batch) -> None:
        try:
            batch.fail("a", given[0], payload=given[1])
        except (IndexError, ValueError) as refused:
            raised.append(refused)

    worker = declare(app, queue_name, fail)
    worker.push_many(jobs_of("a"))

    assert {"done": 1} == dict(app.drain())
    assert [error] == [type(one) for one in raised]


def test_a38_notes_travel_with_the_outcome(app: Lowkiq, clock: ManualClock, server: Server, queue_name: str) -> None:
    """A-38: of `job.note` and `batch.note`, of each run, whatever became of it; an untracked id has none."""
    notes = Notes()
    worker = declare(app, queue_name, notes, batch_size=2)
    task = TaskOfTests(worker, server.admin)
    task.push_many((1, "a", "one"))
    worker.push_many([{"id": 2}])

    def note(batch: Batch) -> None:
        for job_id in batch:
            batch.note(job_id, f"looked at {job_id}")
            batch.job(job_id).note("fetched")

    def note_and_fail(batch: Batch) -> None:
        note(batch)
        failing("1")(batch)

    notes.then = note_and_fail
    app.drain()
    clock.advance(100)
    notes.then = note
    app.drain()

    run = ("looked at 1", "fetched")
    assert {"one": Item("d", "1", 2, (*run, "1 is broken", *run))} == task.items


def test_a_note_is_cut_and_its_batch_ends(app: Lowkiq, server: Server, queue_name: str) -> None:
    """200 characters of each are kept, and no more than 40 of a run; a batch that has ended takes none."""
    batches: list[Batch] = []

    def note(batch: Batch) -> None:
        batches.append(batch)
        for number in range(50):
            batch.note("1", f"{number} " + "é" * 300)

    worker = declare(app, queue_name, note)
    task = TaskOfTests(worker, server.admin)
    task.push_many((1, "a", "one"))

    app.drain()

    messages = task.items["one"].messages
    assert (40, {200}) == (len(messages), {len(message) for message in messages})
    with pytest.raises(BatchClosed):
        batches[0].note("1", "too late")
    with pytest.raises(KeyError):
        batches[0].note("2", "of another")


def test_a_job_with_a_cursor_may_be_refused(app: Lowkiq, server: Server, queue_name: str) -> None:
    """At any of its items; how far it came is forgotten with it."""
    runs: list[object] = []

    def perform_job(_self: Worker, job: BatchJob) -> Iterator[int]:
        runs.append(job.cursor)
        yield 1
        job.note("the first item is done")
        raise NOT_QUALIFIED

    worker = declare(app, queue_name, Notes(), perform_job=perform_job)
    task = TaskOfTests(worker, server.admin)
    task.push_many((1, "a", "one"))
    app.drain()
    task.push_many((1, "a", "two"))

    app.drain()

    told = Item("f", "1", 1, ("the first item is done", "the seller is not qualified"))
    assert {"one": told, "two": told} == task.items
    assert [None, None] == runs
    assert {} == left_behind(app, worker)


def test_coroutine_handlers_may_raise_failed(app: Lowkiq, server: Server, queue_name: str) -> None:
    """As plain ones; notes, too."""

    async def refuse(batch: Batch) -> None:
        batch.note("1", "fetched")
        raise NOT_QUALIFIED

    worker = declare_async(app, queue_name, refuse)
    task = TaskOfTests(worker, server.admin)
    task.push_many((1, "a", "one"))

    app.drain()

    assert {"one": Item("f", "1", 1, ("fetched", "the seller is not qualified"))} == task.items

"""A-23, A-24, A-30: jobs are pushed through a task, or not at all, and what is wrong with a push loses nothing."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from lowkiq_lambda import Batch, JobError, Lowkiq, NoSuchTask, Rejected, TaskClosed, Worker
from lowkiq_lambda.base.errors import DeclarationError
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.workers import declare, jobs_of
from tests.tasks.dying import Calls, watched
from tests.tasks.watching import check_shards, counts, statuses


def test_a24_a_task_has_an_id_and_a_number_for_each_job(app: Lowkiq, queue_name: str) -> None:
    """A-24, A-26: the jobs of all pushes are numbered in their order, over queues; labels and ids come back."""
    first = declare(app, queue_name, Notes(), shards_count=3)
    second = declare(app, f"{queue_name}-2", Notes())
    task = app.task("enrol")

    pushed = task.push_many(first, [{"id": "a", "payload": 1, "item": "row 1"}, {"id": "b", "item": "ряд 2"}])
    pushed += task.push_many(second, jobs_of("ab"))

    assert re.fullmatch(r"[\w-]{16}", task.id)
    assert ["a", "b", "a", "b"] == [one.id for one in pushed]
    items = app.tasks.get(task.id).items(status="enqueued").items
    assert [(1, "a", "row 1"), (2, "b", "ряд 2"), (3, "a", None), (4, "b", None)] == [
        (item.number, item.id, item.label) for item in items
    ]
    assert [queue_name, queue_name, f"{queue_name}-2", f"{queue_name}-2"] == [item.queue_name for item in items]
    check_shards(app, first)


def test_a30_what_is_pushed_beside_a_task_is_none_of_its_items(app: Lowkiq, queue_name: str) -> None:
    """A worker is not opted in as a whole: each push says whether it belongs to a task."""
    worker = declare(app, queue_name, Notes())
    task = app.task("enrol")
    worker.push_many(jobs_of("ab"))

    task.push_many(worker, jobs_of("c"))

    assert {"enqueued": 1} == counts(task)


@pytest.mark.parametrize(
    ("jobs", "field"),
    [
        ([{"id": "a"}, {"id": "b", "itme": "row"}], "itme"),
        ([{"id": "a"}, {"id": "b", "item": "x" * 201}], "item"),
        ([{"id": "a"}, {"id": "b", "item": "я" * 101}], "item"),
        ([{"id": "a"}, {"id": "b", "item": 7}], "item"),
        ([{"id": "a"}, {"id": "b", "item": "\udc00"}], "item"),
        ([{"id": "a"}, {"id": 1.5}], "id"),
        ([{"id": "a"}, ["b"]], None),
    ],
)
def test_a_bad_job_is_refused_and_nothing_is_written(
    app: Lowkiq, queue_name: str, jobs: list[Any], field: str | None
) -> None:
    """The error names the job and the field; the task goes on, and its next push counts exactly."""
    worker = declare(app, queue_name, Notes())
    task = app.task("enrol")

    with pytest.raises(JobError) as refused:
        task.push_many(worker, jobs)

    assert (1, field) == (refused.value.position, refused.value.field)
    assert {} == counts(task)
    task.push_many(worker, [{"id": "a", "item": "я" * 100}])
    assert {"enqueued": 1} == counts(task)


def test_a_label_is_for_jobs_of_a_task_alone(app: Lowkiq, queue_name: str) -> None:
    """A plain push with `item` is refused, and the sentence says what to do."""
    worker = declare(app, queue_name, Notes())

    with pytest.raises(JobError, match="push them with `push` of the task"):
        worker.push_many([{"id": 1, "item": "row 1"}])


def test_a_closed_task_takes_no_push_from_outside(app: Lowkiq, queue_name: str) -> None:
    """Leaving the block closes it, an exception does not; a push then raises TaskClosed, and writes nothing."""
    worker = declare(app, queue_name, Notes())
    task = app.task("enrol")
    with suppress(ZeroDivisionError), task:
        task.push_many(worker, jobs_of("a"))
        raise ZeroDivisionError
    state = task.progress().state
    with task:
        task.push_many(worker, jobs_of("b"))

    with pytest.raises(TaskClosed, match="enrol"):
        task.push_many(worker, jobs_of("c"))

    assert {"enqueued": 2} == counts(task)
    assert ["open", "closed"] == [state, task.progress().state]


def test_a_running_item_pushes_to_its_closed_task(app: Lowkiq, queue_name: str) -> None:
    """Handlers of the task's items may, in the batch form and job by job; those of other jobs may not."""
    children = declare(app, f"{queue_name}-2", Notes())
    refused: list[str] = []

    def handler(batch: Batch) -> None:
        for job_id in batch:
            try:
                task.push_many(children, [{"id": f"child of {job_id}"}])
            except TaskClosed:
                refused.append(job_id)

    worker = declare(app, queue_name, handler, batch_size=1)
    task = app.task("enrol")
    other = app.task("another")
    with task, other:
        task.push_many(worker, jobs_of("ab"))
        other.push_many(worker, jobs_of("c"))
        worker.push_many(jobs_of("d"))

    app.drain()

    assert ["c", "d"] == refused
    assert {1: "done", 2: "done", 3: "done", 4: "done"} == statuses(task)
    assert "completed" == task.progress().state


@pytest.mark.parametrize("form", ["job", "coroutine", "thread"])
def test_the_handler_is_known_in_each_form(app: Lowkiq, queue_name: str, form: str) -> None:
    """perform_job, a coroutine and handlers side by side: a running item is known wherever its handler runs."""

    def perform(_self: Worker, _job: object) -> None:
        push()

    async def push_many(_self: Worker, _job: object) -> None:
        push()

    def push() -> None:
        task.push_many(children, [{"id": "child"}])

    forms: dict[str, dict[str, Any]] = {
        "job": {"perform_job": perform},
        "coroutine": {"perform_job": push_many},
        "thread": {"perform_job": perform, "concurrency": 2, "batch_size": 1},
    }
    children = declare(app, f"{queue_name}-2", Notes())
    worker = declare(app, queue_name, Notes(), **forms[form])
    with app.task("enrol") as task:
        task.push_many(worker, jobs_of("a"))

    app.drain()

    assert {1: "done", 2: "done"} == statuses(task)


def test_an_unknown_task_is_named(app: Lowkiq, queue_name: str) -> None:
    """What is no id is refused at once, an id of no task by the first call; both say so in a sentence."""
    worker = declare(app, queue_name, Notes())
    unknown = app.tasks.get("AAAAAAAAAAAAAAAA")

    for task_id in ("", "AAAA", "AAAAAAAAAAAAAAA=", "A" * 17, "ééééééééééééééééé"):
        with pytest.raises(NoSuchTask, match="is not the id of a task"):
            app.tasks.get(task_id)
    for call in (lambda: unknown.push_many(worker, jobs_of("a")), unknown.progress, unknown.close, unknown.cancel):
        with pytest.raises(NoSuchTask, match="There is no task AAAAAAAAAAAAAAAA"):
            call()
    assert 0 == app.operate.stats()["total"]["length"]


def test_a_task_is_declared_well_or_not_at_all(app: Lowkiq, queue_name: str) -> None:
    """A name, a callback of this app, a time: what cannot work is refused before anything is written."""
    foreign = declare(Lowkiq(), queue_name, Notes())
    own = declare(app, f"{queue_name}-2", Notes())
    bad: Any
    for bad in ("", "x" * 201, 7, "lone \ud800"):
        with pytest.raises(DeclarationError):
            app.task(bad)
    for bad in ((foreign, {}), own, (own,)):
        with pytest.raises(DeclarationError):
            app.task("enrol", on_complete=bad)
    for bad in (0, -1, float("nan"), 1e10, "week"):
        with pytest.raises(DeclarationError):
            app.task("enrol", expires_in=bad)
    with pytest.raises(JobError):
        app.task("enrol", on_complete=(own, {"key": object()}))
    with pytest.raises(JobError):
        app.task("enrol", on_complete=(own, "x" * 70_000))

    assert [] == app.tasks.list().tasks


def test_jobs_that_a_middleware_drops_leave_numbers_without_items(app: Lowkiq, queue_name: str) -> None:
    """Totals count items, not numbers, so that the task completes all the same."""
    worker = declare(app, queue_name, Notes())
    app.client_middlewares.append(lambda worker, jobs, call_next: call_next(worker, jobs[1:]))
    with app.task("enrol") as task:
        task.push_many(worker, jobs_of("abc"))

    app.drain()

    assert {2: "done", 3: "done"} == statuses(task)
    assert ("completed", 2) == (task.progress().state, task.progress().total)


def test_a40_items_of_equal_payloads_all_end(app: Lowkiq, queue_name: str) -> None:
    """A-40: three items of one payload, two of another under the same id: one run, five items that ended."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    with app.task("enrol") as task:
        task.push_many(worker, [{"id": "a", "payload": number % 2} for number in range(5)])

    check_shards(app, worker)
    app.drain()

    assert [{"a": [0, 1]}] == notes.batches
    assert {"done": 5} == counts(task)


def test_a_large_push_registers_once(app: Lowkiq, queue_name: str) -> None:
    """Ten thousand jobs: the record is read and replaced once, and each shard gets its jobs by a few calls."""
    worker = declare(app, queue_name, Notes(), shards_count=5)
    app.core.queues.agreed(worker)
    task, calls = app.task("import"), Calls()

    with watched(app, calls):
        task.push_many(worker, [{"id": number} for number in range(10_000)])

    # Chunks that travel together are one call here.
    assert ["task_record", "swap_task", "enqueue", "enqueue"] == calls.names
    assert {"enqueued": 10_000} == counts(task)


def test_pushes_that_race_give_out_each_number_once(make_app: MakeApp, queue_name: str) -> None:
    """Four processes push to one task at the same time: who comes second reads again, and nothing is lost."""
    apps = [make_app() for _ in range(4)]
    workers = [declare(app, queue_name, Notes()) for app in apps]
    task_id = apps[0].task("import").id
    barrier = threading.Barrier(len(apps))

    def push(number: int) -> None:
        barrier.wait(30)
        for at in range(10):
            apps[number].tasks.get(task_id).push_many(
                workers[number], [{"id": f"{number}-{at}"}, {"id": f"{number}+{at}"}]
            )

    with ThreadPoolExecutor(len(apps)) as threads:
        assert [None] * 4 == [*threads.map(push, range(4))]

    assert dict.fromkeys(range(1, 81), "enqueued") == statuses(apps[0].tasks.get(task_id))


def test_a36_progress_tells_what_people_ask_for(make_app: MakeApp, clock: Any, queue_name: str) -> None:
    """A-36, A-39: counts by status, a total, times, a version that changes with them, and when to ask again."""
    app = make_app()

    def handler(batch: Batch) -> None:
        if "failing" in batch:
            raise Rejected("not qualified")

    worker = declare(app, queue_name, handler, batch_size=1)
    began_at = clock.time()
    with app.task("enrol") as task:
        task.push_many(worker, [{"id": "failing"}, {"id": "b"}, {"id": "later", "due_at": began_at + 500.0}])
    before = task.progress()
    app.drain()
    clock.advance(400.0)
    meanwhile, again = task.progress(), task.progress()
    clock.advance(101.0)
    app.drain()

    done = task.progress()
    assert [(3, 0), (3, 2), (3, 3)] == [(one.total, one.ended) for one in (before, meanwhile, done)]
    assert ({"failed": 1, "done": 2}, "completed") == (counts(task), done.state)
    assert ["not qualified"] == [item.text for item in task.items(status="failed").items]
    assert [1.0, 20.0, None] == [one.next_poll for one in (before, meanwhile, done)]
    assert (meanwhile.version, 3) == (again.version, len({one.version for one in (before, meanwhile, done)}))
    assert (began_at, began_at, None) == (done.created_at, done.closed_at, before.completed_at)
    assert began_at + 501.0 == pytest.approx(done.completed_at, abs=1.0)
    assert done.completed_at is not None
    assert done.completed_at + app.config.task_max_age == done.expires_at


def test_items_come_page_by_page(app: Lowkiq, queue_name: str) -> None:
    """Of one status by number, over shards; or all, those that failed first. What is no page is refused."""

    def handler(batch: Batch) -> None:
        for job_id in batch:
            if int(job_id) % 3 == 0:
                batch.fail(job_id, Rejected("no"))

    worker = declare(app, queue_name, handler, shards_count=3, batch_size=10)
    task = app.task("enrol")
    task.push_many(worker, [{"id": number} for number in range(1, 10)])
    app.drain()
    task.push_many(worker, [{"id": 10}])

    pages, after = [], None
    for _ in range(4):
        page = task.items(after=after, limit=3)
        pages.append([item.id for item in page.items])
        after = page.next
    done = task.items(status="done", limit=4)

    assert [["3", "6", "9"], ["10", "1", "2"], ["4", "5", "7"], ["8"]] == pages
    assert None is after
    assert [1, 2, 4, 5] == [item.number for item in done.items]
    assert [7, 8] == [item.number for item in task.items(status="done", after=done.next).items]
    bad: Any
    for bad in (
        {"limit": 0},
        {"limit": 1_001},
        {"status": "odd"},
        {"after": "done"},
        {"after": "odd-1"},
        {"after": "done-x"},
        {"after": 5},
    ):
        with pytest.raises(ValueError, match=r"must be|is not the `next`"):
            task.items(**bad)


def test_tasks_are_listed_page_by_page(app: Lowkiq, clock: Any, queue_name: str) -> None:
    """Those that go on first, of those that are over the latest first; each exactly once."""
    worker = declare(app, queue_name, Notes())
    ended = []
    for name in ("a", "b"):
        with app.task(name) as task:
            task.push_many(worker, jobs_of("x"))
        app.drain()
        clock.advance(1.0)
        ended.append(name)
    for name in ("c", "d", "e"):
        app.task(name)
        clock.advance(1.0)

    first = app.tasks.list(limit=3)
    second = app.tasks.list(after=first.next, limit=3)

    assert first.next is not None
    assert "+" not in first.next, "it would be a space in a URL"
    assert [["e", "d", "c"], ["b", "a"]] == [[one.name for one in page.tasks] for page in (first, second)]
    assert None is second.next
    assert ["open"] * 3 + ["completed"] * 2 == [one.state for page in (first, second) for one in page.tasks]
    with pytest.raises(ValueError, match="is not the `next`"):
        app.tasks.list(after="x")


def test_one_job_in_place_of_a_list_is_refused_with_what_to_write(make_app: MakeApp, queue_name: str) -> None:
    """A mapping is a job, and its names would be taken for jobs."""
    app = make_app()
    worker = declare(app, queue_name, Notes())

    with pytest.raises(
        JobError, match=r"push_many takes a list of jobs, not one job: write push_many\(worker, \[\{\.\.\.\}\]\)"
    ):
        app.task("import").push_many(worker, {"id": 1})  # type: ignore[dict-item]  # wrong on purpose


def test_a_refusal_tells_who_may_still_push(make_app: MakeApp, queue_name: str) -> None:
    """Of a closed task its own running items may, of a cancelled one nobody."""
    app = make_app()
    worker = declare(app, queue_name, Notes())
    closed, cancelled = app.task("closed"), app.task("cancelled")
    closed.push_many(worker, [{"id": 1}])
    closed.close()
    cancelled.cancel()

    with pytest.raises(TaskClosed, match="is closed: it takes no more pushes, but from its own running items"):
        closed.push_many(worker, [{"id": 2}])
    with pytest.raises(TaskClosed, match=r"is cancelled: it takes no more pushes\.$"):
        cancelled.push_many(worker, [{"id": 2}])


def test_a28_failed_may_be_given_as_a_class(app: Lowkiq, queue_name: str) -> None:
    """As `raise Rejected` takes the class, `batch.fail` does: the id, or one payload of it, ends by it, alive."""

    def handler(batch: Batch) -> None:
        batch.fail("whole", Rejected)
        batch.fail("part", Rejected, payload=0)
        batch.done("part")

    worker = declare(app, queue_name, handler, batch_size=2)
    with app.task("enrol") as task:
        task.push_many(worker, [{"id": "whole"}, {"id": "part"}])
    app.drain()

    assert {"failed": 2} == counts(task)

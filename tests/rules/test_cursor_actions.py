"""What operators do to jobs with a cursor that have started, while they wait and while they run."""

from collections.abc import Callable
from typing import Any

import pytest

from lowkiq_lambda import BatchJob, Later, Lowkiq, Worker
from lowkiq_lambda.operate.queue_operations import QueueOperations
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Broken
from tests.kit.iterating import Items, declare_items
from tests.kit.looks import ids_of, left_behind
from tests.kit.workers import jobs_of

STOPS_AT = 3
"""The item at which the first run ends."""


def stopping(error: BaseException) -> Items:
    """Jobs of six items, the first of which ends its first run with this."""
    errors = [error]

    def before(_job: BatchJob, item: int) -> None:
        if item == STOPS_AT and errors:
            raise errors.pop()

    return Items(6, before)


def started(app: Lowkiq, queue_name: str, error: BaseException) -> tuple[type[Worker], Items]:
    """A started job "a" that waits to go on, for this reason."""
    items = stopping(error)
    worker = declare_items(app, queue_name, items)
    worker.push_many(jobs_of("a", payload="old"))
    app.drain()
    return worker, items


def runs_of(items: Items) -> list[tuple[Any, list[Any]]]:
    """Cursor and payloads of each run."""
    return [(run.cursor, run.payloads) for run in items.runs]


@pytest.mark.parametrize("error", [Later(3_600), Broken("item 3 is broken")])
def test_delete_takes_the_cursor_and_what_waits_behind(app: Lowkiq, queue_name: str, error: BaseException) -> None:
    """The same id starts anew."""
    worker, items = started(app, queue_name, error)
    worker.push_many(jobs_of("a", payload="new"))

    assert 1 == app.operate(worker).waiting.delete(["a"])

    assert {} == left_behind(app, worker)
    worker.push_many(jobs_of("a", payload="next"))
    app.drain()
    assert [(None, ["old"]), (None, ["next"])] == runs_of(items)


@pytest.mark.parametrize("error", [Later(3_600), Broken("item 3 is broken")])
def test_what_comes_behind_a_deleted_job_is_due(app: Lowkiq, queue_name: str, error: BaseException) -> None:
    """What was pushed after the look stays, and no longer waits for the job that is gone."""
    worker, items = started(app, queue_name, error)
    before_the_call(app, "delete", lambda: worker.push_many(jobs_of("a", payload="new")))

    assert 1 == app.operate(worker).waiting.delete(["a"])
    app.drain()

    assert [(None, ["old"]), (None, ["new"])] == runs_of(items)
    assert {} == left_behind(app, worker)


def before_the_call(app: Lowkiq, script: str, do: Callable[[], object]) -> None:
    """Do something once, at the last moment before a script runs."""
    backend, left = app.core.backend, [do]
    run = backend.run

    def run_after(name: str, *args: Any, **options: Any) -> Any:
        if name == script and left:
            left.pop()()
        return run(name, *args, **options)

    backend.run = run_after  # type: ignore[method-assign]  # that is the point


@pytest.mark.parametrize(
    ("script", "act"),
    [
        ("delete", lambda queue: queue.waiting.delete(["a"])),
        ("kill", lambda queue: queue.waiting.kill(["a"])),
        ("run_now", lambda queue: queue.waiting.run_now(["a"])),
    ],
)
def test_what_was_pushed_and_started_after_the_look_stays(
    app: Lowkiq, queue_name: str, script: str, act: Callable[[QueueOperations], int]
) -> None:
    """LB-11: whoever looked before knows nothing of it, though by now it is a started job that waits."""
    items = stopping(Broken("item 3 is broken"))
    worker = declare_items(app, queue_name, items)
    app.core.queues.agreed(worker)

    def push_and_start() -> None:
        worker.push_many(jobs_of("a", payload="new"))
        app.drain()

    before_the_call(app, script, push_and_start)

    assert 0 == act(app.operate(worker))
    (waiting,) = app.operate(worker).waiting.fetch(["a"])
    assert waiting.progress is not None
    assert (3, ["new"]) == (waiting.progress.cursor, [payload for payload, _ in waiting.payloads])
    assert waiting.due_at > app.core.backend.now(app.core.queues.agreed(worker).shards[0])


@pytest.mark.parametrize("error", [Later(3_600), Broken("item 3 is broken")])
def test_performed_now_it_goes_on_from_its_cursor(app: Lowkiq, queue_name: str, error: BaseException) -> None:
    """Before what waits behind it, and with its retry_count."""
    worker, items = started(app, queue_name, error)
    (waiting,) = app.operate(worker).waiting.fetch(["a"])
    worker.push_many(jobs_of("a", payload="new"))

    assert 1 == app.operate(worker).waiting.run_now(["a"])
    (due,) = app.operate(worker).waiting.fetch(["a"])
    app.drain()

    assert due.retry_count == waiting.retry_count
    assert [(None, ["old"]), (3, ["old"]), (None, ["new"])] == runs_of(items)
    assert {} == left_behind(app, worker)


def test_killed_and_requeued_it_goes_on_from_its_cursor(app: Lowkiq, queue_name: str) -> None:
    """The progress goes to the morgue with the one payload, and comes back with it."""
    worker, items = started(app, queue_name, Broken("item 3 is broken"))

    assert 1 == app.operate(worker).waiting.kill(["a"])
    (dead,) = app.operate(worker).morgue.fetch(["a"])
    assert dead.progress is not None
    assert (3, {}) == (dead.progress.cursor, left_behind(app, worker))
    assert 1 == app.operate(worker).morgue.requeue(["a"])
    (waiting,) = app.operate(worker).waiting.fetch(["a"])
    app.drain()

    assert (-1, [(None, ["old"]), (3, ["old"])]) == (waiting.retry_count, runs_of(items))
    assert (list(range(6)), {}) == (items.of("a"), left_behind(app, worker))


def test_a_job_that_was_put_off_has_not_failed_and_is_not_killed(app: Lowkiq, queue_name: str) -> None:
    """It stays where it is."""
    worker, items = started(app, queue_name, Later(3_600))

    assert 0 == app.operate(worker).waiting.kill(["a"]) + app.operate(worker).waiting.kill(everything=True)

    app.operate(worker).waiting.run_now(["a"])
    app.drain()
    assert [(None, ["old"]), (3, ["old"])] == runs_of(items)


@pytest.mark.parametrize("pushed", ["before it is killed", "before it is put back"])
def test_requeued_in_company_it_starts_anew(app: Lowkiq, queue_name: str, pushed: str) -> None:
    """P3: its cursor was made on its own payload alone."""
    worker, items = started(app, queue_name, Broken("item 3 is broken"))
    if pushed == "before it is killed":
        worker.push_many(jobs_of("a", payload="new"))
    app.operate(worker).waiting.kill(["a"])
    if pushed == "before it is put back":
        worker.push_many(jobs_of("a", payload="new"))

    app.operate(worker).morgue.requeue(["a"])
    app.drain()

    assert [(None, ["old"]), (None, ["old", "new"])] == runs_of(items)
    assert ([], {}) == (ids_of(app.operate(worker).morgue.fetch(["a"])), left_behind(app, worker))


IN_FLIGHT: dict[str, tuple[Callable[[QueueOperations], int], int, list[Any]]] = {
    "delete": (lambda queue: queue.waiting.delete(["a"]), 1, []),
    "kill": (lambda queue: queue.waiting.kill(["a"]) + queue.waiting.kill(everything=True), 0, ["new"]),
    "run now": (lambda queue: queue.waiting.run_now(["a"]), 1, ["new"]),
    "requeue": (lambda queue: queue.morgue.requeue(["a"]), 1, ["dead", "new"]),
}


@pytest.mark.parametrize("error", [None, Later(3_600), Broken("item 5 is broken")])
@pytest.mark.parametrize("action", IN_FLIGHT)
def test_an_action_on_a_job_that_runs_is_one_on_what_waits_behind_it(
    make_app: MakeApp, clock: ManualClock, queue_name: str, action: str, error: BaseException | None
) -> None:
    """E-80: the job keeps its payload and its cursor, however its run ends."""
    app = make_app(settle_interval=0.0)
    act, changes, rest = IN_FLIGHT[action]
    changed, errors = list[int](), [error] if error else []

    def before(job: BatchJob, item: int) -> None:
        if job.payloads == ["dead"]:
            raise Broken("it is dead")
        if item == STOPS_AT and not changed:
            worker.push_many([{"id": "a", "payload": "new", "delay": 60.0}])
            changed.append(act(app.operate(worker)))
        if item == 5 and errors:
            raise errors.pop()

    items = Items(6, before)
    worker = declare_items(app, queue_name, items)
    if action == "requeue":
        worker.push_many(jobs_of("a", payload="dead"))
        app.drain()
        app.operate(worker).waiting.kill(["a"])
        items.runs.clear()
    worker.push_many(jobs_of("a", payload="old"))
    for _ in range(3):
        app.drain()
        clock.advance(4_000)

    assert [changes] == changed
    gone_on = [(5, ["old"])] if error else []
    assert [(None, ["old"]), *gone_on, *([(None, rest)] if rest else [])] == runs_of(items)
    assert ([], {}) == (ids_of(app.operate(worker).morgue.fetch(["a"])), left_behind(app, worker))


@pytest.mark.parametrize("action", ["kill", "delete"])
def test_what_comes_behind_failed_payloads_that_are_gone_starts_anew(
    app: Lowkiq, clock: ManualClock, queue_name: str, action: str
) -> None:
    """The id has two payloads that failed, one of them started: a push after the look inherits nothing of either."""

    def fail(job: BatchJob, item: int) -> None:
        # The first payload fails before it has a cursor, the one that goes before it later on.
        if item == (0 if job.payloads == ["first"] else STOPS_AT):
            raise Broken("broken")

    worker = declare_items(app, queue_name, Items(6, fail), payloads_at_once=1)
    worker.push_many([{"id": "a", "payload": "first", "score": 2}])
    app.drain()
    worker.push_many([{"id": "a", "payload": "before it", "score": 1}])
    clock.advance(10)
    app.drain()
    before_the_call(app, action, lambda: worker.push_many([{"id": "a", "payload": "new", "score": 3}]))

    queue = app.operate(worker)
    assert 1 == (queue.waiting.kill(["a"]) if action == "kill" else queue.waiting.delete(["a"]))

    (waiting,) = app.operate(worker).waiting.fetch(["a"])
    assert (-1, None, ["new"]) == (waiting.retry_count, waiting.error, [payload for payload, _ in waiting.payloads])


def test_requeued_together_each_has_its_own_headers(app: Lowkiq, queue_name: str) -> None:
    """Also once another of them is done."""
    runs: dict[str, list[Any]] = {"a": [], "b": []}

    def note(job: BatchJob, item: int) -> None:
        if item == (job.cursor or 0):
            runs[job.id].append((job.cursor, [headers["trace"] for headers in job.headers]))
        if item == STOPS_AT and len(runs[job.id]) < 3:
            raise Broken("item 3 is broken")

    worker = declare_items(app, queue_name, Items(6, note))
    worker.push_many([{"id": id_, "payload": id_, "headers": {"trace": f"of {id_}"}} for id_ in runs])
    queue = app.operate(worker)
    app.drain()
    queue.waiting.kill(everything=True)

    assert 2 == queue.morgue.requeue(everything=True)
    app.drain()
    queue.waiting.run_now(["a"])
    app.drain()
    queue.waiting.run_now(["b"])
    app.drain()

    assert {id_: [(None, own), (3, own), (3, own)] for id_ in runs if (own := [f"of {id_}"])} == runs

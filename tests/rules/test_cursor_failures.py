"""Jobs with a cursor that fail, exit or cannot go on: what of their cursor stays, and which retry it is (P7, J-16)."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import pytest

from lowkiq_lambda import Batch, BatchJob, Later, Lowkiq, Worker
from lowkiq_lambda.engine.outcomes import EXIT_LIMIT
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Broken, Notes
from tests.kit.iterating import Items, declare_items
from tests.kit.looks import left_behind, look
from tests.kit.workers import declare, jobs_of

if TYPE_CHECKING:
    from lowkiq_lambda.engine.iteration import Iteration


def failing_at(*items: int) -> Callable[[BatchJob, int], None]:
    """Fails once at each of these items."""
    left = [*items]

    def before(_job: BatchJob, item: int) -> None:
        if item in left:
            left.remove(item)
            raise Broken(f"item {item} is broken")

    return before


def always_failing_at(failing: int) -> Callable[[BatchJob, int], None]:
    """Fails at this item each time."""
    return failing_at(*[failing] * 100)


def drain_often(app: Lowkiq, clock: ManualClock, times: int) -> None:
    """With time enough for a retry between."""
    for _ in range(times):
        app.drain()
        clock.advance(1_000)


def test_p7_failures_between_which_it_moved_never_use_up_the_retries(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """P7, J-16: each of five failures at five items is the first, though there are two retries."""
    items = Items(10, failing_at(1, 3, 5, 7, 9))
    worker = declare_items(app, queue_name, items, max_retry_count=2)
    worker.push_many(jobs_of("a"))
    counts = []
    for _ in range(5):
        app.drain()
        counts.append(app.operate(worker).waiting.fetch(["a"])[0].retry_count)
        clock.advance(1_000)
    app.drain()

    assert ([0.0] * 5, [None, 1, 3, 5, 7, 9]) == (counts, items.cursors)
    assert (list(range(10)), [], {}) == (items.of("a"), items.exhausted.dead, left_behind(app, worker))


def test_p7_failures_without_movement_use_up_the_retries(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P7: n retries are n + 1 failures since the cursor last moved; no item behind the broken one is done."""
    items = Items(10, always_failing_at(6))
    worker = declare_items(app, queue_name, items, max_retry_count=2)
    worker.push_many(jobs_of("a", payload="v"))

    drain_often(app, clock, 3)

    (dead,) = items.exhausted.dead
    assert ("a", "item 6 is broken", [None, 6, 6]) == (dead.id, dead.error, items.cursors)
    assert (list(range(6)), {}) == (items.of("a"), left_behind(app, worker))


@pytest.mark.parametrize("stopped", [False, True])
def test_p7_a_job_that_ignores_its_cursor_uses_up_the_retries(
    app: Lowkiq, clock: ManualClock, queue_name: str, *, stopped: bool
) -> None:
    """P7: it comes to the same cursor each time, and fails there; a stop there is no movement either."""
    seen, kept = list[tuple[Any, float]](), Notes()

    def perform_job(_self: Worker, job: BatchJob) -> Iterator[int]:
        seen.append((job.cursor, job.retry_count))
        yield from range(42)
        if stopped and len(seen) == 2:
            raise Later(1)
        raise Broken("item 42 is broken")

    worker = declare(app, queue_name, kept, perform_job=perform_job, max_retry_count=2)
    worker.push_many(jobs_of("a", payload="v"))

    drain_often(app, clock, 6)

    stop = [(41, 0.0)] if stopped else []
    assert [(None, -1.0), *stop, (41, 0.0), (41, 1.0)] == seen
    assert (["item 42 is broken"], {}) == ([job.error for job in kept.dead], left_behind(app, worker))


def test_exits_of_a_job_that_ignores_its_cursor_are_a_failure(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """It comes to the same cursor each time, so five exits in a row are its own."""
    runs = list[Any]()

    def perform_job(_self: Worker, job: BatchJob) -> Iterator[int]:
        runs.append(job.cursor)
        yield from range(3)
        raise SystemExit

    worker = declare(app, queue_name, Notes(), perform_job=perform_job, max_retry_count=1)
    worker.push_many(jobs_of("a"))
    for _ in range(EXIT_LIMIT + 1):
        with pytest.raises(SystemExit):
            app.drain()
        clock.advance(20)

    (job,) = app.operate(worker).waiting.fetch(["a"])
    assert "exited 5 times in a row" in str(job.error)


@pytest.mark.parametrize("ends", ["fails", "asks for later", "saves", "exits"])
def test_a_progress_that_cannot_be_kept_is_the_failure_of_its_job(
    make_app: MakeApp, clock: ManualClock, queue_name: str, ends: str
) -> None:
    """P7: its neighbours run, and the visit goes on."""
    app, done, kept = make_app(settle_interval=0.0 if ends == "saves" else 1.0), list[str](), Notes()
    raised = {"fails": Broken("broken"), "asks for later": Later(5), "exits": SystemExit()}

    def perform_job(_self: Worker, job: BatchJob) -> Iterator[int]:
        if job.id == "a":
            cast("Iteration", job.iteration).progress.total = 10**30
            yield 1
            raise raised[ends]
        done.append(job.id)

    worker = declare(app, queue_name, kept, perform_job=perform_job, max_retry_count=1)
    worker.push_many(jobs_of("ab"))
    for _ in range(2):
        with suppress(SystemExit):
            app.drain()
    seen = look(app, worker, "a")

    assert ["b"] == done
    assert seen is not None
    if ends != "exits":
        assert (0, "broken" if ends == "fails" else "can't serialize ints < -2**63 or > 2**64 - 1") == (
            seen.retry_count,
            seen.error,
        )
        clock.advance(1_000)
        app.drain()
        assert ["a"] == [job.id for job in kept.dead]


def test_what_is_requeued_goes_on_there(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Its cursor is kept with it."""
    items = Items(10, failing_at(6, 6))
    worker = declare_items(app, queue_name, items, max_retry_count=1)
    worker.push_many(jobs_of("a", payload="v"))
    drain_often(app, clock, 2)
    assert ["a"] == [job.id for job in items.exhausted.dead]

    app.operate(worker).morgue.requeue(["a"])
    app.drain()

    assert ([None, 6, 6], list(range(10)), ["a"]) == (items.cursors, items.of("a"), items.ended)


def test_the_rest_of_several_payloads_starts_anew(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P3: a cursor is one of the payloads that it was made on, and the oldest of them is dead."""
    items = Items(4, failing_at(2, 2))
    worker = declare_items(app, queue_name, items, max_retry_count=1)
    worker.push_many([{"id": "a", "payload": number, "score": number} for number in (1, 2)])
    drain_often(app, clock, 3)

    assert [(None, [1, 2]), (2, [1, 2]), (None, [2])] == [run[1:] for run in items.runs]
    assert [1] == [payload for (job,) in [items.exhausted.dead] for payload, _ in job.payloads]


def test_a_failure_waits_with_all_payloads_of_its_id(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P4: what is pushed to a started job, an equal payload or another, comes after it, and moves no retry."""
    items = Items(4, failing_at(2))
    worker = declare_items(app, queue_name, items)
    worker.push_many(jobs_of("a", payload="old"))
    app.drain()
    (job,) = app.operate(worker).waiting.fetch(["a"])

    pushed = worker.push_many([{"id": "a", "payload": payload} for payload in ("old", "new")])

    assert [True, True] == [one.merged for one in pushed]
    assert job.due_at == pushed[0].due_at == app.operate(worker).waiting.fetch(["a"])[0].due_at
    app.drain()
    assert 1 == len(items.runs)
    clock.advance(20)
    app.drain()
    assert [(None, ["old"]), (2, ["old"]), (None, ["old", "new"])] == [run[1:] for run in items.runs]


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit])
def test_an_exit_keeps_what_was_yielded(app: Lowkiq, queue_name: str, kind: type[BaseException]) -> None:
    """E-54: it is returned, with its retry_count as it was."""
    leaving = [kind()]

    def before(_job: BatchJob, item: int) -> None:
        if item == 3 and leaving:
            raise leaving.pop()

    items = Items(6, before)
    worker = declare_items(app, queue_name, items)
    worker.push_many(jobs_of("a"))

    with pytest.raises(kind):
        app.drain()
    app.drain()

    assert ([None, 3], list(range(6))) == (items.cursors, items.of("a"))


def test_exits_between_which_it_moved_never_are_a_failure(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A job that ends its process after each item comes to its end, too."""

    def before(_job: BatchJob, item: int) -> None:
        if item > len(items.runs) - 1:
            raise SystemExit

    items = Items(3 * EXIT_LIMIT, before)
    worker = declare_items(app, queue_name, items)
    worker.push_many(jobs_of("a"))
    for _ in range(3 * EXIT_LIMIT - 1):
        with pytest.raises(SystemExit):
            app.drain()
        assert [-1] == [job.retry_count for job in app.operate(worker).waiting.fetch(["a"])]
        clock.advance(20)
    app.drain()

    assert (list(range(3 * EXIT_LIMIT)), ["a"]) == (items.of("a"), items.ended)


def test_exits_without_movement_are_a_failure(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Five in a row, as for any job; the cursor stays."""

    def before(_job: BatchJob, item: int) -> None:
        if item == 2 and len(items.runs) <= EXIT_LIMIT:
            raise SystemExit

    items = Items(3, before)
    worker = declare_items(app, queue_name, items)
    worker.push_many(jobs_of("a"))
    for _ in range(EXIT_LIMIT):
        with pytest.raises(SystemExit):
            app.drain()
        clock.advance(20)
    seen = look(app, worker, "a")
    clock.advance(1_000)
    app.drain()

    assert seen is not None
    assert "exited 5 times in a row" in str(seen.error)
    assert ([None, *[2] * EXIT_LIMIT], [0, 1, 2]) == (items.cursors, items.of("a"))


def test_ctrl_c_keeps_what_was_yielded(app: Lowkiq, queue_name: str) -> None:
    """The job is given back before the exception goes on."""

    def before(_job: BatchJob, item: int) -> None:
        if item == 2 and len(items.runs) == 1:
            raise KeyboardInterrupt

    items = Items(4, before)
    worker = declare_items(app, queue_name, items)
    worker.push_many(jobs_of("a"))

    with pytest.raises(KeyboardInterrupt):
        app.drain()
    app.drain()

    assert ([None, 2], [0, 1, 2, 3]) == (items.cursors, items.of("a"))


def test_ctrl_c_within_a_save_ends_the_visit(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """E-54: nobody knows whether the call was applied, so no outcome follows it; the job goes on from there."""
    app = make_app(settle_interval=0.0)
    items = Items(4)
    worker = declare_items(app, queue_name, items)
    worker.push_many(jobs_of("a"))
    backend, run = app.core.drains.drainer._backend, app.core.drains.drainer._backend.run

    def interrupted(name: str, *args: Any, **options: Any) -> Any:
        answer = run(name, *args, **options)
        if name == "checkpoint" and len(items.done) == 2:
            raise KeyboardInterrupt
        return answer

    backend.run = interrupted  # type: ignore[method-assign]  # that is the point
    with pytest.raises(KeyboardInterrupt):
        app.drain()
    backend.run = run  # type: ignore[method-assign]  # as it was
    outlive(app, clock, worker)
    app.drain()

    assert ([None, 2], [0, 1, 2, 3], {}) == (items.cursors, items.of("a"), left_behind(app, worker))


def test_an_item_that_ends_its_process_dies_though_it_saves(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """E-50: a save that says the same as the one before is no movement, and takes no counted crash back."""
    mortal, cursors = Mortal(app), list[Any]()

    def perform_job(_self: Worker, job: BatchJob) -> Iterator[Any]:
        cursors.append(job.cursor)
        for cursor in range(1 if job.cursor is None else 3):
            clock.advance(1.0)
            yield None if cursor else 1
        mortal.die()

    worker = declare(app, queue_name, Items(0).exhausted, perform_job=perform_job)
    worker.push_many(jobs_of("a"))
    deaths = 0
    while mortal.drain() is None and deaths < 20:
        deaths += 1
        outlive(app, clock, worker)

    assert (4, [None, 1, 1, 1]) == (deaths, cursors)
    assert ["a"] == [job.id for job in app.operate(worker).morgue.fetch(["a"])]


def test_cleanup_that_raises_fails_the_job_and_keeps_its_cursor(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """J-40: `finally` runs when the job is stopped, and is the job's own."""
    cursors = list[Any]()

    def perform_job(_self: Worker, job: BatchJob) -> Iterator[int]:
        cursors.append(job.cursor)
        try:
            for item in range(job.cursor or 0, 4):
                clock.advance(1.0)
                yield item + 1
        finally:
            if len(cursors) == 1:
                raise Broken("cleanup is broken")

    worker = declare(app, queue_name, lambda _batch: None, perform_job=perform_job)
    worker.push_many(jobs_of("a"))

    counts = app.drain(seconds=2.5)
    seen = look(app, worker, "a")
    clock.advance(60)
    app.drain()

    assert {"retried": 1, "failed": 1} == {outcome: n for outcome, n in counts.items() if n}
    assert seen is not None
    assert ("cleanup is broken", 0, [None, 2]) == (seen.error, seen.retry_count, cursors)


def test_a_bad_cursor_fails_the_job_and_the_one_before_stays(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """J-6: the sentence names the path and the type."""
    cursors = list[Any]()

    def perform_job(_self: Worker, job: BatchJob) -> Iterator[Any]:
        cursors.append(job.cursor)
        if job.cursor is None:
            yield {"row": 1}
            yield {"row": {1, 2}}
        yield {"row": 3}

    worker = declare(app, queue_name, lambda _batch: None, perform_job=perform_job)
    worker.push_many(jobs_of("a"))
    app.drain()
    seen = look(app, worker, "a")
    clock.advance(60)
    app.drain()

    assert seen is not None
    assert ("The cursor cannot be kept: at .row: JSON has no form for set: give a list instead.", 0) == (
        seen.error,
        seen.retry_count,
    )
    assert [None, {"row": 1}] == cursors


@pytest.mark.parametrize("again", ["after the end", "after a failure"])
def test_a_middleware_that_calls_on_twice_goes_on(app: Lowkiq, queue_name: str, again: str) -> None:
    """What is done is not done again, and what failed goes on from its last cursor."""

    def twice(_worker: object, _batch: Batch, call_next: Callable[[], object]) -> object:
        call_next()
        return call_next()

    app.server_middlewares.append(twice)
    items = Items(5, failing_at(3) if again == "after a failure" else None)
    worker = declare_items(app, queue_name, items)
    worker.push_many(jobs_of("a"))

    assert {"done": 1} == app.drain()

    assert ([None, 3] if again == "after a failure" else [None]) == items.cursors
    assert (list(range(5)), {}) == (items.of("a"), left_behind(app, worker))


def test_a_middleware_that_raises_afterwards_keeps_the_cursor(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Where it was stopped, it goes on, whatever else goes wrong."""

    def raising(_worker: object, _batch: Batch, call_next: Callable[[], object]) -> object:
        call_next()
        raise Broken("the middleware is broken")

    items = Items(5, lambda _job, _item: clock.advance(1.0))
    worker = declare_items(app, queue_name, items)
    worker.push_many(jobs_of("a"))
    app.server_middlewares.append(raising)
    app.drain(seconds=2.5)
    app.server_middlewares.clear()
    clock.advance(60)
    app.drain()

    assert ([None, 2], list(range(5))) == (items.cursors, items.of("a"))


def test_j17_a_cursor_of_another_version_waits_for_code_that_reads_it(
    make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """J-17: never silently from the start: it fails and keeps the cursor, until an upgrade is there."""
    old, unable, new = make_app(), make_app(), make_app()
    items = Items(6, lambda _job, _item: clock.advance(1.0))
    declare_items(old, queue_name, items).push_many(jobs_of("a"))
    old.drain(seconds=3.5)

    worker = declare_items(unable, queue_name, items, cursor_version=2)
    unable.drain()
    seen = look(unable, worker, "a")
    clock.advance(60)
    upgrades = list[tuple[Any, int]]()

    def upgrade(_self: Worker, cursor: Any, version: int) -> Any:
        upgrades.append((cursor, version))
        return cursor + 1

    declare_items(new, queue_name, items, cursor_version=2, upgrade_cursor=upgrade)
    new.drain()

    assert seen is not None
    assert "The cursor is of version 1, and Noting.cursor_version is 2" in str(seen.error)
    assert ([(3, 1)], [None, 4], ["a"]) == (upgrades, items.cursors, items.ended)


@pytest.mark.parametrize("kind", ["perform", "perform_job"])
def test_a_plain_worker_takes_over(make_app: MakeApp, clock: ManualClock, queue_name: str, kind: str) -> None:
    """P2: a started job whose worker has no cursor any more gets its payloads, and is done when it returns."""
    before, after = make_app(), make_app()
    items, jobs = Items(6, lambda _job, _item: clock.advance(1.0)), list[BatchJob]()
    declare_items(before, queue_name, items).push_many(jobs_of("a", payload="v"))
    before.drain(seconds=3.5)

    def perform(_self: Worker, batch: Batch) -> None:
        jobs.extend(batch.job(job_id) for job_id in batch)

    def perform_job(_self: Worker, job: BatchJob) -> None:
        jobs.append(job)

    handlers: dict[str, Any] = {"perform": perform, "perform_job": perform_job}
    worker = declare(after, queue_name, lambda _batch: None, **{kind: handlers[kind]})
    after.drain()

    assert [(["v"], 3)] == [(job.payloads, job.cursor) for job in jobs]
    assert {} == left_behind(after, worker)

"""A-36, A-37, A-39: a task completes when all of its items have ended, once, whoever dies on the way."""

import threading
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor

import pytest

from lowkiq_lambda import Batch, Lowkiq, Rejected, Worker
from lowkiq_lambda.engine.queue import KNOWN_FOR
from lowkiq_lambda.store.shard.scripts import Reply
from lowkiq_lambda.tasks.items import ItemCounts, TaskItems
from lowkiq_lambda.tasks.task import Task
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.deaths import outlive
from tests.kit.handlers import Notes, raising
from tests.kit.workers import declare, jobs_of
from tests.tasks.dying import Calls, watched
from tests.tasks.watching import close_unlooked, counts


def test_a37_the_callback_comes_once_all_items_of_all_queues_have_ended(
    app: Lowkiq, queue_name: str, told: Notes, callback: type[Worker]
) -> None:
    """A-37: a job with the task's id and the payload that was given; done, failed and dead items count alike."""

    def handler(batch: Batch) -> None:
        for job_id in batch:
            if job_id == "b":
                batch.fail(job_id, Rejected("no"))

    first = declare(app, queue_name, handler, shards_count=2)
    second = declare(app, f"{queue_name}-2", Notes(raising()), max_retry_count=0)
    with app.task("export", on_complete=(callback, {"seller": 7})) as task:
        task.push_many(first, jobs_of("abc"))
        task.push_many(second, jobs_of("d"))

    app.drain()

    assert [{task.id: [{"seller": 7}]}] == told.batches
    assert ({"done": 2, "failed": 1, "dead": 1}, "completed") == (counts(task), task.progress().state)


def test_a_task_without_items_completes_when_it_is_closed(app: Lowkiq, told: Notes, callback: type[Worker]) -> None:
    """Nothing has to run for that; closing it once more changes nothing."""
    task = app.task("export", on_complete=(callback, None))

    task.close()
    task.close()
    app.drain()

    assert [{task.id: [None]}] == told.batches
    assert ("completed", 0) == (task.progress().state, task.progress().total)


def test_an_open_task_is_not_complete(app: Lowkiq, queue_name: str, told: Notes, callback: type[Worker]) -> None:
    """All of its items have ended, but more may come: only closing it, or its last item then, completes it."""
    worker = declare(app, queue_name, Notes())
    task = app.task("export", on_complete=(callback, None))
    task.push_many(worker, jobs_of("a"))
    app.drain()
    before = task.progress().state, app.tasks.upkeep(lambda: 10.0)

    task.close()
    app.drain()

    assert ("open", {"looked": 1}) == before
    assert 1 == len(told.batches)


def test_a_task_with_an_item_that_waits_for_its_retry_is_not_complete(
    app: Lowkiq, clock: ManualClock, queue_name: str, told: Notes, callback: type[Worker]
) -> None:
    """A-29, A-33: a failure that is tried again leaves its item open, with its message."""
    notes = Notes(raising())
    worker = declare(app, queue_name, notes)
    with app.task("export", on_complete=(callback, None)) as task:
        task.push_many(worker, jobs_of("a"))
    app.drain()
    (item,) = task.items(status="enqueued").items
    before = len(told.batches)
    notes.then = None

    clock.advance(60.0)
    app.drain()

    assert ("broken", 1, 0) == (item.text, item.attempts, before)
    assert ({"done": 1}, 1) == (counts(task), len(told.batches))


def test_a_dead_item_that_is_requeued_between_the_two_reads_keeps_the_task_open(
    app: Lowkiq, queue_name: str, told: Notes, callback: type[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader has counted it as dead once; the second wave tells that it was opened again, and nothing is pushed."""
    worker = declare(app, queue_name, Notes(raising()), max_retry_count=0)
    task = app.task("export", on_complete=(callback, None))
    task.push_many(worker, jobs_of("a"))
    app.drain()
    reader_asks, waves = type(app.operate(worker).reader).ask_each, []

    def ask(self: object, name: str, *args: object) -> list[Reply]:
        waves.append(name)
        if waves.count("task_counts") == 2 and name == "task_counts":
            app.operate(worker).morgue.requeue(everything=True)
        replies: list[Reply] = reader_asks(self, name, *args)  # type: ignore[arg-type]  # as it was called
        return replies

    with monkeypatch.context() as patch:
        patch.setattr(type(app.operate(worker).reader), "ask_each", ask)
        task.close()

    assert ("closed", {"enqueued": 1}) == (task.progress().state, counts(task))
    app.drain()
    assert 1 == len(told.batches)


def test_a_dead_item_that_was_requeued_and_died_again_between_the_two_reads_keeps_the_task_open(
    app: Lowkiq, queue_name: str, told: Notes, callback: type[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both waves count the same, but while it ran it may have pushed another item behind the reader's back."""
    worker = declare(app, queue_name, Notes(raising()), max_retry_count=0)
    task = app.task("export", on_complete=(callback, None))
    task.push_many(worker, jobs_of("a"))
    app.drain()
    counted, waves = TaskItems.counts, []

    def count(items: TaskItems) -> ItemCounts:
        waves.append("count")
        if len(waves) == 2:
            app.operate(worker).morgue.requeue(everything=True)
            app.drain()
        return counted(items)

    with monkeypatch.context() as patch:
        patch.setattr(TaskItems, "counts", count)
        # Nobody else looks at the task meanwhile.
        patch.setattr(app.core.drains.drainer, "look_at_tasks", None)
        task.close()

    # Not by `progress`, which looks once more.
    assert (2, "closed") == (len(waves), task._operations.records.get(task.id).record.state)
    assert ("completed", {"dead": 1}) == (task.progress().state, counts(task))
    app.drain()
    assert 1 == len(told.batches)


def test_a_queue_that_moves_between_the_two_reads_keeps_the_task_open(
    make_app: MakeApp, queue_name: str, told: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its items are in shards that the reader does not know: both of its waves find none that is open."""
    app, mover = make_app(), make_app()
    callback = declare(app, f"{queue_name}-callback", told)
    worker = declare(app, queue_name, Notes(), shards_count=2)
    task = app.task("export", on_complete=(callback, None))
    task.push_many(worker, jobs_of("abcdef"))
    moved = declare(mover, queue_name, Notes(), shards_count=2)
    counted = TaskItems.counts

    def move_and_count(items: TaskItems) -> ItemCounts:
        if mover.core.queues.agreed(moved).shards.layout.after == 2:
            mover.operate(moved).reshard(to=3)
        return counted(items)

    with monkeypatch.context() as patch:
        patch.setattr(TaskItems, "counts", move_and_count)
        task.close()

    assert ("closed", {"enqueued": 6}) == (task.progress().state, counts(task))
    app.drain()
    assert ("completed", 1) == (task.progress().state, len(told.batches))


def test_a_task_is_not_complete_while_a_queue_is_known_to_move(
    make_app: MakeApp, clock: ManualClock, queue_name: str, told: Notes
) -> None:
    """Its items are on their way, and no look at all shards finds each once: it completes when all have come."""
    app, mover = make_app(), make_app()
    callback = declare(app, f"{queue_name}-callback", told)
    worker = declare(app, queue_name, Notes(), shards_count=2)
    moves = mover.operate(declare(mover, queue_name, Notes(), shards_count=2)).resharding()
    task = app.task("export", on_complete=(callback, None))
    task.push_many(worker, jobs_of("abcdef"))
    app.drain()
    moves.begin(3)
    clock.advance(KNOWN_FOR)
    app.operate(worker).waiting.fetch(["a"])
    assert app.core.queues.agreed(worker).shards.layout.is_moving

    task.close()
    assert ("closed", {"done": 6}) == (task.progress().state, counts(task))
    moves.go_on(lambda *_: None)
    clock.advance(KNOWN_FOR)
    app.drain()
    states = [task.progress().state for _ in range(2)]
    app.drain()

    assert ("completed", 1) == (states[-1], len(told.batches))


def test_tasks_are_looked_at_once_others_may_have_the_shard(
    make_app: MakeApp, queue_name: str, told: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look takes a few calls, and the push of a callback: no job of the shard waits for that."""
    app, other, notes = make_app(), make_app(), Notes()
    callback = declare(app, f"{queue_name}-callback", told)
    worker = declare(app, queue_name, Notes())
    declare(other, queue_name, notes)
    with app.task("export", on_complete=(callback, None)) as task:
        task.push_many(worker, jobs_of("a"))
    look = app.core.drains.drainer.look_at_tasks
    assert look is not None

    running: list[object] = []

    def drain_and_look(tasks: Collection[bytes], remaining: Callable[[], float]) -> None:
        monkeypatch.undo()
        running.append(app.core.drains.drainer.running_jobs())
        worker.push_many(jobs_of("b"))
        other.drain()
        look(tasks, remaining)

    monkeypatch.setattr(app.core.drains.drainer, "look_at_tasks", drain_and_look)
    app.drain()

    assert ([[]], [["b"]], 1) == (running, notes.ids, len(told.batches))


class Takeover:
    """Two queues, a task over both with a callback, and another process that takes over whatever is left."""

    def __init__(self, make_app: MakeApp, clock: ManualClock, name: str) -> None:
        self.clock = clock
        self.told = Notes()
        self.apps = [make_app() for _ in range(2)]
        self.workers = [self._declare(app, name) for app in self.apps]
        # What was pushed stays to be counted: a job that runs may be delivered twice.
        self.apps[1].operate(self.workers[1][2]).pause()
        self.task: Task = self.apps[0].task("export", on_complete=(self.workers[0][2], "all"))
        self.pushed = 0

    def _declare(self, app: Lowkiq, name: str) -> tuple[type[Worker], ...]:
        first = declare(app, f"{name}-1", Notes(), shards_count=2)
        second = declare(app, f"{name}-2", Notes())
        return first, second, declare(app, f"{name}-3", self.told)

    def live(self) -> None:
        """What the first process does, until it dies."""
        first, second, _ = self.workers[0]
        for worker, ids in ((first, "abc"), (second, "d")):
            self.task.push_many(worker, jobs_of(ids))
            self.pushed += len(ids)
        self.task.close()
        self.apps[0].drain()

    def survive(self) -> Task:
        """What another process does then."""
        app, workers = self.apps[1], self.workers[1]
        task = app.tasks.get(self.task.id)
        task.close()
        outlive(app, self.clock, *workers[:2])
        app.drain()
        self.clock.advance(31.0)
        app.tasks.upkeep(lambda: 10.0)
        app.operate(workers[2]).resume()
        app.drain()
        return task


@pytest.mark.parametrize("answered", [False, True])
def test_a39_whatever_call_a_process_dies_in_the_task_completes_once(
    make_app: MakeApp, clock: ManualClock, queue_name: str, *, answered: bool
) -> None:
    """Register, push, claim, settle, look, callback, completed: before each call, or with its answer lost."""
    counted = Calls()
    with watched((alive := Takeover(make_app, clock, queue_name)).apps[0], counted):
        alive.live()
    alive.survive()
    assert {"swap_task", "enqueue", "acquire", "settle", "task_record"} <= {*counted.names}

    for number in range(len(counted.names)):
        scenario = Takeover(make_app, clock, f"{queue_name}-{number}")
        with watched(scenario.apps[0], Calls(number, answered=answered)):
            scenario.live()
        task = scenario.survive()

        progress, where = task.progress(), f"call {number}: {counted.names[number]}"
        assert ("completed", progress.total) == (progress.state, progress.counts["done"]), where
        assert scenario.pushed <= progress.total <= 4, where
        assert [{task.id: ["all"]}] == scenario.told.batches, where


def test_readers_that_race_push_one_callback(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """Four processes poll closed tasks at the same time, while a fifth performs the callbacks: each runs once."""
    apps = [make_app() for _ in range(4)]
    told = Notes()
    callbacks = [declare(app, queue_name, told) for app in apps]
    drainer, rounds = make_app(), 25
    declare(drainer, queue_name, told)
    barrier = threading.Barrier(len(apps))

    def poll(app: Lowkiq, tasks: list[str]) -> None:
        for task_id in tasks:
            barrier.wait(30)
            app.tasks.get(task_id).progress()

    tasks = [apps[0].task(f"task {number}", on_complete=(callbacks[0], number)) for number in range(rounds)]
    for task in tasks:
        close_unlooked(task, clock)
    with ThreadPoolExecutor(len(apps)) as threads:
        polling = [threads.submit(poll, app, [task.id for task in tasks]) for app in apps]
        while not all(future.done() for future in polling):
            drainer.drain()
        for future in polling:
            future.result()
    drainer.drain()

    runs = [job_id for batch in told.ids for job_id in batch]
    assert sorted(task.id for task in tasks) == sorted(runs)
    assert {"completed"} == {task.progress().state for task in tasks}

"""`on_success` and `on_failure`: each is pushed once, when it is true, whoever dies on the way."""

import pytest

from lowkiq_lambda import Batch, DeclarationError, JobError, Lowkiq, Rejected, Unique, Worker
from lowkiq_lambda.tasks.record import id_bytes
from lowkiq_lambda.tasks.task import Task
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.deaths import outlive
from tests.kit.handlers import FailingHandler, Notes, raising
from tests.kit.workers import declare, jobs_of
from tests.tasks.dying import Calls, watched


def with_callbacks(app: Lowkiq, callback: type[Worker], name: str = "export") -> Task:
    """A task with all three."""
    return app.task(name, (callback, "complete"), on_success=(callback, "success"), on_failure=(callback, "failure"))


def payloads(told: Notes) -> list[str]:
    """Those of the callbacks, in the order in which they ran."""
    return [payload for batch in told.batches for own in batch.values() for payload in own]


def test_a_task_whose_items_all_end_well_succeeds(
    app: Lowkiq, queue_name: str, told: Notes, callback: type[Worker]
) -> None:
    """Done and merged items; it is told when."""
    worker = declare(app, queue_name, Notes())
    worker.push("b", 1, key="evt")
    with with_callbacks(app, callback) as task:
        task.push_many(worker, jobs_of("a"))
        task.push(worker, "b", 1, key="evt")

    app.drain()

    progress = task.progress()
    assert ["complete", "success"] == payloads(told)
    assert (None, True) == (progress.failed_at, (progress.succeeded_at or 0.0) >= (progress.completed_at or 1.0))


@pytest.mark.parametrize("unique", [Unique("busy"), Unique(on_conflict="replace"), Unique(on_conflict="raise")])
def test_a_worker_whose_pushes_are_unique_gets_each_callback(
    app: Lowkiq, queue_name: str, told: Notes, unique: Unique
) -> None:
    """All callbacks of a task have its id: the one that waits drops no other, and is replaced by none."""
    callback = declare(app, f"{queue_name}-unique", told, unique=unique)
    worker = declare(app, queue_name, Notes())
    with with_callbacks(app, callback) as task:
        task.push_many(worker, jobs_of("ab"))

    app.drain()

    assert ["complete", "success"] == payloads(told)


def test_a_task_without_items_succeeds(app: Lowkiq, told: Notes, callback: type[Worker]) -> None:
    """It is complete when it is closed."""
    with_callbacks(app, callback).close()
    app.drain()

    assert ["complete", "success"] == payloads(told)


@pytest.mark.parametrize("error", [Rejected("no"), OSError("no")])
def test_the_first_failure_is_told_once_and_at_once(
    app: Lowkiq, queue_name: str, told: Notes, callback: type[Worker], error: Exception
) -> None:
    """Though the task is open and other items wait; no later failure is told, and it does not succeed."""
    worker = declare(app, queue_name, Notes(raising(error)), max_retry_count=0)
    task = with_callbacks(app, callback)
    task.push_many(worker, jobs_of("a"))
    app.drain()
    first, state = payloads(told), task.progress().state
    task.push_many(worker, jobs_of("bc"))
    task.close()
    app.drain()

    assert (["failure"], "open") == (first, state)
    assert ["failure", "complete"] == payloads(told)
    assert task.progress().succeeded_at is None


def test_a_task_succeeds_later_when_what_was_dead_is_done(
    app: Lowkiq, queue_name: str, told: Notes, callback: type[Worker]
) -> None:
    """It stays complete, and its on_complete is not pushed again."""
    handler = FailingHandler()
    handler.failing = {"a"}
    worker = declare(app, queue_name, handler, max_retry_count=0)
    with with_callbacks(app, callback) as task:
        task.push_many(worker, jobs_of("ab"))
    app.drain()
    before = payloads(told)

    handler.failing = set()
    app.operate(worker).morgue.requeue(everything=True)
    app.drain()

    assert ["failure", "complete"] == before
    assert ["failure", "complete", "success"] == payloads(told)
    assert ("completed", 2) == (task.progress().state, task.progress().counts["done"])


def test_the_duty_pushes_what_no_drain_has_pushed(
    app: Lowkiq, queue_name: str, told: Notes, callback: type[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure of an open task, and a success after the completion, of drains that died before they looked."""
    monkeypatch.setattr(app.core.drains.drainer, "look_at_tasks", None)
    handler = FailingHandler()
    handler.failing = {"a"}
    worker = declare(app, queue_name, handler, max_retry_count=0)
    task = with_callbacks(app, callback)
    task.push_many(worker, jobs_of("a"))
    app.drain()
    app.tasks.upkeep(lambda: 10.0)
    app.drain()
    told_failure = payloads(told)
    task.close()
    handler.failing = set()
    app.operate(worker).morgue.requeue(everything=True)
    app.drain()
    app.tasks.upkeep(lambda: 10.0)
    app.drain()

    assert ["failure"] == told_failure
    assert ["failure", "complete", "success"] == payloads(told)
    assert {} == app.tasks.upkeep(lambda: 10.0)


def test_a_complete_task_that_may_succeed_is_looked_at_until_it_is_forgotten(
    app: Lowkiq, clock: ManualClock, queue_name: str, callback: type[Worker]
) -> None:
    """One without `on_success` is not: nobody pays for what he does not use."""
    worker = declare(app, queue_name, Notes(raising(Rejected("no"))))
    plain, hopeful = app.task("plain"), with_callbacks(app, callback)
    for task in (plain, hopeful):
        with task:
            task.push_many(worker, jobs_of("a"))
    app.drain()

    looks = [app.tasks.upkeep(lambda: 10.0) for _ in range(2)]
    clock.advance(8 * 86_400.0)
    app.tasks.upkeep(lambda: 10.0)

    assert [{"looked": 1, "completed": 0}, {"looked": 1, "completed": 0}] == looks
    assert {} == app.tasks.upkeep(lambda: 10.0)


def test_two_drains_that_both_see_the_first_death_push_one_on_failure(
    make_app: MakeApp, queue_name: str, told: Notes
) -> None:
    """Both find the task without a failure, and push; the receipt of the key absorbs the second push."""
    apps = [make_app() for _ in range(2)]
    callbacks = [declare(app, f"{queue_name}-callback", told) for app in apps]
    workers = [declare(app, f"{queue_name}-{at}", Notes(raising()), max_retry_count=0) for at, app in enumerate(apps)]
    first, second = apps
    declare(first, f"{queue_name}-1", Notes(raising()), max_retry_count=0)
    task = with_callbacks(first, callbacks[0])
    task.push_many(workers[0], jobs_of("a"))
    task.push_many(first.core.queues[f"{queue_name}-1"].worker, jobs_of("b"))
    completion, pushed = first.tasks._operations.completion, []
    push = type(completion)._push

    def push_beside(self: object, *args: object) -> None:
        push(self, *args)  # type: ignore[arg-type]  # as it was called
        pushed.append(args[-1])
        if len(pushed) == 1:
            # Before the first has noted that it was told.
            second.drain()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(completion), "_push", push_beside)
        first.drain()
        second.drain()
    first.drain()

    assert [":failure"] * 2 == pushed
    assert ["failure"] == payloads(told)


def test_a_drain_looks_at_no_failure_of_a_task_that_does_not_want_to_know(
    app: Lowkiq, queue_name: str, callback: type[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its items say so, and the visit costs no call more."""
    worker = declare(app, queue_name, Notes(raising(Rejected("no"))))
    tasks = [app.task("plain", (callback, None)), with_callbacks(app, callback)]
    looked: list[bytes] = []
    monkeypatch.setattr(app.core.drains.drainer, "look_at_tasks", lambda found, _: looked.extend(found))
    for task in tasks:
        task.push(worker, task.id)
        task.push(worker, "later", delay=60)

    app.drain()

    assert [id_bytes(tasks[1].id) + b"f"] == looked


def test_a_cancelled_task_tells_nobody(app: Lowkiq, queue_name: str, told: Notes, callback: type[Worker]) -> None:
    """Neither that it failed, nor that it is complete."""
    handler = Notes(lambda batch: task.cancel() if "a" in batch else None)
    worker = declare(app, queue_name, lambda batch: (handler(batch), raising(Rejected("no"))(batch)))
    task = with_callbacks(app, callback)
    task.push_many(worker, jobs_of("a"))
    app.drain()
    app.tasks.upkeep(lambda: 10.0)
    app.drain()

    assert ([], "cancelled") == (payloads(told), task.progress().state)


def test_bad_callbacks_are_refused(app: Lowkiq, make_app: MakeApp, queue_name: str, callback: type[Worker]) -> None:
    """By the name of the option; and no option that there is none of."""
    stranger = declare(make_app(), f"{queue_name}-other", Notes())
    wrong: list[tuple[dict[str, object], type[Exception], str]] = [
        ({"on_success": callback}, DeclarationError, "on_success is a worker and a payload"),
        ({"on_failure": (stranger, None)}, DeclarationError, "on_failure: .* is not a worker of this app"),
        ({"on_success": (callback, {1})}, JobError, "set"),
        ({"on_death": (callback, None)}, DeclarationError, "has no option 'on_death'"),
    ]
    for options, error, words in wrong:
        with pytest.raises(error, match=words):
            app.task("export", **options)  # type: ignore[arg-type]  # that is the point


class Outlived:
    """A task with callbacks, one of whose items dies and is put back, in a process that may die at any call."""

    def __init__(self, make_app: MakeApp, clock: ManualClock, name: str) -> None:
        self.clock = clock
        self.told = Notes()
        self.apps = [make_app() for _ in range(2)]
        self.handlers = [FailingHandler() for _ in self.apps]
        self.handlers[0].failing = {"b"}
        self.workers = [
            (declare(app, name, handler, max_retry_count=0), declare(app, f"{name}-2", self.told))
            for app, handler in zip(self.apps, self.handlers, strict=True)
        ]
        self.task = with_callbacks(self.apps[0], self.workers[0][1])
        self.task.push_many(self.workers[0][0], jobs_of("ab"))
        # Callbacks stay to be counted: a job that runs may be delivered twice.
        self.apps[1].operate(self.workers[1][1]).pause()

    def live(self) -> None:
        """The first process, until it dies."""
        self.task.close()
        self.apps[0].drain()
        self.handlers[0].failing = set()
        self.apps[0].operate(self.workers[0][0]).morgue.requeue(everything=True)
        self.apps[0].drain()

    def survive(self) -> list[str]:
        """Another process, which puts back what is dead; the callbacks that run then."""
        app, (worker, callback) = self.apps[1], self.workers[1]
        task = app.tasks.get(self.task.id)
        task.close()
        for _ in range(2):
            outlive(app, self.clock, worker)
            app.drain()
            self.clock.advance(31.0)
            app.tasks.upkeep(lambda: 10.0)
            app.operate(worker).morgue.requeue(everything=True)
        app.drain()
        app.tasks.upkeep(lambda: 10.0)
        app.operate(callback).resume()
        app.drain()
        assert "completed" == task.progress().state
        return sorted(payload for batch in self.told.batches for own in batch.values() for payload in own)


@pytest.mark.parametrize("answered", [False, True])
def test_whatever_call_a_process_dies_in_each_callback_is_pushed_once(
    make_app: MakeApp, clock: ManualClock, queue_name: str, *, answered: bool
) -> None:
    """A death that is never seen is no failure that was told: then only completion and success are."""
    counted = Calls()
    with watched((alive := Outlived(make_app, clock, queue_name)).apps[0], counted):
        alive.live()
    assert ["complete", "failure", "success"] == alive.survive()

    untold = 0
    for number in range(len(counted.names)):
        scenario = Outlived(make_app, clock, f"{queue_name}-{number}")
        with watched(scenario.apps[0], Calls(number, answered=answered)):
            scenario.live()
        pushed, where = scenario.survive(), f"call {number}: {counted.names[number]}"
        untold += "failure" not in pushed
        assert ["complete", "success"] == [one for one in pushed if one != "failure"], where
        assert pushed.count("failure") <= 1, where
    assert untold < len(counted.names) / 2


def test_payloads_that_are_equal_run_as_one(app: Lowkiq, told: Notes, callback: type[Worker]) -> None:
    """Callbacks are jobs of the task's id: of two that one worker gets with one payload a single one runs."""
    app.task("export", (callback, "over"), on_success=(callback, "over")).close()
    app.drain()

    assert ["over"] == payloads(told)


def test_a_batch_that_marks_one_payload_as_failed_is_a_failure(
    app: Lowkiq, queue_name: str, told: Notes, callback: type[Worker]
) -> None:
    """Partial success: the item of that payload fails."""

    def handler(batch: Batch) -> None:
        batch.fail("a", Rejected("no"), payload=0)

    worker = declare(app, queue_name, handler)
    with with_callbacks(app, callback) as task:
        task.push(worker, "a", 1)
        task.push(worker, "a", 2)
    app.drain()

    assert ["failure", "complete"] == payloads(told)

"""The duty "tasks": what nobody could do at the time is done later, and nothing is kept for ever."""

import math
from collections.abc import Callable
from threading import Event
from typing import Any

import pytest

from lowkiq_lambda import Config, Lowkiq, NoSuchTask, Rejected, TaskClosed, Worker
from lowkiq_lambda.aws.duty_task import look_after_tasks
from lowkiq_lambda.aws.tick import Tick
from lowkiq_lambda.aws.ticking import tasks_of
from lowkiq_lambda.base.errors import BackendUnavailable, DeclarationError, ShardDamaged
from lowkiq_lambda.declare.worker import count_of
from lowkiq_lambda.local.daemon import Daemon
from lowkiq_lambda.settings.aws import Settings
from lowkiq_lambda.store.shard.keys import TRACKING, ShardRef, TasksRef
from lowkiq_lambda.tasks.record import Stored
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp, close_app
from tests.kit.duties import Noted
from tests.kit.handlers import Notes, raising
from tests.kit.servers import Server
from tests.kit.waiting import eventually
from tests.kit.workers import declare, jobs_of
from tests.tasks.watching import close_unlooked, counts, statuses

HOUR = 3_600.0
DAY = 24 * HOUR


def enough() -> float:
    """Seconds for one run."""
    return 60.0


def shard_keys(app: Lowkiq, worker: type[Worker]) -> dict[str, int]:
    """Which of the keys of tasks are there, in all shards."""
    names = ("refs", "rows", "items")
    shards = [ShardRef(worker.queue_name, count_of(worker), at, (TRACKING,)) for at in range(count_of(worker))]
    return {name: sum(app.core.backend.client.exists(shard.key(name)) for shard in shards) for name in names}


def unlooked(app: Lowkiq, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have drains end without a look at the tasks whose items ended: as if they died there."""
    monkeypatch.setattr(app.core.drains.drainer, "look_at_tasks", None)


def test_a_task_whose_drain_died_before_it_looked_completes_within_a_minute(
    app: Lowkiq, queue_name: str, told: Notes, callback: type[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The duty looks at closed tasks, and pushes the callback; a second look finds nothing to do."""
    unlooked(app, monkeypatch)
    worker = declare(app, queue_name, Notes())
    with app.task("export", on_complete=(callback, None)) as task:
        task.push_many(worker, jobs_of("ab"))
    app.drain()

    looks = [app.tasks.upkeep(enough) for _ in range(2)]
    app.drain()

    assert [{"looked": 1, "completed": 1}, {}] == looks
    assert 1 == len(told.batches)


def test_each_of_many_tasks_has_its_turn(app: Lowkiq, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run looks at a bounded number, those first that nobody has looked at for longest."""
    monkeypatch.setattr("lowkiq_lambda.tasks.upkeep.MOST_AT_ONCE", 2)
    monkeypatch.setattr("lowkiq_lambda.tasks.upkeep.randint", max)
    looked: list[str] = []
    look = app.tasks._operations.look

    def noting(stored: Stored) -> Stored:
        looked.append(stored.record.name)
        return look(stored)

    monkeypatch.setattr(app.tasks._operations, "look", noting)
    for name in "abcde":
        app.task(name)

    for _ in range(3):
        clock.advance(60.0)
        app.tasks.upkeep(enough)

    assert [*"abcde"] == sorted(looked[:5])
    assert 6 == len(looked)


def test_complete_tasks_that_may_succeed_take_no_turn_of_open_ones(
    app: Lowkiq, clock: ManualClock, queue_name: str, callback: type[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have as many turns of their own, behind the open ones."""
    monkeypatch.setattr("lowkiq_lambda.tasks.upkeep.MOST_AT_ONCE", 2)
    monkeypatch.setattr("lowkiq_lambda.tasks.upkeep.randint", max)
    worker = declare(app, queue_name, Notes(raising(Rejected("no"))))
    for name in "abcde":
        with app.task(name, on_success=(callback, None)) as task:
            task.push(worker, name)
    app.drain()
    for name in "vwxyz":
        app.task(name)
    looked: list[str] = []
    look = app.tasks._operations.look

    def noting(stored: Stored) -> Stored:
        looked.append(stored.record.name)
        return look(stored)

    monkeypatch.setattr(app.tasks._operations, "look", noting)
    for _ in range(3):
        clock.advance(60.0)
        app.tasks.upkeep(enough)

    assert [*"abcdevwxyz"] == sorted({*looked})
    assert [True, True, False, False] * 3 == [name in "vwxyz" for name in looked]


def test_a_completed_task_is_forgotten_after_a_week(
    app: Lowkiq, clock: ManualClock, queue_name: str, callback: type[Worker]
) -> None:
    """Record, rows and index go; what was pushed since, and other tasks, stay."""
    worker = declare(app, queue_name, Notes(), shards_count=2)
    with app.task("export", on_complete=(callback, None)) as task:
        task.push_many(worker, [{"id": number} for number in range(30)])
    app.drain()
    other = app.task("other")
    other.push_many(worker, jobs_of("a"))

    clock.advance(7 * DAY - 1.0)
    early = app.tasks.upkeep(enough)
    clock.advance(2.0)
    late = app.tasks.upkeep(enough)

    assert ({"looked": 1}, {"looked": 1, "forgotten": 1}) == (early, late)
    with pytest.raises(NoSuchTask):
        task.progress()
    assert {"enqueued": 1} == counts(other)
    assert ["other"] == [one.name for one in app.tasks.list().tasks]
    clock.advance(31 * DAY)
    app.drain()
    app.tasks.upkeep(enough)
    assert {"refs": 0, "rows": 0, "items": 0} == shard_keys(app, worker)


def test_a_task_may_be_kept_for_another_time(
    make_app: MakeApp, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the task says, else as the settings say; one that never completes, from its last push."""
    monkeypatch.setattr("lowkiq_lambda.tasks.making.ABANDONED_IN", 5 * HOUR)
    app = make_app(task_max_age=2 * HOUR)
    worker = declare(app, queue_name, Notes())
    tasks = [app.task("short", expires_in=HOUR), app.task("default"), app.task("open")]
    for task in tasks[:2]:
        task.close()
    clock.advance(HOUR / 2)
    tasks[2].push_many(worker, jobs_of("a"))

    names = []
    for _ in range(7):
        app.tasks.upkeep(enough)
        names.append([one.name for one in app.tasks.list().tasks])
        clock.advance(HOUR)

    assert [["open", "default", "short"], ["open", "default"], *[["open"]] * 3, [], []] == names


def test_a_task_that_is_being_forgotten_takes_no_push(
    app: Lowkiq, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is marked first: whatever is not forgotten in the time of one run goes with the next one."""
    monkeypatch.setattr("lowkiq_lambda.tasks.upkeep.FORGOTTEN_AT_ONCE", 10)
    worker = declare(app, queue_name, Notes())
    task = app.task("export")
    task.push_many(worker, [{"id": number} for number in range(25)])
    clock.advance(31 * DAY)
    left = iter([1.0, 1.0, 1.0])

    first = app.tasks.upkeep(lambda: next(left, 0.0))
    state, total = task.progress().state, task.progress().total
    with pytest.raises(TaskClosed, match="is expired"):
        task.push_many(worker, jobs_of("a"))
    second = app.tasks.upkeep(enough)

    assert ({}, "expired", 5) == (first, state, total)
    assert {"forgotten": 1} == second
    assert {"done": 25} == app.drain()
    assert {"refs": 0, "rows": 0, "items": 0} == shard_keys(app, worker)


@pytest.mark.parametrize("key", ["jobs", "refs"])
def test_an_item_whose_job_is_gone_ends_as_lost(
    app: Lowkiq, clock: ManualClock, queue_name: str, callback: type[Worker], key: str
) -> None:
    """Keys were deleted by hand: an hour after the last push the duty finds out, and the task completes."""
    worker = declare(app, queue_name, Notes())
    with app.task("export", on_complete=(callback, None)) as task:
        task.push_many(worker, [*jobs_of("a"), {"id": "b", "payload": 1}, {"id": "b", "payload": 2}])
    (shard,) = app.core.queues.agreed(worker).shards
    app.core.backend.client.delete(shard.using((TRACKING,)).key(key))
    if key == "jobs":
        app.core.backend.client.delete(shard.key("box"))

    clock.advance(HOUR - 1.0)
    early = app.tasks.upkeep(enough)
    clock.advance(2.0)
    late = app.tasks.upkeep(enough)
    again = app.tasks.upkeep(enough)
    app.drain()

    assert ({"looked": 1}, {"looked": 1, "lost": 3}) == (early, late)
    assert {"looked": 1, "completed": 1} == again
    assert {"lost": 3} == counts(task)
    assert "completed" == task.progress().state


def test_what_waits_runs_or_lies_in_the_morgue_is_not_lost(
    app: Lowkiq, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Single payloads, several of an id, merged ones, jobs in flight: each is found where it is."""
    seen: list[dict[int, str]] = []
    verified: list[tuple[int, bool]] = []

    def handler(batch: Any) -> None:
        operations = task._operations
        verified.append(operations.items_of(operations.records.get(task.id)).verify(enough))
        seen.append(statuses(task))
        if "dead" in batch:
            raise OSError("no connection")

    monkeypatch.setattr("lowkiq_lambda.tasks.items.VERIFIED_AT_ONCE", 2)
    worker = declare(app, queue_name, handler, batch_size=1, max_retry_count=0)
    task = app.task("export")
    task.push_many(
        worker, [{"id": "dead"}, {"id": "b", "payload": 1}, {"id": "b", "payload": 2}, {"id": "b", "payload": 2}]
    )
    task.push_many(worker, [{"id": number, "due_at": clock.time() + 100 * DAY} for number in range(3)])

    app.drain()

    later = dict.fromkeys(range(5, 8), "enqueued")
    assert [(0, True)] * 2 == verified
    assert {"enqueued", "running"} == {*seen[0].values()}
    assert {1: "dead", **dict.fromkeys(range(2, 5), "done")} | later == statuses(task)


def test_one_task_that_cannot_be_looked_after_keeps_no_other_from_its_turn(
    app: Lowkiq, clock: ManualClock, server: Server, queue_name: str
) -> None:
    """A callback of another app is left to that app; what nobody can read is passed over."""
    other = Lowkiq(app.config, clock=app.core.backend.clock)
    foreign = declare(other, queue_name, Notes())
    task = other.task("foreign", on_complete=(foreign, 1))
    close_unlooked(task, clock)
    server.admin.hset(TasksRef().keys[0], "AAAAAAAAAAAAAAAA", b"{")
    server.admin.zadd(TasksRef().keys[1], {"AAAAAAAAAAAAAAAA": 0})
    app.task("ours")

    server.admin.zadd(TasksRef().keys[2], {"AAAAAAAAAAAAAAAA": clock.time() + DAY})
    names = {one.name for one in app.tasks.list().tasks}
    with pytest.raises(ShardDamaged, match="AAAAAAAAAAAAAAAA"):
        app.tasks.get("AAAAAAAAAAAAAAAA").progress()

    looks = app.tasks.upkeep(enough), other.tasks.upkeep(enough)

    assert {"foreign", "ours"} == names
    assert ({"looked": 2}, {"looked": 2, "completed": 1}) == looks
    assert "completed" == task.progress().state
    close_app(other)


def test_no_duty_of_a_user_has_its_name(app: Lowkiq) -> None:
    """The name is taken, as that of schedules is."""
    with pytest.raises(DeclarationError, match="looks after tasks"):
        app.add_duty(Noted("tasks"))


def test_a_process_that_has_seen_no_task_does_nothing_for_tasks(app: Lowkiq, queue_name: str) -> None:
    """No duty, no thread, no call, though there is a queue and it is drained."""
    worker = declare(app, queue_name, Notes())
    worker.push_many(jobs_of("ab"))
    app.drain()

    assert not app.core.housekeeping.follows_tasks
    assert ["queues"] == [*tasks_of(app, Settings())]


def test_a_tick_that_has_seen_a_task_looks_after_tasks(
    make_app: MakeApp, queue_name: str, told: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its look for due work tells of tasks while items of any are kept; a tick then runs the duty, once in a minute."""
    app, ticking = make_app(), make_app()
    worker, _ = declare(app, queue_name, Notes()), declare(ticking, queue_name, Notes())
    callback = declare(app, f"{queue_name}-2", told)
    declare(ticking, f"{queue_name}-2", told)
    unlooked(app, monkeypatch)
    with app.task("export", on_complete=(callback, None)) as task:
        task.push_many(worker, jobs_of("ab"))
    app.drain()
    before = ticking.core.housekeeping.follows_tasks
    ticking.core.drains.drainer.probe(ticking.core.drains.drainer.shards())

    tick = Tick(ticking, Settings(), None, "dispatch", enough)
    summaries = [look_after_tasks(tick) for _ in range(2)]

    assert (False, True) == (before, ticking.core.housekeeping.follows_tasks)
    assert "tasks" in tasks_of(ticking, Settings())
    assert [{"looked": 1, "completed": 1}, None] == summaries
    assert ["tasks"] == [duty.name for duty in ticking.operate.duties()]
    assert ("completed", {}) == (task.progress().state, tick.problems)


def test_a_daemon_that_sees_items_of_a_task_looks_after_tasks(
    server: Server, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It starts without; its probes tell of a task, and the thread of the duty comes, and completes it."""
    monkeypatch.setattr("lowkiq_lambda.local.lifecycle.LOOK_INTERVAL", 0.05)
    called = Event()
    apps = [Lowkiq(Config(redis_url=server.url, poll_interval=0.05)) for _ in range(2)]
    for app in apps:
        declare(app, queue_name, Notes())
        declare(app, f"{queue_name}-2", Notes(lambda _batch: called.set()))
    made_by, kept_by = apps
    worker, callback = made_by.workers
    unlooked(made_by, monkeypatch)
    with made_by.task("export", on_complete=(callback, None)) as task:
        task.push_many(worker, jobs_of("ab"))
    made_by.drain()
    before = called.is_set()

    with Daemon(kept_by):
        assert called.wait(30)
        eventually(lambda: task.progress().state == "completed")

    assert not before
    for app in apps:
        close_app(app)


def test_where_redis_cannot_serve_the_duty_fails_and_comes_again(app: Lowkiq, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error goes to the runner of duties, which tells it and tries again."""
    app.task("export")

    def refuse(*_arguments: object, **_options: object) -> Callable[[], object]:
        raise BackendUnavailable

    monkeypatch.setattr(app.core.backend, "call", refuse)

    with pytest.raises(BackendUnavailable):
        app.tasks.upkeep(lambda: math.inf)

"""Items of tasks where their jobs are started, claimed beside others, evicted, damaged, or fired by a schedule."""

import pytest

from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.jobs.progress import JobProgress
from lowkiq_lambda.store.shard.keys import TRACKING, ShardRef
from lowkiq_lambda.store.shard.lease_replies import Acquired
from lowkiq_lambda.store.shard.nodes import GivenTime
from lowkiq_lambda.testing import ManualClock
from tests.kit.beside import declare_threads
from tests.kit.deaths import outlive
from tests.kit.handlers import Broken, FailingHandler, Notes, raising
from tests.kit.holders import Holder, Holders
from tests.kit.servers import Server
from tests.kit.started import Starter
from tests.kit.tracking import Item, TaskOfTests
from tests.kit.workers import declare


@pytest.fixture
def notes() -> Notes:
    """The handler."""
    return Notes()


@pytest.fixture
def worker(app: Lowkiq, queue_name: str, notes: Notes) -> type[Worker]:
    """Of one shard."""
    return declare(app, queue_name, notes)


@pytest.fixture
def task(worker: type[Worker], server: Server) -> TaskOfTests:
    """A task for it."""
    return TaskOfTests(worker, server.admin)


def tracked_shard(app: Lowkiq, worker: type[Worker]) -> ShardRef:
    """Its shard, with the keys of items."""
    (shard,) = app.core.queues.agreed(worker).shards
    return shard.using((TRACKING,))


def new_holder(app: Lowkiq, server: Server, worker: type[Worker], clock: ManualClock) -> Holder:
    """Somebody who may take its shard, by the test's clock."""
    return Holders(
        server.url, app.core.queues.agreed(worker).shards[0], ttl=30.0, clock=clock, new_time=GivenTime
    ).new()


def test_a_started_job_takes_its_items_along(
    app: Lowkiq, clock: ManualClock, worker: type[Worker], task: TaskOfTests
) -> None:
    """While it runs, waits to go on, lies in the morgue with its progress, and comes back in another place."""
    task.push_many((1, "a", "one"))
    starter = Starter(app, worker, "1", JobProgress(b"1"))
    running = task.statuses
    starter.put_off(clock.time())
    waiting = task.statuses
    Starter(app, worker, "1", JobProgress(b"2")).fail(clock.time() + 60)
    queue = app.operate(worker)
    queue.waiting.kill(everything=True)
    dead = task.statuses

    queue.morgue.requeue(["1"])

    assert [{"one": "r"}, {"one": "e"}, {"one": "x"}] == [running, waiting, dead]
    assert {"one": "e"} == task.statuses
    queue.waiting.delete(["1"])
    assert {"one": "c"} == task.statuses


def test_items_are_claimed_beside_others(app: Lowkiq, server: Server, queue_name: str) -> None:
    """Where batches run side by side, too, each item runs from its claim, and ends with its own id."""
    worker = declare_threads(app, queue_name, Notes(lambda batch: batch.note(next(iter(batch)), "ran")), concurrency=2)
    task = TaskOfTests(worker, server.admin)
    task.push_many(*((number, "a", str(number)) for number in range(5)))

    app.drain()

    assert {Item("d", str(number), 1, ("ran",)) for number in range(5)} == {*task.items.values()}


def test_a_claim_that_is_answered_again_names_the_same_items(
    app: Lowkiq, server: Server, clock: ManualClock, worker: type[Worker], task: TaskOfTests
) -> None:
    """So that what the handler notes is not lost with the first answer."""
    task.push_many((1, "a", "one"))
    worker.push_many([{"id": 2}])
    holder = new_holder(app, server, worker, clock)

    answers = [holder.take() for _ in range(2)]

    tracked = []
    for answer in answers:
        assert isinstance(answer, Acquired)
        assert answer.claim
        tracked.append({one.id: one.tracked for one in answer.claim.deliveries})
    assert [{"1": True, "2": False}] * 2 == tracked


def test_a_holder_that_knew_of_no_task_settles_its_items(
    app: Lowkiq, worker: type[Worker], task: TaskOfTests, notes: Notes
) -> None:
    """The first item of a shard may come while its holder is at work, which claims it next."""

    def push_once(_batch: Batch) -> None:
        if not task.items:
            task.push_many((2, "a", "one"))

    worker.push_many([{"id": 1}])
    notes.then = push_once

    app.drain()

    assert {"one": Item("d", "2", 1)} == task.items


def test_what_an_evicted_holder_had_is_interrupted(
    app: Lowkiq, server: Server, clock: ManualClock, worker: type[Worker], task: TaskOfTests
) -> None:
    """Its items run until the next holder has recovered them."""
    task.push_many((1, "a", "one"))
    shard = app.core.queues.agreed(worker).shards[0]
    holder = new_holder(app, server, worker, clock)
    holder.take()
    app.operate(worker).in_flight.evict_holder(shard, holder.token)
    evicted = task.statuses
    outlive(app, clock, worker)

    app.drain()

    assert {"one": "r"} == evicted
    assert {"one": Item("d", "1", 1, ("interrupted",))} == task.items


@pytest.mark.parametrize("merge", ["min", "max"])
def test_an_untracked_payload_that_joins_is_marked(
    app: Lowkiq, server: Server, clock: ManualClock, queue_name: str, merge: str
) -> None:
    """Pushed, or fired by a schedule: so it is known whether a payload is the task's alone."""
    worker = declare(app, queue_name, Notes(), merge=merge)
    task = TaskOfTests(worker, server.admin)
    app.every(60, worker, id="fired", payload="a")
    app.schedules.tick()
    later = clock.time() + 3_600
    task.push_many(("fired", "a", "one"), ("pushed", "a", "two"), ("alone", "a", "three"), due_at=later)
    worker.push_many([{"id": "pushed", "payload": "a"}])
    clock.advance(61)
    app.schedules.tick()

    kept = server.admin.hgetall(tracked_shard(app, worker).key("refs")).values()

    assert [16, 17, 17] == sorted(len(refs) for refs in kept)
    assert {"one": "e", "two": "e", "three": "e"} == task.statuses


def test_an_item_whose_payload_is_set_aside_is_lost(
    app: Lowkiq, server: Server, worker: type[Worker], task: TaskOfTests
) -> None:
    """Repair ends it, and makes anew what follows from the rest: the index, and that something is tracked."""
    task.push_many((1, "a", "before"))
    app.operate(worker).waiting.delete(["1"])
    task.push_many((1, "a", "one"), (2, "b", "two"), (3, "c", "three"), (3, "d", "four"))
    shard = tracked_shard(app, worker)
    server.admin.hset(shard.key("jobs"), "1", b"garbage")
    server.admin.hdel(shard.key("meta"), "in_use")
    server.admin.delete(shard.key("items"))

    app.operate(worker).repair()
    mended = task.statuses
    app.drain()

    before = {"before": "c", "one": "l"}
    assert {**before, "two": "e", "three": "e", "four": "e"} == mended
    assert {**before, "two": "d", "three": "d", "four": "d"} == task.statuses
    assert [0, False] == [app.operate(worker).repair(), task.is_in_use]


@pytest.mark.parametrize(
    ("key", "field", "value"),
    [("rows", b"r" * 16, b"garbage"), ("rows", b"v" + b"t" * 12, b"many"), ("refs", b"\0\0\0\0\0\7", b"no refs")],
)
def test_what_is_no_row_and_no_ref_is_set_aside(  # noqa: PLR0913, PLR0917 - what is damaged, and fixtures
    app: Lowkiq, server: Server, worker: type[Worker], task: TaskOfTests, key: str, field: bytes, value: bytes
) -> None:
    """The sound ones stay."""
    task.push_many((1, "a", "one"))
    server.admin.hset(tracked_shard(app, worker).key(key), field, value)

    app.operate(worker).repair()

    (kept,) = app.operate(worker).damaged()
    assert (key, value) == (kept.key, kept.data)
    assert {"one": "e"} == task.statuses


def test_keys_of_another_type_stop_no_shard(
    app: Lowkiq, server: Server, worker: type[Worker], task: TaskOfTests, notes: Notes
) -> None:
    """P6: the jobs are performed; what was known of their items lies aside."""
    task.push_many((1, "a", "one"))
    for key in ("refs", "rows", "items"):
        server.admin.delete(tracked_shard(app, worker).key(key))
        server.admin.set(tracked_shard(app, worker).key(key), "a text")

    app.drain()

    assert [{"1": ["a"]}] == notes.batches
    assert {"refs", "rows", "items"} == {kept.key for kept in app.operate(worker).damaged()}


def test_rows_go_when_a_queue_is_declared_anew(
    app: Lowkiq, server: Server, worker: type[Worker], task: TaskOfTests
) -> None:
    """They go with the shard: nothing of it is left behind but what says that it is closed."""
    task.push_many((1, "a", "one"))
    app.drain()
    shard = tracked_shard(app, worker)

    worker.shards_count = 2
    app.operate(worker).redeclare()

    assert 0 == server.admin.exists(*(shard.key(name) for name in ("refs", "rows", "items")))


def test_a_damaged_row_does_not_stop_its_job(
    app: Lowkiq, server: Server, worker: type[Worker], task: TaskOfTests, notes: Notes
) -> None:
    """Nobody knows its item any more, but it is performed, and others beside it end as ever."""
    task.push_many((1, "a", "one"), (1, "a", "two"))
    rows = tracked_shard(app, worker).key("rows")
    server.admin.hset(rows, task.id + b"\0\0\0\1", b"\xc1garbage")
    notes.then = raising(Broken("no luck"))

    app.drain()
    app.operate(worker).repair()

    assert {"two": Item("e", "1", 1, ("no luck",))} == task.items


def test_a_kill_beside_a_running_id_ends_nothing_of_it(app: Lowkiq, server: Server, queue_name: str) -> None:
    """What runs ends by itself; what waits behind it, and has failed before, is dead."""
    handler = FailingHandler()
    worker = declare(app, queue_name, handler)
    task = TaskOfTests(worker, server.admin)
    handler.failing = {"1"}
    task.push_many((1, "a", "one"), (1, "b", "two"))
    app.drain()
    app.operate(worker).waiting.run_now(everything=True)
    handler.failing = set()
    handler.meanwhile = lambda: (task.push_many((1, "c", "three")), app.operate(worker).waiting.kill(everything=True))

    app.drain()

    assert {"one": "d", "two": "d", "three": "d"} == task.statuses


def test_started_jobs_that_come_back_together_keep_their_own_items(
    app: Lowkiq, clock: ManualClock, worker: type[Worker], task: TaskOfTests
) -> None:
    """Each comes to a place of its own, by which alone its items, headers and expiries are known."""
    for number, label in ((1, "one"), (2, "two")):
        task.push_many((number, "a", label))
        Starter(app, worker, str(number), JobProgress(b"1")).fail(clock.time() + 60)
    queue = app.operate(worker)
    queue.waiting.kill(everything=True)

    assert 2 == queue.morgue.requeue(everything=True)

    queue.waiting.delete(["1"])
    assert {"one": "c", "two": "e"} == task.statuses

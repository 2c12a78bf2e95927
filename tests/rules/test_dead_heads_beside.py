"""Dead heads beside what else an id may have: items, a cursor, a lane, gathering, damage (E-79, A-31, P2, P3)."""

from collections.abc import Callable
from typing import Any

import pytest

from lowkiq_lambda import Batch, BatchJob, Debounce, Lowkiq, Worker
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.nodes import FAR
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Broken, Notes, raising
from tests.kit.iterating import Items, declare_items
from tests.kit.looks import ids_of, left_behind, look
from tests.kit.servers import Server
from tests.kit.tracking import Item, TaskOfTests
from tests.kit.workers import declare, jobs_of, shard_of


def failing_first(notes: Notes) -> Callable[[Batch], None]:
    """Fails the first batch, by name."""

    def then(batch: Batch) -> None:
        if len(notes.batches) == 1:
            for job_id in batch:
                batch.fail(job_id, "broken")

    return then


def blocked(app: Lowkiq, queue_name: str, job_id: str = "a", **fields: Any) -> tuple[type[Worker], Notes]:
    """A worker of which one id is blocked."""
    notes = Notes()
    notes.then = failing_first(notes)
    worker = declare(app, queue_name, notes, **{"max_retry_count": 0, "dead_head": "block", **fields})
    worker.push_many([{"id": job_id, "payload": 0}])
    app.drain()
    return worker, notes


@pytest.mark.parametrize(
    ("dead_head", "items"),
    [
        (
            "block",
            {n: Item("e", "a", int(n == "0"), ("broken", "blocked") if n == "0" else ("blocked",)) for n in "012"},
        ),
        ("drop", {n: Item("x", "a", int(n == "0"), ("broken" if n == "0" else "with its head",)) for n in "012"}),
        ("latest", {"0": Item("x", "a", 1, ("broken",)), "1": Item("s", "a"), "2": Item("d", "a", 1)}),
    ],
)
def test_items_share_the_fate_of_their_payloads(
    app: Lowkiq, server: Server, queue_name: str, dead_head: str, items: dict[str, Item]
) -> None:
    """A-31: a blocked item stays enqueued, so that its task waits; the dead are dead, and the superseded have ended."""
    notes = Notes()
    notes.then = failing_first(notes)
    worker = declare(app, queue_name, notes, max_retry_count=0, dead_head=dead_head)
    task = TaskOfTests(worker, server.admin)
    task.push_many(*[("a", n, str(n)) for n in range(3)])

    app.drain()

    assert items == task.items


@pytest.mark.parametrize(("how", "item"), [("retry", "d"), ("skip", "x")])
def test_an_unblocked_item_goes_where_its_head_goes(
    app: Lowkiq, server: Server, queue_name: str, how: Any, item: str
) -> None:
    """A-31: tried again it is done; skipped it is dead, and the item behind it is done."""
    notes = Notes()
    notes.then = failing_first(notes)
    worker = declare(app, queue_name, notes, max_retry_count=0, dead_head="block")
    task = TaskOfTests(worker, server.admin)
    task.push_many(("a", 0, "head"), ("a", 1, "behind"))
    app.drain()

    app.operate(worker).unblock(["a"], how)
    app.drain()

    assert {"head": item, "behind": "d"} == task.statuses


def test_a_blocked_job_with_a_cursor_goes_on_from_it(app: Lowkiq, queue_name: str) -> None:
    """Tried again it begins at the cursor that was saved last; pushes meanwhile are a job of their own, as ever."""
    failures = [2]

    def before(_job: BatchJob, item: int) -> None:
        if item in failures:
            failures.remove(item)
            raise Broken

    items = Items(4, before)
    worker = declare_items(app, queue_name, items, max_retry_count=0, dead_head="block")
    worker.push_many([{"id": "a", "payload": "first"}])
    app.drain()
    worker.push_many([{"id": "a", "payload": "second"}])
    app.drain()
    waiting = look(app, worker, "a")

    app.operate(worker).unblock(["a"], "retry")
    app.drain()

    assert FAR == (waiting and waiting.due_at)
    assert [(None, ["first"]), (2, ["first"]), (None, ["second"])] == [(run.cursor, run.payloads) for run in items.runs]
    assert {} == left_behind(app, worker)


def test_a_skipped_job_with_a_cursor_takes_it_to_the_morgue(app: Lowkiq, queue_name: str) -> None:
    """Put back from there, it goes on; what waited behind it has run."""
    failures = [2]

    def before(_job: BatchJob, item: int) -> None:
        if item in failures:
            failures.remove(item)
            raise Broken

    items = Items(4, before)
    worker = declare_items(app, queue_name, items, max_retry_count=0, dead_head="block")
    worker.push_many([{"id": "a", "payload": "first"}])
    app.drain()
    worker.push_many([{"id": "a", "payload": "second"}])

    app.operate(worker).unblock(["a"], "skip")
    app.drain()
    app.operate(worker).morgue.requeue(["a"])
    app.drain()

    assert [(None, ["first"]), (None, ["second"]), (2, ["first"])] == [(run.cursor, run.payloads) for run in items.runs]
    assert {} == left_behind(app, worker)


@pytest.mark.parametrize("fields", [{"tenants": "home"}, {"debounce": Debounce(1.0, at_most=2.0)}, {"concurrency": 3}])
def test_others_of_its_tenant_run(app: Lowkiq, clock: ManualClock, queue_name: str, fields: dict[str, Any]) -> None:
    """E-79: in its lane, where ids debounce, or where batches run side by side, a blocked id stands in nobody's way."""
    notes = Notes()
    notes.then = failing_first(notes)
    worker = declare(app, queue_name, notes, max_retry_count=0, dead_head="block", **fields)
    worker.push_many([{"id": "acme:1", "payload": 0}])
    clock.advance(2)
    app.drain()

    worker.push_many([{"id": "acme:1", "payload": 1}, {"id": "acme:2"}])
    clock.advance(2)
    app.drain()
    app.operate(worker).unblock(["acme:1"], "retry")
    app.drain()

    assert [["acme:1"], ["acme:2"], ["acme:1"]] == notes.ids
    assert {} == left_behind(app, worker)


def test_repair_leaves_a_blocked_id_where_it_is(app: Lowkiq, queue_name: str) -> None:
    """Damage elsewhere frees no head; and an id whose note was set aside can still be unblocked."""
    worker, notes = blocked(app, queue_name)
    shard, client = shard_of(app, worker, "a"), app.core.backend.client
    sound = app.operate(worker).repair()
    client.zrem(shard.key("due"), "a")
    app.operate(worker).repair()
    still = ids_of(app.operate(worker).waiting.blocked())
    client.hset(shard.key("trouble"), "a", b"\xc1")
    app.operate(worker).repair()

    unblocked = app.operate(worker).unblock(["a"], "skip")
    app.drain()

    assert (0, ["a"], 1, [["a"], ["a"]]) == (sound, still, unblocked, notes.ids)
    assert {} == left_behind(app, worker)


def test_the_page_of_a_blocked_job_says_why_it_does_not_run(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """E-79: visible is not only that it is blocked, but since when."""
    worker, _ = blocked(app, queue_name)
    at = clock.time()
    clock.advance(60)

    explained = app.operate(worker).explain("a")

    assert (at, FAR) == (explained.blocked_since, explained.due_at)


def test_old_calls_of_an_operator_do_not_touch_a_head_that_died_since(app: Lowkiq, queue_name: str) -> None:
    """A delete that has looked before the payload came leaves it, and its hold, alone."""
    worker, _ = blocked(app, queue_name)
    before = app.operate(worker).runner.snapshots()
    worker.push_many(jobs_of("b"))
    (snapshot,) = app.operate(worker).runner.snapshots()
    early = [one for one in before if one.arrival == snapshot.arrival - 1]
    app.operate(worker).unblock(["a"], "skip")
    worker.push_many([{"id": "a", "payload": "later"}])

    progress = app.operate(worker).runner.call_once("delete", early[0], ["a"], 0)

    assert (0, True) == (progress.changed, look(app, worker, "a") is not None)


def test_an_unblock_leaves_a_head_that_died_after_its_look(
    app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has seen why it failed: it stays blocked for whoever looks next."""
    worker = declare(app, queue_name, Notes(raising()), max_retry_count=0, dead_head="block")
    app.core.queues.agreed(worker)
    run = Backend.run

    def die_and_run(backend: Backend, name: str, *args: Any, **options: Any) -> Any:
        if name == "unblock":
            monkeypatch.undo()
            worker.push_many(jobs_of("a"))
            app.drain()
        return run(backend, name, *args, **options)

    monkeypatch.setattr(Backend, "run", die_and_run)

    assert 0 == app.operate(worker).unblock(["a"], "skip")
    assert ["a"] == ids_of(app.operate(worker).waiting.blocked())


@pytest.mark.parametrize(("tracked", "blocked_ids"), [("head", []), ("behind", ["a"])])
def test_cancelling_a_task_frees_an_id_only_with_its_head(
    app: Lowkiq, queue_name: str, tracked: str, blocked_ids: list[str]
) -> None:
    """What the task has pushed is withdrawn; while the head is there, nothing that came after it runs."""
    notes = Notes()
    notes.then = failing_first(notes)
    worker = declare(app, queue_name, notes, max_retry_count=0, dead_head="block")
    task = app.task("import")
    for score, name in enumerate(("head", "behind", "other")):
        job = {"id": "a", "payload": name, "score": score}
        if name == tracked:
            task.push_many(worker, [job])
        else:
            worker.push_many([job])
    app.drain()

    task.cancel()
    found = ids_of(app.operate(worker).waiting.blocked())
    app.drain()

    left = [name for name in ("head", "behind", "other") if name != tracked]
    assert blocked_ids == found
    assert [["head", "behind", "other"], *([] if blocked_ids else [left])] == [batch["a"] for batch in notes.batches]


@pytest.mark.parametrize("behind", [2, 20])
def test_an_equal_payload_of_before_the_death_follows_its_head(app: Lowkiq, queue_name: str, behind: int) -> None:
    """It is one of those that waited then, though nothing came after it."""
    notes = Notes()

    def meanwhile(batch: Batch) -> None:
        if len(notes.batches) == 1:
            worker.push_many([{"id": "a", "payload": n, "score": n} for n in range(1, behind + 1)])
            worker.push("a", 1, score=1)
        failing_first(notes)(batch)

    notes.then = meanwhile
    worker = declare(app, queue_name, notes, max_retry_count=0, dead_head="drop")
    worker.push("a", 0, score=0)
    app.drain()

    (job,) = app.operate(worker).morgue.list()
    assert [*range(behind + 1)] == [payload for payload, _ in job.payloads]
    assert (1, {}) == (len(notes.batches), left_behind(app, worker))


def test_a_follower_that_had_failed_leaves_no_count(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P7: the id is no retry any more once all of it is dead, so what is pushed next begins anew."""
    notes = Notes(raising())
    worker = declare(app, queue_name, notes, max_retry_count=1, dead_head="drop", payloads_at_once=1)
    worker.push("a", 2, score=2)
    app.drain()
    worker.push("a", 1, score=1)
    for _ in range(2):
        clock.advance(60)
        app.drain()

    assert [[2], [1], [1]] == [batch["a"] for batch in notes.batches]
    assert {} == left_behind(app, worker)


def test_a_requeued_payload_does_not_take_the_count_of_a_blocked_head(app: Lowkiq, queue_name: str) -> None:
    """P7: it is older than the head, and has not failed; so an undo finds it as it was put."""
    notes = Notes()
    worker = declare(app, queue_name, notes, max_retry_count=0, dead_head="block", merge="min")
    queue = app.operate(worker)
    worker.push_many([{"id": "a", "payload": 0, "score": 1.0}])
    queue.cancel(["a"], kill=True)
    notes.then = failing_first(notes)
    worker.push_many([{"id": "a", "payload": 1, "score": 2.0}])
    app.drain()

    changed = queue.morgue.requeue(["a"])
    undone = queue.undo(changed.action_id)

    assert (1, {}) == (undone.restored, undone.skipped)
    assert ["a"] == ids_of(queue.morgue.list("id"))
    assert 0 == queue.waiting.fetch(["a"])[0].retry_count

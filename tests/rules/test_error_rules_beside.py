"""Rules by error beside dead heads, versions, tasks, cursors, headers and batches side by side (SK-5, E-79, A-28)."""

from collections.abc import Iterator
from threading import Barrier

import pytest

from lowkiq_lambda import Batch, BatchJob, Lowkiq, Rate, Worker, kill_on
from lowkiq_lambda.store.shard.keys import HEADERS
from lowkiq_lambda.store.shard.nodes import FAR
from lowkiq_lambda.testing import ManualClock
from tests.kit.coroutines import declare_async
from tests.kit.deaths import Mortal, outlive
from tests.kit.error_rules import ERRORS, RULES, dead_of, failing_with, with_rules
from tests.kit.handlers import Notes
from tests.kit.iterating import Items
from tests.kit.looks import left_behind, look
from tests.kit.servers import Server
from tests.kit.tracking import Item, TaskOfTests
from tests.kit.workers import declare, jobs_of, shard_of


def test_e79_a_head_that_a_rule_kills_is_blocked_at_once(app: Lowkiq, queue_name: str) -> None:
    """E-79: with dead_head="block" it stays, whatever its count, and says which rule blocked it."""
    notes = Notes(failing_with(**ERRORS))
    worker = with_rules(app, queue_name, notes, dead_head="block")
    worker.push_many([{"id": "a", "payload": payload, "score": n} for n, payload in enumerate(["permanent", 1])])

    assert {"blocked": 1, "failed": 1} == app.drain()
    waiting = look(app, worker, "a")
    assert waiting is not None
    assert (FAR, 0.0) == (waiting.due_at, waiting.retry_count)
    (job,) = app.operate(worker).waiting.fetch(["a"])
    assert ["kill_on(Permanent)"] == [failure.rule for failure in job.failures]
    assert [("a", "rule")] == [(dead.id, dead.why) for dead in notes.dead]


@pytest.mark.parametrize(("word", "superseded"), [("gone", True), ("permanent", False)])
def test_latest_a_discarded_version_raises_the_mark_and_a_dead_one_does_not(
    app: Lowkiq, queue_name: str, word: str, *, superseded: bool
) -> None:
    """A discarded version is dealt with, as a done one is: nothing older runs after it."""
    notes = Notes(failing_with(**ERRORS))
    worker = with_rules(app, queue_name, notes, merge="latest")
    worker.push_many([{"id": "a", "payload": word, "score": 7}])
    app.drain()

    (pushed,) = worker.push_many([{"id": "a", "payload": "older", "score": 6}])
    app.drain()

    assert (superseded, 1 if superseded else 2) == (pushed.superseded, len(notes.batches))
    assert {} == left_behind(app, worker)


def test_items_of_tasks_learn_what_became_of_them(app: Lowkiq, server: Server, queue_name: str) -> None:
    """A-28: retried: open; killed: dead; discarded: failed, each with the error's headline."""
    worker = with_rules(app, queue_name, Notes(failing_with(**ERRORS)), batch_size=5)
    task = TaskOfTests(worker, server.admin)
    task.push_many(*((word, word, word) for word in ERRORS))

    app.drain()

    assert {
        "permanent": Item("x", "permanent", 1, ("no schema",)),
        "gone": Item("f", "gone", 1, ("order 7",)),
        "throttled": Item("e", "throttled", 1, ("in 77 s",)),
    } == task.items


def test_an_item_beside_a_discarded_one_goes_on(app: Lowkiq, server: Server, queue_name: str) -> None:
    """Its payload starts anew, so it is open, and then done."""
    worker = with_rules(app, queue_name, Notes(failing_with(**ERRORS)))
    task = TaskOfTests(worker, server.admin)
    task.push_many(("a", "gone", "one"), ("a", "zzz", "two"))

    app.drain()

    assert {"one": "f", "two": "d"} == task.statuses


@pytest.mark.parametrize(("word", "cursor", "dead"), [("permanent", 2, {"a": [""]}), ("gone", None, {})])
def test_a_job_with_a_cursor_ends_by_a_rule(
    app: Lowkiq, queue_name: str, word: str, cursor: object, dead: dict[str, list[object]]
) -> None:
    """P2: killed with its progress, or discarded with it; its count is 0 as the cursor moved, and the rule decides."""

    def before(_job: BatchJob, item: int) -> None:
        if item == 2:
            raise ERRORS[word]

    items = Items(5, before)
    worker = declare_generator(app, queue_name, items)
    worker.push_many(jobs_of("a"))

    app.drain()

    assert dead == dead_of(app, worker)
    progress = [job.progress and job.progress.cursor for job in app.operate(worker).morgue.fetch(["a"])]
    assert ([cursor] if dead else []) == progress
    assert {} == left_behind(app, worker)


def declare_generator(app: Lowkiq, queue_name: str, items: Items) -> type[Worker]:
    """A worker with these items and the rules above."""

    def perform_job(_self: Worker, job: BatchJob) -> Iterator[int]:
        yield from items.perform_job(job)

    return declare(app, queue_name, Notes(), perform_job=perform_job, on_error=RULES)


def test_coroutine_handlers_have_rules(app: Lowkiq, queue_name: str) -> None:
    """As plain ones."""

    async def then(_batch: Batch) -> None:
        raise ERRORS["gone"]

    worker = declare_async(app, queue_name, then, on_error=RULES)
    worker.push_many(jobs_of("a"))

    assert {"discarded": 1, "rejected": 1} == app.drain()


def test_headers_of_what_is_dropped_go_with_it(app: Lowkiq, queue_name: str) -> None:
    """P2: those of the others stay, in a queue without tasks, too."""
    notes = Notes(failing_with(**ERRORS))
    worker = with_rules(app, queue_name, notes)
    worker.push_many(
        [{"id": "a", "payload": payload, "score": n, "headers": {"n": str(n)}} for n, payload in enumerate(["gone", 1])]
    )
    app.drain()

    assert [[{"n": "0"}, {"n": "1"}], [{"n": "1"}]] == [[*job.headers] for (job,) in notes.jobs]
    shard = shard_of(app, worker, "a").using((HEADERS,))
    assert 0 == sum(app.core.backend.client.exists(shard.key(name)) for name in ("headers_even", "headers_odd"))


def test_batches_side_by_side_are_decided_each(app: Lowkiq, queue_name: str) -> None:
    """P3: while others of the shard run."""
    together = Barrier(3)

    def then(batch: Batch) -> None:
        together.wait(timeout=10)
        failing_with(**ERRORS)(batch)

    worker = with_rules(app, queue_name, Notes(then), concurrency=3)
    worker.push_many([{"id": word, "payload": word} for word in ERRORS])

    assert {"dead": 1, "retried": 1, "failed": 2, "discarded": 1, "rejected": 1} == app.drain()


def test_p2_no_rule_is_asked_about_a_process_that_died(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P2: three deaths send the payload to the morgue, as ever, and the hook hears why."""
    mortal, notes = Mortal(app), Notes()
    notes.then = lambda _batch: mortal.die()
    worker = with_rules(app, queue_name, notes, on_error=(kill_on(Exception),))
    worker.push_many(jobs_of("a", payload="v"))
    while mortal.drain() is None:
        outlive(app, clock, worker)

    assert ({"a": ["v"]}, ["crashed"]) == (dead_of(app, worker), [job.why for job in notes.dead])


@pytest.mark.parametrize("word", ["permanent", "gone"])
def test_what_ends_by_a_rule_has_spent_its_rate(app: Lowkiq, queue_name: str, word: str) -> None:
    """E-79: it has begun, so the limits of the queue count it as any other."""
    notes = Notes(failing_with(**ERRORS))
    worker = with_rules(app, queue_name, notes, rate=Rate(2, per=60))
    worker.push_many([{"id": n, "payload": word} for n in range(3)])

    app.drain()

    assert 2 == len(notes.batches)

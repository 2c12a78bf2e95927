"""Rejected(keep=True): the job ends as rejected, and its payloads lie in the morgue (A-28, P2, L-33)."""

from collections.abc import Iterator

import pytest

from lowkiq_lambda import Batch, BatchJob, Lowkiq, MorgueLimits, Rejected, Worker
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Broken, Notes, raising
from tests.kit.looks import counters, left_behind, pairs
from tests.kit.servers import Server
from tests.kit.tracking import Item, TaskOfTests
from tests.kit.workers import declare, jobs_of

NOT_QUALIFIED = Rejected("not qualified", keep=True)


def dead_of(app: Lowkiq, worker: type[Worker]) -> dict[str, list[tuple[object, float]]]:
    """What lies in the morgue, by id."""
    return {job.id: pairs(job) for job in app.operate(worker).morgue.list("id")}


def test_all_delivered_payloads_are_kept(app: Lowkiq, queue_name: str) -> None:
    """P2: counted as rejected, not as dead; the hook is not called, and an operator may requeue them."""
    notes = Notes(raising(NOT_QUALIFIED))
    worker = declare(app, queue_name, notes)
    worker.push_many([{"id": "a", "payload": n, "score": n} for n in range(3)])

    assert {"rejected": 1} == app.drain()
    assert {"a": [(n, float(n)) for n in range(3)]} == dead_of(app, worker)
    (job,) = app.operate(worker).morgue.fetch(["a"])
    assert ("not qualified", []) == (job.error, notes.dead)
    kept = counters(app, worker)
    assert (1, None) == (kept["rejected"], kept.get("dead"))
    assert {} == left_behind(app, worker)

    notes.then = None
    assert 1 == app.operate(worker).morgue.requeue(["a"])
    assert {"done": 1} == app.drain()
    assert [0, 1, 2] == notes.batches[-1]["a"]


def test_the_journal_and_why_tell_of_it(app: Lowkiq, queue_name: str) -> None:
    """P2: the rejection has the fingerprint of its reason, and each payload is dead."""
    worker = declare(app, queue_name, Notes(raising(NOT_QUALIFIED)))
    worker.push_many([{"id": "a", "payload": n, "score": n} for n in range(2)])
    app.drain()

    events = app.operate(worker).biography("a").events
    assert [("rejected", []), ("dead", [1]), ("dead", [2])] == [(event.kind, event.arrivals) for event in events]
    assert [16, 0, 0] == [len(event.fingerprint) for event in events]
    (job,) = app.operate(worker).morgue.fetch(["a"])
    assert {"Rejected(keep=True)"} == {failure.rule for failure in job.failures}


@pytest.mark.parametrize("kept", [0, 1])
def test_one_payload_is_kept_and_the_others_are_done(app: Lowkiq, server: Server, queue_name: str, kept: int) -> None:
    """A-28: of an id; the items of tasks are told apart."""
    worker = declare(app, queue_name, lambda batch: batch.fail("1", NOT_QUALIFIED, payload=kept))
    task = TaskOfTests(worker, server.admin)
    task.push_many((1, "a", "0"), (1, "b", "1"))

    assert {"rejected": 1} == app.drain()
    assert ["ab"[kept]] == [payload for payload, _ in dead_of(app, worker)["1"]]
    assert {str(kept): "f", str(1 - kept): "d"} == task.statuses
    assert Item("f", "1", 1, ("not qualified",)) == task.items[str(kept)]


def test_only_the_reason_that_says_so_is_kept(app: Lowkiq, queue_name: str) -> None:
    """P2: of an id whose payloads are rejected for several reasons."""

    def refuse(batch: Batch) -> None:
        batch.fail("a", Rejected("sold out"), payload=1)
        batch.fail("a", NOT_QUALIFIED)

    worker = declare(app, queue_name, refuse)
    worker.push_many([{"id": "a", "payload": n, "score": n} for n in range(3)])

    assert {"rejected": 1} == app.drain()
    assert {"a": [(0, 0.0), (2, 2.0)]} == dead_of(app, worker)


def test_a_job_that_failed_before_keeps_its_story(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P2: its earlier failures, and then the rejection."""
    notes = Notes(raising(Broken("bug")))
    worker = declare(app, queue_name, notes)
    worker.push_many(jobs_of("a"))
    app.drain()
    clock.advance(10)
    notes.then = raising(NOT_QUALIFIED)
    app.drain()

    (job,) = app.operate(worker).morgue.fetch(["a"])
    story = [(failure.error, failure.retry_count, failure.rule) for failure in job.failures]
    assert [("not qualified", 1.0, "Rejected(keep=True)"), ("bug", 0.0, "")] == story
    assert {} == left_behind(app, worker)


def test_what_is_pushed_meanwhile_runs(app: Lowkiq, queue_name: str) -> None:
    """P2: also with dead_head="block": the id is free."""

    def then(batch: Batch) -> None:
        if batch["a"] == ["old"]:
            worker.push_many([{"id": "a", "payload": "new"}])
            raise NOT_QUALIFIED

    notes = Notes(then)
    worker = declare(app, queue_name, notes, dead_head="block")
    worker.push_many([{"id": "a", "payload": "old"}])

    assert {"rejected": 1, "done": 1} == app.drain()
    assert [["old"], ["new"]] == [batch["a"] for batch in notes.batches]
    assert ["old"] == [payload for payload, _ in dead_of(app, worker)["a"]]


@pytest.mark.parametrize(("keep", "superseded"), [(True, False), (False, True)])
def test_latest_what_is_kept_raises_no_mark(app: Lowkiq, queue_name: str, *, keep: bool, superseded: bool) -> None:
    """P2: as a death; an older version may still run, as this one was not dealt with."""
    worker = declare(app, queue_name, Notes(raising(Rejected("no", keep=keep))), merge="latest")
    worker.push_many([{"id": "a", "payload": "v", "score": 7}])
    app.drain()

    (pushed,) = worker.push_many([{"id": "a", "payload": "older", "score": 6}])

    assert superseded is pushed.superseded


@pytest.mark.parametrize(("payloads", "cursor"), [(["one"], 1), (["one", "two"], None)])
def test_progress_is_kept_with_the_only_payload(
    app: Lowkiq, queue_name: str, payloads: list[str], cursor: int | None
) -> None:
    """P2: progress that was made on several payloads belongs to none of them."""

    def perform_job(_self: Worker, _job: BatchJob) -> Iterator[int]:
        yield 1
        raise NOT_QUALIFIED

    worker = declare(app, queue_name, Notes(), perform_job=perform_job)
    worker.push_many([{"id": "a", "payload": payload} for payload in payloads])
    app.drain()

    (job,) = app.operate(worker).morgue.fetch(["a"])
    assert (payloads, cursor) == ([payload for payload, _ in job.payloads], job.progress and job.progress.cursor)


def test_more_than_the_morgue_has_room_for_is_trimmed(make_app: MakeApp, queue_name: str) -> None:
    """L-33: as with any death."""
    app = make_app(morgue=MorgueLimits(entries=5))
    worker = declare(app, queue_name, raising(NOT_QUALIFIED))
    worker.push_many([{"id": "a", "payload": n, "score": n} for n in range(9)])
    app.drain()

    assert [4, 5, 6, 7, 8] == [payload for payload, _ in dead_of(app, worker)["a"]]
    assert 4 == counters(app, worker)["trimmed"]


def test_a_keep_that_breaks_is_none(app: Lowkiq, queue_name: str) -> None:
    """P2: the job ends all the same; only True is a yes."""

    class Odd(Rejected):
        """Its attribute raises."""

        @property
        def keep(self) -> bool:  # type: ignore[override]  # as users may
            raise Broken

        def __init__(self) -> None:
            Exception.__init__(self, "odd")

    worker = declare(app, queue_name, raising(Odd()))
    worker.push_many(jobs_of("a"))

    assert {"rejected": 1} == app.drain()
    assert {} == dead_of(app, worker)

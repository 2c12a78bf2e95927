"""What a handler may do with its batch, and what its marks mean (E-55, E-56, E-57)."""

import threading
from typing import Any

import pytest

from lowkiq_lambda import Batch, BatchClosed, Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Broken, Notes, failing
from tests.kit.looks import look
from tests.kit.workers import declare, jobs_of


def test_ids_that_were_not_failed_are_done(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """When the handler returns, what it failed by name is retried, and the rest is done."""
    worker = declare(app, queue_name, failing("b"), batch_size=3)
    worker.push_many(jobs_of("abc"))

    assert {"done": 2, "failed": 1, "retried": 1} == app.drain()

    assert ([("", clock.time())], clock.time() + 10, 0.0, "b is broken") == look(app, worker, "b")


def test_fail_takes_an_exception_or_a_text(app: Lowkiq, queue_name: str) -> None:
    """The error is kept as its text; one that has none, as its type."""

    def fail_all(batch: Batch) -> None:
        batch.fail("a", "a text")
        batch.fail("b", Broken("an exception"))
        batch.fail("c", KeyError())

    worker = declare(app, queue_name, fail_all, batch_size=3)
    worker.push_many(jobs_of("abc"))
    app.drain()

    found = [look(app, worker, job_id) for job_id in "abc"]
    assert ["a text", "an exception", "KeyError"] == [one and one.error for one in found]


def test_e55_what_is_failed_with_no_error_has_failed(app: Lowkiq, queue_name: str) -> None:
    """E-55: an error that is none, say of an answer that has none, is no success; its text is what was given."""

    def fail_all(batch: Batch) -> None:
        batch.fail("a", None)  # type: ignore[arg-type]  # on purpose
        batch.fail("b", 404)  # type: ignore[arg-type]  # on purpose

    worker = declare(app, queue_name, fail_all, batch_size=3)
    worker.push_many(jobs_of("abc"))

    assert {"done": 1, "failed": 2, "retried": 2} == app.drain()

    found = [look(app, worker, job_id) for job_id in "ab"]
    assert ["None", "404"] == [one and one.error for one in found]


def test_e55_marks_stay_when_the_handler_raises(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """E-55: done stays done, failed stays failed with its own error, and only the rest is unattributed."""

    def mark_and_raise(batch: Batch) -> None:
        if "a" in batch:
            batch.done("a")
            batch.fail("b", "by name")
            notes.then = None
            raise Broken("in the middle")

    notes = Notes(mark_and_raise)
    worker = declare(app, queue_name, notes, batch_size=4)
    worker.push_many(jobs_of("abcd"))

    counts = app.drain()

    assert {"done": 3, "failed": 1, "retried": 1, "suspected": 2} == counts
    assert [["a", "b", "c", "d"], ["c"], ["d"]] == notes.ids
    assert ([("", clock.time())], clock.time() + 10, 0.0, "by name") == look(app, worker, "b")


def test_e55_marks_are_for_ids_of_the_batch_and_final(app: Lowkiq, queue_name: str) -> None:
    """E-55: another id is a KeyError, the same mark again nothing, the opposite mark a ValueError."""
    raised: list[str] = []

    def mark(batch: Batch) -> None:
        batch.done("a")
        batch.done("a")
        batch.fail("b", "first")
        batch.fail("b", "second")
        for job_id, name in (("x", "done"), ("x", "fail"), ("a", "fail"), ("b", "done")):
            try:
                _ = batch.done(job_id) if name == "done" else batch.fail(job_id, "late")  # type: ignore[func-returns-value]  # on purpose
            except (KeyError, ValueError) as error:
                raised.append(f"{type(error).__name__}: {error.args[0]}")

    worker = declare(app, queue_name, mark, batch_size=2)
    worker.push_many(jobs_of("ab"))

    assert {"done": 1, "failed": 1, "retried": 1} == app.drain()

    assert [
        "KeyError: 'x' is not in this batch",
        "KeyError: 'x' is not in this batch",
        "ValueError: 'a' is marked done already",
        "ValueError: 'b' is marked failed already",
    ] == raised
    waiting = look(app, worker, "b")
    assert waiting is not None
    assert "first" == waiting.error


def test_a_number_in_place_of_an_id_is_answered_by_the_text(app: Lowkiq, queue_name: str) -> None:
    """Whatever was pushed as 17 is "17" in a batch, and each way to ask for it says so."""
    raised: list[str] = []

    def ask(batch: Batch) -> None:
        number: Any = 17
        calls = (
            batch.__getitem__,
            batch.job,
            batch.done,
            lambda id: batch.fail(id, "late"),
            lambda id: batch.note(id, ""),
        )
        for call in calls:
            with pytest.raises(KeyError) as error:
                call(number)
            raised.extend(error.value.args)

    worker = declare(app, queue_name, ask)
    worker.push(17)

    assert {"done": 1} == app.drain()
    assert ["17 is not in this batch: ids are texts, so write '17'"] * 5 == raised


def test_e56_changes_of_the_handler_change_nothing(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """E-56: what a handler does to its payloads is gone at the retry, whether it failed by name or by raising."""

    def spoil(batch: Batch) -> None:
        batch.job("a").payloads.append("more")  # type: ignore[attr-defined]  # that is the point
        seen.append(len(batch["a"]))
        batch["a"][0]["list"].append(1)
        batch["a"].clear()
        raise Broken

    seen: list[int] = []
    notes = Notes(spoil)
    worker = declare(app, queue_name, notes)
    worker.push_many([{"id": "a", "payload": {"list": []}}])

    app.drain()
    clock.advance(10)
    notes.then = None
    app.drain()

    assert ([1], {"a": [{"list": []}]}) == (seen, notes.batches[-1])


def test_e57_marks_after_the_end_are_refused(app: Lowkiq, queue_name: str) -> None:
    """E-57: what a handler left running cannot change an outcome that is settled."""
    kept: list[Batch] = []
    worker = declare(app, queue_name, kept.append, batch_size=2)
    worker.push_many(jobs_of("ab"))
    app.drain()

    with pytest.raises(BatchClosed, match="call `done` and `fail` before the handler returns"):
        kept[0].fail("a", "late")
    with pytest.raises(BatchClosed):
        kept[0].done("b")

    assert look(app, worker, "a") is None


def test_marks_may_come_from_threads_of_the_handler(app: Lowkiq, queue_name: str) -> None:
    """A handler may spread its ids over threads that mark them."""

    def spread(batch: Batch) -> None:
        threads = [threading.Thread(target=batch.fail, args=(job_id, job_id)) for job_id in batch]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    worker = declare(app, queue_name, spread, batch_size=20)
    worker.push_many(jobs_of("abcdefghijklmnopqrst"))

    assert {"failed": 20, "retried": 20} == app.drain()


def test_job_tells_all_that_is_known(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """`batch.job(id)` has scores, time, retry_count, last error; another id is a KeyError."""
    notes = Notes(failing("a"))
    worker = declare(app, queue_name, notes, batch_size=2)
    worker.push_many([{"id": "a", "payload": n, "score": n} for n in (2, 1)])
    app.drain()
    clock.advance(10)
    app.drain()

    first, second = notes.jobs[0][0], notes.jobs[1][0]
    assert ("a", [1, 2], [1.0, 2.0], -1.0, None, False, None) == (
        first.id,
        first.payloads,
        first.scores,
        first.retry_count,
        first.error,
        first.repeated,
        first.cursor,
    )
    assert (clock.time(), 0.0, "a is broken") == (second.due_at, second.retry_count, second.error)
    assert [(1, 1.0), (2, 2.0)] == [tuple(one) for one in second.scored_payloads]


def test_job_of_another_id_is_a_key_error(app: Lowkiq, queue_name: str) -> None:
    """The batch knows its own ids only, as a mapping does."""
    raised: list[str] = []

    def ask(batch: Batch) -> None:
        for look_up in (batch.job, batch.__getitem__):
            try:
                look_up("x")
            except KeyError:
                raised.append("KeyError")

    declare(app, queue_name, ask).push_many(jobs_of("a"))
    app.drain()

    assert ["KeyError", "KeyError"] == raised


def test_d10_outcomes_are_of_ids_not_of_batches(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """D-10: a failing id in a batch of ten costs the other nine nothing, as often as it fails."""
    notes = Notes(failing("e"))
    worker = declare(app, queue_name, notes, batch_size=10, max_retry_count=2)
    worker.push_many(jobs_of("abcdefghij"))

    assert {"done": 9, "failed": 1, "retried": 1} == app.drain()
    for _ in range(5):
        clock.advance(100)
        app.drain()

    assert ["e"] == [job.id for job in notes.dead]
    assert [list("abcdefghij"), ["e"], ["e"]] == notes.ids

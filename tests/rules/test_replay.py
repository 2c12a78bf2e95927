"""The replay of kept runs: their payloads are pushed again, in order, each once."""

from typing import Any

import pytest

from lowkiq_lambda import Batch, KeepRuns, Lowkiq, Worker
from lowkiq_lambda.operate.acts import replaying
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Notes
from tests.kit.workers import declare, jobs_of

WITH_PAYLOADS = KeepRuns(1_000, payloads=True)


@pytest.fixture
def notes() -> Notes:
    """What the handler got."""
    return Notes()


def test_what_was_done_in_a_window_runs_again_in_its_order(
    app: Lowkiq, clock: ManualClock, queue_name: str, notes: Notes
) -> None:
    """With the scores of then: a payload that waits with a higher one comes behind it. A second replay adds nothing."""
    worker = declare(app, queue_name, notes, keep_runs=WITH_PAYLOADS, batch_size=10)
    worker.push("before")
    app.drain()
    clock.advance(60)
    began = clock.time()
    worker.push_many([{"id": "a", "payload": n, "score": n} for n in (1, 2)])
    worker.push_many([{"id": "x" * 300, "payload": {"k": ["é", None]}, "score": 5}])
    app.drain()
    ended = clock.time()
    clock.advance(60)
    notes.clear()
    worker.push_many([{"id": "a", "payload": 3, "score": 3}])

    preview = app.operate(worker).replay(since=began - 1, until=ended + 1, dry_run=True)
    assert (2, 2, 3, 0) == (preview.runs, preview.ids, preview.payloads, preview.written)
    assert {} == app.drain(0)
    replayed = app.operate(worker).replay(since=began - 1, until=ended + 1)
    app.drain()

    assert (3, 0) == (replayed.written, replayed.repeated)
    (batch,) = notes.batches
    assert {"a": [1, 2, 3], "x" * 300: [{"k": ["é", None]}]} == batch
    notes.clear()
    again = app.operate(worker).replay(since=began - 1, until=ended + 1)
    app.drain()
    assert ((3, 3), []) == ((again.written, again.repeated), notes.batches)


def test_a_rate_gives_each_id_its_time(app: Lowkiq, clock: ManualClock, queue_name: str, notes: Notes) -> None:
    """Ten ids a second: the first is due now, and no process has to run meanwhile."""
    worker = declare(app, queue_name, notes, keep_runs=WITH_PAYLOADS, batch_size=10)
    worker.push_many([{"id": job_id, "payload": n} for job_id in "abc" for n in range(2)])
    app.drain()
    now = clock.time()

    app.operate(worker).replay(rate=10)

    due = {job.id: job.due_at - now for job in app.operate(worker).waiting.fetch(list("abc"))}
    assert {"a": 0.0, "b": 0.1, "c": 0.2} == pytest.approx(due, abs=0.02)


def test_only_the_outcome_and_the_prefix_that_were_chosen(app: Lowkiq, queue_name: str) -> None:
    """Done runs by default, of ids that begin so."""

    def handle(batch: Batch) -> None:
        for job_id in batch:
            if job_id.endswith("-bad"):
                batch.fail(job_id, "bad")

    worker = declare(app, queue_name, handle, keep_runs=WITH_PAYLOADS, max_retry_count=0)
    worker.push_many(jobs_of(["eu-1", "eu-bad", "us-1"]))
    app.drain()
    operate = app.operate(worker)

    assert (2, 1) == (operate.replay(dry_run=True).runs, operate.replay(outcome="dead", dry_run=True).runs)
    assert 1 == operate.replay(id_prefix="eu-", dry_run=True).ids


def test_with_the_latest_alone_an_older_version_is_superseded(app: Lowkiq, queue_name: str, notes: Notes) -> None:
    """A queue that goes by versions goes back to none, by a replay either: the newest runs again."""
    worker = declare(app, queue_name, notes, keep_runs=WITH_PAYLOADS, merge="latest")
    for version in (1, 2):
        worker.push_many([{"id": "a", "payload": version, "score": version}])
        app.drain()
    notes.clear()

    replayed = app.operate(worker).replay()
    app.drain()

    assert ((2, 1), [{"a": [2]}]) == ((replayed.written, replayed.superseded), notes.batches)


@pytest.mark.parametrize("keep_runs", [None, 100, KeepRuns(100)])
def test_runs_without_payloads_are_refused(app: Lowkiq, queue_name: str, keep_runs: Any) -> None:
    """In words that say what to declare."""
    worker = declare(app, queue_name, Notes(), keep_runs=keep_runs)

    with pytest.raises(ValueError, match=r"the runs of Noting keep no payloads: keep_runs = KeepRuns\(10_000"):
        app.operate(worker).replay()


def test_runs_of_a_time_without_payloads_are_counted(app: Lowkiq, queue_name: str, notes: Notes) -> None:
    """They were kept before the worker kept payloads, and are left out."""
    declared: type[Worker] = declare(app, queue_name, notes, keep_runs=KeepRuns(100))
    declared.push("a")
    app.drain()
    declared.keep_runs = WITH_PAYLOADS

    preview = app.operate(declared).replay(dry_run=True)

    assert (0, 1) == (preview.runs, preview.without_payloads)


def test_too_many_are_refused(app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay holds its payloads in memory while it sorts them."""
    monkeypatch.setattr(replaying, "MOST_PAYLOADS", 2)
    worker = declare(app, queue_name, Notes(), keep_runs=WITH_PAYLOADS)
    worker.push_many(jobs_of("abc"))
    app.drain()

    with pytest.raises(ValueError, match="at most 2 payloads: choose a shorter time"):
        app.operate(worker).replay()
    with pytest.raises(ValueError, match="rate must be above 0"):
        app.operate(worker).replay(rate=0)

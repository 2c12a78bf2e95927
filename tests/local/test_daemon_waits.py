"""A queue whose thread has others with nothing to do, or nothing but trouble: by the real clock, which can refuse."""

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import pytest

from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.engine.visit import DrainResult
from lowkiq_lambda.errors import BackendDenied
from lowkiq_lambda.local.daemon import Daemon
from lowkiq_lambda.local.splitters import DefaultSplitter
from lowkiq_lambda.store.shard.keys import ShardRef
from tests.kit.apps import MakeApp
from tests.kit.waiting import eventually

SECONDS: Final = float(os.environ.get("TEST_SECONDS", "3"))
"""How long what cannot be waited for is beside what can; a minute shows more than anybody wants to wait for."""
YEAR_9999: Final = 253_402_300_799
GOOD: Final = [f"good-{number}" for number in range(50)]


class Times:
    """When each id was performed."""

    def __init__(self, app: Lowkiq, queue_name: str) -> None:
        self.at: dict[str, float] = {}
        self.worker = declared(app, queue_name, self.note)

    def note(self, batch: Batch) -> None:
        """Note the ids of a batch."""
        for job_id in batch:
            self.at[job_id] = time.monotonic()

    def seconds_to_perform(self, job_id: str) -> float:
        """Push it, and wait until it was performed."""
        pushed_at = time.monotonic()
        self.worker.perform_async([{"id": job_id}])
        eventually(lambda: job_id in self.at, timeout=60.0)
        return self.at[job_id] - pushed_at


def declared(app: Lowkiq, queue_name: str, perform: Callable[[Batch], object]) -> type[Worker]:
    """A worker of one shard."""
    fields = {"queue_name": queue_name, "shards_count": 1, "perform": lambda _self, batch: perform(batch)}
    return app.worker(type("Made", (Worker,), fields))


def nothing(_batch: Batch) -> None:
    """Perform it."""


def test_p6_a_wait_without_end_holds_up_no_other_queue_of_the_thread(
    make_app: MakeApp, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """P6: a queue that is paused until somebody resumes it, and a job that is due in the year 9999."""
    app = make_app(threads_per_node=1, poll_interval=0.2)
    paused = declared(app, f"{queue_name}-paused", nothing)
    paused.perform_async([{"id": "p"}])
    app.actions(paused).pause()
    declared(app, f"{queue_name}-far", nothing).perform_async([{"id": "f", "perform_in": YEAR_9999}])
    notes, took = Times(app, queue_name), list[float]()

    with caplog.at_level(logging.WARNING), Daemon(app):
        ends_at = time.monotonic() + SECONDS
        while time.monotonic() < ends_at:
            took.append(notes.seconds_to_perform(f"id-{len(took)}"))
            # Between two pushes the thread has only what is far away to wait for.
            eventually(lambda: time.monotonic() > notes.at[f"id-{len(took) - 1}"] + 0.2)

    logging.getLogger(__name__).info("%d jobs, the slowest after %.3f s", len(took), max(took))
    assert max(took) < 1.0
    assert "died" not in caplog.text


def test_p6_shards_whose_handlers_exit_starve_no_other_of_their_thread(
    make_app: MakeApp, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """P6: two of them, each with more to do than anybody comes to the end of, and a queue beside them."""

    def leave(_batch: Batch) -> None:
        raise SystemExit(3)

    app = make_app(threads_per_node=1, poll_interval=0.2)
    for name in ("one", "two"):
        bad = declared(app, f"{queue_name}-{name}", leave)
        bad.perform_async([{"id": number, "perform_in": time.time() - 1_000} for number in range(100)])
    notes = Times(app, queue_name)

    with caplog.at_level(logging.WARNING), Daemon(app):
        eventually(lambda: caplog.text.count("a handler exited") >= 4)
        took = [notes.seconds_to_perform(job_id) for job_id in GOOD]

    assert max(took) < 1.0
    assert "replaced" not in caplog.text


def test_p6_ids_that_exit_again_and_again_delay_no_other_of_their_shard(make_app: MakeApp, queue_name: str) -> None:
    """P6: however many exit, and however often, their shard rests for a tenth of a poll interval at most."""
    app = make_app(threads_per_node=1, poll_interval=0.5)
    notes, exits = Times(app, queue_name), list[str]()

    def perform(_self: Worker, batch: Batch) -> None:
        notes.note(batch)
        exits.extend(found := [job_id for job_id in batch if job_id.startswith("bad")])
        if found:
            raise SystemExit(3)

    notes.worker.perform = perform  # type: ignore[attr-defined]  # as it was declared
    took = []
    with Daemon(app):
        for number in range(6):
            seen = len(exits)
            notes.worker.perform_async([{"id": f"bad-{number}"}])
            eventually(lambda before=seen: len(exits) >= before + 3)  # type: ignore[misc]  # bound on purpose
            took.append(notes.seconds_to_perform(GOOD[number]))

    assert max(took) < 0.5


def test_p6_shards_that_redis_refuses_starve_no_other_of_their_thread(
    make_app: MakeApp, queue_name: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6: a right that is missing for some keys is no reason to end a thread; it is told, and last_words hear of it."""
    words: list[BaseException] = []
    app = make_app(threads_per_node=1, poll_interval=0.2, last_words=words.append)
    for name in ("one", "two"):
        bad = declared(app, f"{queue_name}-{name}", nothing)
        bad.perform_async([{"id": "bad", "perform_in": time.time() - 1_000}])
    notes, visit = Times(app, queue_name), app.drainer.visit

    def refused(shard: ShardRef, budget: Budget) -> DrainResult:
        if shard.queue_name != queue_name:
            raise BackendDenied("No permissions to access a key")
        return visit(shard, budget)

    monkeypatch.setattr(app.drainer, "visit", refused)
    with caplog.at_level(logging.WARNING), Daemon(app):
        eventually(lambda: len(words) >= 4)
        took = [notes.seconds_to_perform(job_id) for job_id in GOOD]

    assert max(took) < 1.0
    assert {BackendDenied} == {type(word) for word in words}
    assert "replaced" not in caplog.text
    assert {"one", "two"} == {queue.removeprefix(f"{queue_name}-") for queue in told(caplog, "queue")}


def test_p6_a_bug_that_ends_a_thread_again_and_again_does_not_keep_it_from_its_other_shards(
    make_app: MakeApp, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6: the shard rests for it, so the thread is replaced at once each time."""
    app = make_app(threads_per_node=1, poll_interval=10.0)
    for name in ("one", "two"):
        bad = declared(app, f"{queue_name}-{name}", nothing)
        bad.perform_async([{"id": "bad", "perform_in": time.time() - 1_000}])
    notes, visit, failures = Times(app, queue_name), app.drainer.visit, list[str]()

    def broken(shard: ShardRef, budget: Budget) -> DrainResult:
        if shard.queue_name != queue_name:
            failures.append(shard.queue_name)
            raise RuntimeError("a bug")
        return visit(shard, budget)

    monkeypatch.setattr(app.drainer, "visit", broken)
    with Daemon(app):
        eventually(lambda: len(failures) >= 2)
        took = [notes.seconds_to_perform(job_id) for job_id in GOOD]

    assert max(took) < 1.0


def told(caplog: pytest.LogCaptureFixture, field: str) -> set[Any]:
    """The values of a field of what was logged."""
    return {vars(record)[field] for record in caplog.records if field in vars(record)}


@pytest.mark.parametrize(("build_splitter", "count"), [(None, 4), (DefaultSplitter, 2)])
def test_a_handler_that_takes_long_keeps_only_its_shard_from_idle_threads(
    make_app: MakeApp, queue_name: str, build_splitter: type[DefaultSplitter] | None, count: int
) -> None:
    """Two threads: one is busy, and the other performs all else; with a splitter it keeps to what it was dealt."""
    app = make_app(threads_per_node=2, build_splitter=build_splitter)
    begun, may_end = threading.Event(), threading.Event()

    def wait(_batch: Batch) -> None:
        begun.set()
        may_end.wait(60.0)

    slow = declared(app, f"{queue_name}-slow", wait)
    notes = [Times(app, f"{queue_name}-{number}") for number in range(4)]

    with Daemon(app):
        slow.perform_async([{"id": "s"}])
        assert begun.wait(60.0)
        # Dealt like cards, the slow queue's thread has every second one.
        for note in notes[::-1] if build_splitter is None else notes[::2]:
            note.seconds_to_perform("a")
        if build_splitter:
            for note in notes[1::2]:
                note.worker.perform_async([{"id": "a"}])
            notes[0].seconds_to_perform("b")
        assert count == sum("a" in note.at for note in notes)
        may_end.set()
        eventually(lambda: all("a" in note.at for note in notes))

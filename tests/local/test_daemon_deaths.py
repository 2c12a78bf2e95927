"""Drain threads that die, and what happens to the others, to the jobs, and to the shards."""

import logging
import threading
from collections import Counter
from typing import Any

import pytest

from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.jobs.job import shard_for
from lowkiq_lambda.local.daemon import Daemon
from lowkiq_lambda.local.overrides import LagScheduler
from lowkiq_lambda.local.splitters import DefaultSplitter
from tests.kit.apps import MakeApp
from tests.kit.waiting import eventually

SHARDS = 2
HERE, THERE = [next(str(n) for n in range(99) if shard_for(str(n), SHARDS) == shard) for shard in range(SHARDS)]
"""Ids of different shards, so of different threads where there are two."""


class Ends:
    """A handler that exits the first times that it gets an id."""

    def __init__(self, app: Lowkiq, queue_name: str, **times: int) -> None:
        self.left = Counter(times)
        self.error: BaseException = SystemExit("enough")
        self.runs: list[tuple[str, float, str]] = []
        handler = self

        class Ending(Worker):
            shards_count = SHARDS

            def perform(self, batch: Batch) -> None:
                handler.perform(batch)

        Ending.queue_name = queue_name
        self.worker = app.worker(Ending)

    def perform(self, batch: Batch) -> None:
        """Note the run; leave if this id still should."""
        (job_id,) = batch
        self.runs.append((job_id, batch.job(job_id).retry_count, threading.current_thread().name))
        self.left[f"id{job_id}"] -= 1
        if self.left[f"id{job_id}"] >= 0:
            raise self.error

    def ran(self, job_id: str) -> list[tuple[str, float, str]]:
        """The runs of one id."""
        return [run for run in self.runs if run[0] == job_id]


def test_c15_a_thread_that_its_handler_ends_is_replaced(
    make_app: MakeApp, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """C-15, A-7, E-98: no shard is left idle, the death is reported, and last_words hears of it."""
    words: list[BaseException] = []
    app = make_app(threads_per_node=SHARDS, poll_interval=0.1, last_words=words.append)
    handler = Ends(app, queue_name, **{f"id{HERE}": 1})
    handler.error = KeyboardInterrupt("enough")
    with Daemon(app), caplog.at_level(logging.WARNING):
        handler.worker.push_many([{"id": HERE}])
        eventually(lambda: len(handler.ran(HERE)) == 2)

    assert "a drain thread was ended by KeyboardInterrupt('enough') and is replaced" in caplog.text
    assert ["enough"] == [str(word) for word in words]


def test_e54_a_handler_that_exits_costs_no_thread(
    make_app: MakeApp, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """E-54, E-98: its jobs were given back, so the thread goes on; it is reported, and last_words hears of it."""
    words: list[BaseException] = []
    threads: list[int] = []
    app = make_app(threads_per_node=1, poll_interval=0.1, last_words=words.append)
    handler = Ends(app, queue_name, **{f"id{HERE}": 2})

    def note(worker: Worker, batch: Batch, call_next: Any) -> None:
        threads.append(threading.get_native_id())
        call_next(worker, batch)

    app.server_middlewares.append(note)
    with Daemon(app), caplog.at_level(logging.WARNING):
        handler.worker.push_many([{"id": HERE}])
        eventually(lambda: len(handler.ran(HERE)) == 3)

    assert 2 == caplog.text.count("a handler exited with SystemExit: enough")
    assert "replaced" not in caplog.text
    assert (3, 1) == (len(threads), len(set(threads)))
    assert ["enough"] * 2 == [str(word) for word in words]


def test_e54_being_ended_is_no_failure_of_the_job(make_app: MakeApp, queue_name: str) -> None:
    """E-54: a job whose handler raised SystemExit goes back in place, and nothing is counted."""
    app = make_app(threads_per_node=SHARDS, poll_interval=0.1)
    handler = Ends(app, queue_name, **{f"id{HERE}": 3})
    with Daemon(app):
        handler.worker.push_many([{"id": HERE}])
        eventually(lambda: len(handler.ran(HERE)) == 4)

    assert {-1.0} == {retry_count for _, retry_count, _ in handler.runs}


@pytest.mark.parametrize("build_splitter", [None, DefaultSplitter])
def test_e54_the_end_of_one_thread_does_not_end_the_others(
    make_app: MakeApp, queue_name: str, build_splitter: type[DefaultSplitter] | None
) -> None:
    """E-54 wins over L-66: while one thread dies again and again, the other performs its jobs."""
    app = make_app(threads_per_node=SHARDS, poll_interval=0.1, build_splitter=build_splitter)
    handler = Ends(app, queue_name, **{f"id{HERE}": 1_000})
    with Daemon(app):
        handler.worker.push_many([{"id": HERE}])
        eventually(lambda: len(handler.ran(HERE)) >= 3)
        handler.worker.push_many([{"id": THERE}])
        eventually(lambda: handler.ran(THERE))

    if build_splitter:
        assert handler.ran(HERE)[0][2] != handler.ran(THERE)[0][2]


def test_a_shard_that_ends_its_thread_does_not_hold_up_the_threads_other_shards(
    make_app: MakeApp, queue_name: str
) -> None:
    """E-98: one thread has both shards; the one whose job ends it rests, the other is drained meanwhile."""
    app = make_app(threads_per_node=1, poll_interval=20.0)
    handler = Ends(app, queue_name, **{f"id{HERE}": 1_000})
    with Daemon(app):
        handler.worker.push_many([{"id": HERE}])
        eventually(lambda: handler.ran(HERE))
        handler.worker.push_many([{"id": THERE}])
        eventually(lambda: handler.ran(THERE))

    assert 1 == len(handler.ran(HERE))


class BrokenScheduler:
    """A scheduler that fails the first times."""

    def __init__(self, times: int) -> None:
        self._left = times
        self._right = LagScheduler()

    def next(self, states: Any) -> Any:
        """Fail, or choose."""
        self._left -= 1
        if self._left >= 0:
            raise RuntimeError("no idea")
        return self._right.next(states)


def test_l67_an_error_outside_handlers_goes_to_last_words(
    make_app: MakeApp, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """L-67: a bug beside the handlers costs a thread, which is replaced; it is logged with its traceback."""
    words: list[BaseException] = []
    app = make_app(
        threads_per_node=1, poll_interval=0.05, build_scheduler=lambda: BrokenScheduler(3), last_words=words.append
    )
    handler = Ends(app, queue_name)
    with Daemon(app), caplog.at_level(logging.ERROR):
        handler.worker.push_many([{"id": HERE}])
        eventually(lambda: handler.ran(HERE))

    assert ["no idea"] * 3 == [str(word) for word in words]
    assert 3 == sum("a thread died and is replaced" == record.message for record in caplog.records)
    assert "RuntimeError: no idea" in caplog.text


def test_last_words_that_raise_change_nothing(make_app: MakeApp, queue_name: str) -> None:
    """C-15: a broken hook for errors does not break the replacing of threads."""

    def last_words(_error: BaseException) -> None:
        raise RuntimeError("speechless")

    app = make_app(threads_per_node=SHARDS, poll_interval=0.1, last_words=last_words)
    handler = Ends(app, queue_name, **{f"id{HERE}": 2})
    with Daemon(app):
        handler.worker.push_many([{"id": HERE}])
        eventually(lambda: len(handler.ran(HERE)) == 3)

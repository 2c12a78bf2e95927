"""A queue whose thread has others with nothing to do, or nothing but trouble: by the real clock, which can refuse."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

import pytest

from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.base.errors import BackendDenied
from lowkiq_lambda.engine.board import ShardBoard
from lowkiq_lambda.engine.budget import Budget, VisitResult
from lowkiq_lambda.engine.shard_queue import ShardEntry
from lowkiq_lambda.local.daemon import Daemon
from lowkiq_lambda.local.splitters import DefaultSplitter
from lowkiq_lambda.settings.protocols import Scheduler
from lowkiq_lambda.store.shard.keys import ShardRef
from tests.kit.apps import MakeApp
from tests.kit.servers import Server
from tests.kit.waiting import eventually
from tests.local.listening import listening

Visit: TypeAlias = Callable[[ShardRef, Budget], VisitResult]
Notify: TypeAlias = Callable[[ShardBoard, Iterable[ShardRef]], None]

YEAR_9999: Final = 253_402_300_799
NEVER: Final = 100_000.0
"""Seconds that no test waits for."""
GOOD: Final = [f"good-{number}" for number in range(50)]
BOTH: Final = 2
"""Two shards in trouble: a job of another one waits for one visit of each at most, and then for none."""


class Visits:
    """The visits of a daemon's one thread, in the order in which they begin: load may stretch them, not change it."""

    def __init__(self, app: Lowkiq, monkeypatch: pytest.MonkeyPatch, instead: Visit | None = None) -> None:
        self.shards: list[ShardRef] = []
        self.performed: dict[str, int] = {}
        """In which visit an id was performed, the last time."""
        self._heard: list[int] = []
        self._visit: Visit = instead or app.core.drains.drainer.visit
        monkeypatch.setattr(app.core.drains.drainer, "visit", self._noted)
        monkeypatch.setattr(ShardBoard, "notify", self._hears(ShardBoard.notify))

    def note(self, batch: Batch) -> None:
        """Note the ids of a batch."""
        self.performed.update(dict.fromkeys(batch, len(self.shards)))

    def begun_until(self, worker: type[Worker], job_id: str, *, is_news: bool = True) -> int:
        """Push it: how many visits began from then on, up to the one that performed it.

        They count from the time when the daemon has heard of it, if that is news: if its shard had nothing to do.
        """
        heard = len(self._heard)
        worker.push_many([{"id": job_id}])
        begun = len(self.shards)
        eventually(lambda: job_id in self.performed and (not is_news or len(self._heard) > heard), timeout=60.0)
        return self.performed[job_id] - (self._heard[heard] if is_news else begun)

    def _noted(self, shard: ShardRef, budget: Budget) -> VisitResult:
        self.shards.append(shard)
        return self._visit(shard, budget)

    def _hears(self, notify: Notify) -> Notify:
        def heard(board: ShardBoard, shards: Iterable[ShardRef]) -> None:
            notify(board, shards)
            self._heard.append(len(self.shards))

        return heard


def declared(app: Lowkiq, queue_name: str, perform: Callable[[Batch], object]) -> type[Worker]:
    """A worker of one shard."""
    fields = {"queue_name": queue_name, "shards_count": 1, "perform": lambda _self, batch: perform(batch)}
    return app.worker(type("Made", (Worker,), fields))


def nothing(_batch: Batch) -> None:
    """Perform it."""


def test_p6_a_wait_without_end_holds_up_no_other_queue_of_the_thread(
    make_app: MakeApp,
    server: Server,
    queue_name: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """P6: a queue that is paused until somebody resumes it, and a job that is due in the year 9999: a push is heard."""
    app, pause, pauses = make_app(threads_per_node=1, poll_interval=NEVER), ShardBoard._pause, list[float]()
    paused = declared(app, f"{queue_name}-paused", nothing)
    paused.push_many([{"id": "p"}])
    app.operate(paused).pause()
    declared(app, f"{queue_name}-far", nothing).push_many([{"id": "f", "due_at": YEAR_9999}])
    performed = list[str]()
    worker = declared(app, queue_name, performed.extend)

    def noted_pause(board: ShardBoard, scheduler: Scheduler | None) -> float:
        pauses.append(pause(board, scheduler))
        return pauses[-1]

    monkeypatch.setattr(ShardBoard, "_pause", noted_pause)
    with caplog.at_level(logging.WARNING), Daemon(app):
        eventually(lambda: listening(server, queue_name))
        for number, job_id in enumerate(GOOD):
            # Between two pushes the thread has only what is far away to wait for.
            eventually(lambda before=number: len(pauses) > before)  # type: ignore[misc]  # bound on purpose
            worker.push_many([{"id": job_id}])
            eventually(lambda before=number: len(performed) > before)  # type: ignore[misc]  # as above

    assert GOOD == performed
    assert min(pauses) > NEVER
    assert "died" not in caplog.text


def test_p6_shards_whose_handlers_exit_starve_no_other_of_their_thread(
    make_app: MakeApp, queue_name: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6: two of them, each with more to do than anybody comes to the end of, and a queue beside them."""

    def leave(_batch: Batch) -> None:
        raise SystemExit(3)

    app = make_app(threads_per_node=1, poll_interval=0.2)
    for name in ("one", "two"):
        bad = declared(app, f"{queue_name}-{name}", leave)
        bad.push_many([{"id": number, "due_at": time.time() - 1_000} for number in range(100)])
    visits = Visits(app, monkeypatch)
    worker = declared(app, queue_name, visits.note)

    with caplog.at_level(logging.WARNING), Daemon(app):
        eventually(lambda: caplog.text.count("a handler exited") >= 4)
        begun = [visits.begun_until(worker, job_id) for job_id in GOOD]

    assert max(begun) <= BOTH + 1
    assert "replaced" not in caplog.text


def test_p6_ids_that_exit_again_and_again_delay_no_other_of_their_shard(
    make_app: MakeApp, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6: however many exit, and however often, the next visit performs others, after a tenth of a poll interval."""
    app = make_app(threads_per_node=1, poll_interval=0.5)
    exits, rests, put_back = list[str](), list[float](), ShardEntry.put_back
    visits = Visits(app, monkeypatch)

    def perform(batch: Batch) -> None:
        visits.note(batch)
        if any(job_id.startswith("bad") for job_id in batch):
            exits.extend(batch)
            raise SystemExit(3)

    def noted_rest(entry: ShardEntry, now: float, rest: float) -> None:
        rests.append(rest)
        put_back(entry, now, rest)

    monkeypatch.setattr(ShardEntry, "put_back", noted_rest)
    worker, begun = declared(app, queue_name, perform), list[int]()
    with Daemon(app):
        for number in range(6):
            seen = len(exits)
            worker.push_many([{"id": f"bad-{number}"}])
            eventually(lambda before=seen: len(exits) >= before + 3)  # type: ignore[misc]  # bound on purpose
            begun.append(visits.begun_until(worker, GOOD[number], is_news=False))

    assert max(begun) <= 1
    assert 0.05 == max(rests)


def test_p6_shards_that_redis_refuses_starve_no_other_of_their_thread(
    make_app: MakeApp, queue_name: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6: a right that is missing for some keys is no reason to end a thread; it is told, and last_words hear of it."""
    words: list[BaseException] = []
    app = make_app(threads_per_node=1, poll_interval=0.2, last_words=words.append)
    for name in ("one", "two"):
        bad = declared(app, f"{queue_name}-{name}", nothing)
        bad.push_many([{"id": "bad", "due_at": time.time() - 1_000}])
    visit = app.core.drains.drainer.visit

    def refused(shard: ShardRef, budget: Budget) -> VisitResult:
        if shard.queue_name != queue_name:
            raise BackendDenied("No permissions to access a key")
        return visit(shard, budget)

    visits = Visits(app, monkeypatch, refused)
    worker = declared(app, queue_name, visits.note)
    with caplog.at_level(logging.WARNING), Daemon(app):
        eventually(lambda: len(words) >= 4)
        begun = [visits.begun_until(worker, job_id) for job_id in GOOD]

    assert max(begun) <= BOTH + 1
    assert {BackendDenied} == {type(word) for word in words}
    assert "replaced" not in caplog.text
    assert {"one", "two"} == {queue.removeprefix(f"{queue_name}-") for queue in told(caplog, "queue")}


def test_p6_a_bug_that_ends_a_thread_again_and_again_does_not_keep_it_from_its_other_shards(
    make_app: MakeApp, queue_name: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6: the shard rests for it, so the thread is replaced at once each time."""
    app = make_app(threads_per_node=1, poll_interval=10.0)
    for name in ("one", "two"):
        bad = declared(app, f"{queue_name}-{name}", nothing)
        bad.push_many([{"id": "bad", "due_at": time.time() - 1_000}])
    visit, failures = app.core.drains.drainer.visit, list[str]()

    def broken(shard: ShardRef, budget: Budget) -> VisitResult:
        if shard.queue_name != queue_name:
            failures.append(shard.queue_name)
            raise RuntimeError("a bug")
        return visit(shard, budget)

    visits = Visits(app, monkeypatch, broken)
    worker = declared(app, queue_name, visits.note)
    with Daemon(app):
        eventually(lambda: len(failures) >= 2)
        begun = [visits.begun_until(worker, job_id) for job_id in GOOD]

    assert max(begun) <= BOTH + 1
    assert {0.0} == told(caplog, "replaced_in")


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
    names = [f"{queue_name}-{number}" for number in range(4)]
    performed = {name: list[str]() for name in names}
    workers = {name: declared(app, name, performed[name].extend) for name in names}

    def push(job_id: str, queues: Sequence[str], *, wait: bool = True) -> None:
        for name in queues:
            workers[name].push_many([{"id": job_id}])
        eventually(lambda: not wait or all(job_id in performed[name] for name in queues), timeout=60.0)

    with Daemon(app):
        slow.push_many([{"id": "s"}])
        assert begun.wait(60.0)
        # Dealt like cards, the slow queue's thread has every second one.
        push("a", names[::-1] if build_splitter is None else names[::2])
        if build_splitter:
            push("a", names[1::2], wait=False)
            push("b", names[:1])
        assert count == sum("a" in ids for ids in performed.values())
        may_end.set()
        eventually(lambda: all("a" in ids for ids in performed.values()))

"""How a daemon learns of work: by notifications, by the clock, and at the latest by its poll."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from time import monotonic
from typing import Any

import pytest

from lowkiq_lambda import Batch, Debounce, Lowkiq, Worker
from lowkiq_lambda.engine.budget import Budget, VisitResult
from lowkiq_lambda.engine.side_by_side import ConcurrentVisit
from lowkiq_lambda.jobs.job import shard_for
from lowkiq_lambda.local import listener
from lowkiq_lambda.local.daemon import Daemon
from lowkiq_lambda.local.splitters import DefaultSplitter
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.state import ProbeResult
from tests.kit.apps import MakeApp
from tests.kit.beside import Crowd, declare_threads, wait_for
from tests.kit.servers import FaultProxy, MakeServer, Server
from tests.kit.waiting import eventually
from tests.kit.workers import jobs_of
from tests.local.listening import listening

NEVER = 1_000.0
SOON = 60.0
"""Seconds: much less than a poll interval that is meant to be never, much more than a slow machine takes."""


class Runs:
    """A handler that notes when it got which id, in which thread; and fails ids the first times."""

    def __init__(self, app: Lowkiq, queue_name: str, shards_count: int = 2, failures: int = 0) -> None:
        self.runs: list[tuple[str, float, str]] = []
        self.failures = failures
        notes = self

        class Noting(Worker):
            def retry_in(self, retry_count: int) -> float:
                return 0.2 + retry_count

            def perform(self, batch: Batch) -> None:
                notes.perform(batch)

        Noting.queue_name, Noting.shards_count = queue_name, shards_count
        self.worker = app.worker(Noting)

    def perform(self, batch: Batch) -> None:
        """Note, and fail if it should."""
        self.runs.extend((job_id, monotonic(), threading.current_thread().name) for job_id in batch)
        if len(self.runs) <= self.failures:
            raise RuntimeError("again, please")

    def await_runs(self, count: int) -> None:
        """Wait until so many were noted."""
        eventually(lambda: len(self.runs) >= count, timeout=SOON)


def test_a_push_wakes_an_idle_daemon(make_app: MakeApp, queue_name: str, server: Server) -> None:
    """A daemon that polls every quarter of an hour starts each pushed job at once."""
    app = make_app(poll_interval=NEVER)
    notes = Runs(app, queue_name)
    with Daemon(app):
        eventually(lambda: listening(server, queue_name))
        for number in range(20):
            notes.worker.push_many([{"id": number}])
            notes.await_runs(number + 1)


def test_what_was_pushed_before_the_daemon_came_is_found(make_app: MakeApp, queue_name: str) -> None:
    """It subscribes, then probes, then waits: what nobody heard is seen."""
    app = make_app(poll_interval=NEVER)
    notes = Runs(app, queue_name)
    notes.worker.push_many([{"id": number} for number in range(10)])
    with Daemon(app):
        notes.await_runs(10)


def test_a_delayed_job_starts_when_it_is_due(make_app: MakeApp, queue_name: str, server: Server) -> None:
    """A shard's next due time wakes its thread, without a poll."""
    app = make_app(poll_interval=NEVER)
    notes = Runs(app, queue_name)
    with Daemon(app):
        eventually(lambda: listening(server, queue_name))
        pushed_at = monotonic()
        notes.worker.push_many([{"id": "a", "delay": 0.3}])
        notes.await_runs(1)

    assert 0.3 <= notes.runs[0][1] - pushed_at


def test_an_id_that_debounces_starts_when_it_was_quiet(make_app: MakeApp, queue_name: str, server: Server) -> None:
    """B-7: a push that puts an id off notifies nobody; at the old time the daemon learns the new one."""
    app, got = make_app(poll_interval=NEVER), list[object]()

    @app.worker(queue_name=queue_name, debounce=Debounce(0.3))
    def note(batch: Batch) -> None:
        got.extend(payload for payloads in batch.values() for payload in payloads)

    with Daemon(app):
        eventually(lambda: listening(server, queue_name))
        for payload in range(3):
            note.push_many([{"id": "a", "payload": payload}])
        eventually(lambda: len(got) == 3, timeout=SOON)

    assert [0, 1, 2] == got


def test_a_retry_starts_when_it_is_due(make_app: MakeApp, queue_name: str, server: Server) -> None:
    """The visit that failed tells when the shard has work again: of a retry nobody notifies."""
    app = make_app(poll_interval=NEVER)
    notes = Runs(app, queue_name, failures=1)
    with Daemon(app):
        eventually(lambda: listening(server, queue_name))
        notes.worker.push_many([{"id": "a"}])
        notes.await_runs(2)

    assert 0.2 <= notes.runs[1][1] - notes.runs[0][1]


def test_a_notification_that_nobody_sends_costs_one_poll(
    make_app: MakeApp, make_server: MakeServer, queue_name: str
) -> None:
    """A producer that may not publish is served within a poll interval."""
    server = make_server()
    app = make_app(redis_url=server.url, poll_interval=0.3)
    mute = make_app(redis_url=server.add_user("mute", "~*", "+@all", "resetchannels"))
    notes, mute_notes = Runs(app, queue_name), Runs(mute, queue_name)
    with Daemon(app):
        eventually(lambda: listening(server, queue_name))
        mute_notes.worker.push_many([{"id": number} for number in range(5)])
        notes.await_runs(5)

    assert [] == mute_notes.runs


def test_a_daemon_that_may_not_subscribe_polls(
    make_app: MakeApp, make_server: MakeServer, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the ACL gives no channels work is found all the same, and the log says why it is slow, once."""
    server = make_server()
    app = make_app(redis_url=server.add_user("deaf", "~*", "+@all", "resetchannels"), poll_interval=0.1)
    notes = Runs(app, queue_name)
    with Daemon(app):
        for number in range(3):
            notes.worker.push_many([{"id": number}])
            notes.await_runs(number + 1)

    assert 1 == caplog.text.count("notifications are not received")


def test_what_is_pushed_while_the_subscription_is_lost_is_found_when_it_is_back(
    make_app: MakeApp, queue_name: str, fault_proxy: FaultProxy, server: Server
) -> None:
    """After the connection broke the daemon subscribes anew, and looks at what it may have missed."""
    app = make_app(redis_url=fault_proxy.url, poll_interval=1.0)
    producer = make_app()
    notes, pushing = Runs(app, queue_name), Runs(producer, queue_name)
    with Daemon(app):
        eventually(lambda: listening(server, queue_name))
        fault_proxy.refuse()
        fault_proxy.cut()
        eventually(lambda: not listening(server, queue_name))
        pushing.worker.push_many([{"id": "a"}])
        fault_proxy.accept()
        notes.await_runs(1)
        eventually(lambda: listening(server, queue_name))
        pushing.worker.push_many([{"id": "b"}])
        notes.await_runs(2)


def test_p8_an_idle_daemon_asks_once_for_each_poll(make_app: MakeApp, make_server: MakeServer, queue_name: str) -> None:
    """P8: however many threads there are, a poll is one pipeline of probes, of 24 shards each, and nothing else."""
    server = make_server()
    app = make_app(redis_url=server.url, poll_interval=0.2, threads_per_node=8)
    Runs(app, queue_name, shards_count=50)
    with Daemon(app):
        eventually(lambda: calls(server, "evalsha") >= 10)
        # Its first heartbeat is over; the next one comes in ten seconds.
        eventually(lambda: len(app.operate.processes()) == 1)
        started_at, before = monotonic(), all_calls(server)
        eventually(lambda: calls(server, "time") >= before["time"] + 5)
        new = all_calls(server) - before
        seconds = monotonic() - started_at

    assert new["time"] * 0.15 <= seconds + 0.2
    assert new["evalsha"] <= 3 * (new["time"] + 1)
    assert 0 == new["eval"]


def test_a_push_is_heard_while_many_shards_are_probed(
    make_app: MakeApp, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A poll is made in parts: what is pushed to a shard behind it starts before its end."""
    app, is_heard = make_app(poll_interval=NEVER), threading.Event()
    notes = Runs(app, queue_name, shards_count=10)
    probe, in_first = (
        app.core.drains.drainer.probe,
        next(job_id for job_id in map(str, count()) if shard_for(job_id, 10) == 0),
    )

    def push_behind(shards: Sequence[ShardRef], retry_for: float = 0.0) -> list[ProbeResult]:
        results = probe(shards, retry_for)
        if [0] == [shard.index for shard in shards]:
            notes.worker.push_many([{"id": in_first}])
        elif [9] == [shard.index for shard in shards]:
            notes.await_runs(1)
            is_heard.set()
        return results

    monkeypatch.setattr(listener, "PROBED_AT_ONCE", 1)
    monkeypatch.setattr(app.core.drains.drainer, "probe", push_behind)
    with Daemon(app):
        assert is_heard.wait(2 * SOON)


def all_calls(server: Server) -> Counter[str]:
    """How often clients and scripts called each command, as of one moment."""
    stats: dict[str, Any] = server.admin.info("commandstats")
    return Counter({name.removeprefix("cmdstat_"): int(each["calls"]) for name, each in stats.items()})


def calls(server: Server, command: str) -> int:
    """How often clients and scripts called it."""
    return all_calls(server)[command]


Visits = list[tuple[ShardRef, str, bool]]


@pytest.fixture
def noting_visits(monkeypatch: pytest.MonkeyPatch) -> Callable[[Lowkiq], Visits]:
    """Runs the visits of an app: the shard, the thread, and whether it had the lease."""

    def note(app: Lowkiq) -> Visits:
        visits: Visits = []
        visit = app.core.drains.drainer.visit

        def noted(shard: ShardRef, budget: Budget) -> VisitResult:
            result = visit(shard, budget)
            visits.append((shard, threading.current_thread().name, result.token is not None))
            return result

        monkeypatch.setattr(app.core.drains.drainer, "visit", noted)
        return visits

    return note


@pytest.mark.parametrize("build_splitter", [None, DefaultSplitter])
def test_a_push_wakes_one_thread(
    make_app: MakeApp,
    queue_name: str,
    server: Server,
    noting_visits: Callable[[Lowkiq], Visits],
    build_splitter: type[DefaultSplitter] | None,
) -> None:
    """A notification costs one visit: two round trips of one thread; the one that has the shard, with a splitter."""
    app = make_app(poll_interval=NEVER, threads_per_node=4, build_splitter=build_splitter)
    notes = Runs(app, queue_name, shards_count=4)
    visits = noting_visits(app)
    with Daemon(app):
        eventually(lambda: listening(server, queue_name))
        for number in range(10):
            notes.worker.push_many([{"id": number}])
            eventually(lambda: number < sum(worked for _, _, worked in visits))  # noqa: B023 - called at once

    # The look at the start may see the first pushes, which are heard as well.
    assert len(visits) <= 12
    if build_splitter:
        assert len({shard for shard, _, _ in visits}) == len({(shard, thread) for shard, thread, _ in visits})


def test_a_push_wakes_a_visit_that_has_a_slot_free(
    make_app: MakeApp, queue_name: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits neither for the visit's next look nor for the end of what runs."""
    monkeypatch.setattr("lowkiq_lambda.engine.flight.FIRST_LOOK", NEVER)
    monkeypatch.setattr("lowkiq_lambda.engine.flight.LONGEST_LOOK", NEVER)
    app = make_app(poll_interval=NEVER, threads_per_node=1)
    may_end = threading.Event()
    crowd = Crowd(lambda _: wait_for(may_end))
    worker = declare_threads(app, queue_name, crowd, concurrency=2)
    with Daemon(app):
        eventually(lambda: listening(server, queue_name))
        try:
            worker.push_many(jobs_of("a"))
            eventually(lambda: ["a"] == crowd.begun, timeout=SOON)
            eventually(lambda: has_looked_in_vain(app), timeout=SOON)
            worker.push_many(jobs_of("b"))
            eventually(lambda: ["a", "b"] == crowd.begun, timeout=SOON)
            assert [] == crowd.ended
        finally:
            may_end.set()


def has_looked_in_vain(app: Lowkiq) -> bool:
    """Whether the visit with slots has asked for more, and there was none."""
    return any(isinstance(visit, ConcurrentVisit) and visit._empty_looks for visit in app.core.drains.drainer._running)

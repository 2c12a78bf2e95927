"""LOWKIQ_IDLE=linger: an invocation that listens for pushes until its time is over."""

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any

import pytest

from lowkiq_lambda import Batch, Config, Lowkiq
from lowkiq_lambda.aws.drain_function import DrainFailed
from lowkiq_lambda.store.shard.notifications import Heard, Notifications
from tests.aws.functions import DrainFunction, overdue
from tests.kit.handlers import Notes
from tests.kit.looks import left_behind
from tests.kit.servers import FaultProxy, MakeServer, Server
from tests.kit.waiting import eventually
from tests.kit.workers import declare, jobs_of, shard_of

POLL = 30.0
"""Seconds: longer than any of these tests, so that nothing is found by polling."""


LONG_ENOUGH = 4.0
"""Seconds for which an invocation lingers: a machine that stands still for some of them is no failure."""


@pytest.fixture
def app(server_url: str) -> Lowkiq:
    """An app that hardly polls."""
    return Lowkiq(Config(redis_url=server_url, poll_interval=POLL))


@contextmanager
def lingering(
    drain: DrainFunction, app: Lowkiq, *, seconds: float = LONG_ENOUGH, event: object = None
) -> Iterator[Future[dict[str, Any]]]:
    """An invocation with so much time, that is subscribed by now."""
    before = listeners(app)
    with ThreadPoolExecutor(1) as pool:
        invocation = pool.submit(drain, event, 3.0 + seconds)
        eventually(lambda: listeners(app) > before or invocation.done())
        yield invocation


def listeners(app: Lowkiq) -> int:
    """How many are subscribed."""
    return int(app.core.backend.client.info("clients")["pubsub_clients"])


def test_what_is_pushed_meanwhile_is_drained_at_once(drain: DrainFunction, app: Lowkiq, queue_name: str) -> None:
    """For users who want seconds instead of a minute."""
    performed = Event()
    worker = declare(app, queue_name, Notes(lambda _batch: performed.set()), shards_count=3)
    drain.install(app, idle="linger")

    with lingering(drain, app) as invocation:
        worker.push_many(jobs_of("abc"))

        assert performed.wait(30)
        assert {"done": 3} == invocation.result()["counts"]


def test_what_becomes_due_meanwhile_is_drained_in_time(drain: DrainFunction, app: Lowkiq, queue_name: str) -> None:
    """A delayed job, and a retry, that come due within the invocation's time need no notification."""
    failures, performed = iter([True, False]), list[float]()

    def fail_once(batch: Batch) -> None:
        performed.append(time.monotonic())
        if next(failures):
            batch.fail("a", "not yet")

    worker = declare(app, queue_name, fail_once, retry_in=lambda _self, _count: 0.3)
    worker.push_many([{"id": "a", "delay": 0.3}])
    drain.install(app, idle="linger")

    result = drain(seconds=3 + LONG_ENOUGH)

    assert {"done": 1, "failed": 1, "retried": 1} == result["counts"]
    assert 0.3 <= performed[1] - performed[0]


def test_it_ends_when_its_time_is_over_and_leaves_no_lease(drain: DrainFunction, app: Lowkiq, queue_name: str) -> None:
    """P5: no sooner than its budget says, and well before Lambda would end it; its subscription is closed."""
    worker = declare(app, queue_name, Notes())
    worker.push_many(overdue("a"))
    drain.install(app, idle="linger", reserve=22)
    before, began = listeners(app), time.monotonic()

    result = drain(seconds=23)

    assert 0.99 <= time.monotonic() - began < 23
    assert ("empty", {"done": 1}) == (result["reason"], result["counts"])
    eventually(lambda: listeners(app) <= before)
    assert 0 == app.core.backend.client.exists(app.core.queues.agreed(worker).shards[0].key("lease"))


def test_only_what_was_selected_is_listened_for(drain: DrainFunction, app: Lowkiq, queue_name: str) -> None:
    """A push to another shard of the queue comes on the same channel, and is left to others."""
    worker = declare(app, queue_name, Notes(), shards_count=2)
    mine = next(job_id for job_id in "abcdefgh" if shard_of(app, worker, job_id).index == 1)
    others = next(job_id for job_id in "abcdefgh" if shard_of(app, worker, job_id).index == 0)
    drain.install(app, idle="linger")

    with lingering(drain, app, event={"shard": 1}) as invocation:
        worker.push_many(jobs_of([others]))
        worker.push_many(jobs_of([mine]))

        assert {"done": 1} == invocation.result()["counts"]
    assert {"due": 1, "jobs": 1} == left_behind(app, worker)


def test_a_subscription_that_is_lost_is_made_again(drain: DrainFunction, server: Server, queue_name: str) -> None:
    """A connection that breaks costs at most a poll."""
    app, performed = Lowkiq(Config(redis_url=server.url, poll_interval=0.2)), Event()
    worker = declare(app, queue_name, Notes(lambda _batch: performed.set()))
    drain.install(app, idle="linger")

    with lingering(drain, app) as invocation:
        server.admin.client_kill_filter(_type="pubsub")
        worker.push_many(jobs_of("a"))

        assert performed.wait(30)
        assert {"done": 1} == invocation.result()["counts"]
    assert [] == [line for line in drain.logs if line["level"] == "ERROR"]


def test_work_is_found_by_polling_where_subscriptions_are_forbidden(
    drain: DrainFunction, make_server: MakeServer, queue_name: str
) -> None:
    """A user that may not subscribe lingers too, and the log says what is missing."""
    server = make_server()
    app = Lowkiq(Config(redis_url=server.add_user("deaf", "~*", "+@all", "-subscribe"), poll_interval=0.2))
    plain, performed = Lowkiq(Config(redis_url=server.url)), Event()
    declare(app, queue_name, Notes(lambda _batch: performed.set()))
    worker = declare(plain, queue_name, Notes())
    drain.install(app, idle="linger")

    with ThreadPoolExecutor(1) as pool:
        invocation = pool.submit(drain, None, 3 + LONG_ENOUGH)
        eventually(lambda: plain.core.backend.client.exists(f"lowkiq:{{{queue_name}}}:declaration"))
        worker.push_many(jobs_of("a"))

        assert performed.wait(30)
        assert {"done": 1} == invocation.result()["counts"]
    (warning,) = (line["message"] for line in drain.logs if line["level"] == "WARNING")
    assert warning.startswith("notifications are not received, work is found by polling: ")


def test_a_shard_that_breaks_meanwhile_is_no_busy_loop(
    drain: DrainFunction, make_server: MakeServer, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was to become due, and refuses this version now: it is visited again now and then, and named at the end."""
    server = make_server()
    app = Lowkiq(Config(redis_url=server.url, poll_interval=0.2))
    worker = declare(app, queue_name, Notes())
    worker.push_many([{"id": "a", "delay": 2}])
    drain.install(app, idle="linger")
    probes, probe_each = list[object](), app.core.drains.drainer.probe_each

    def count_and_probe_each(*args: Any) -> Any:
        probes.append(args)
        return probe_each(*args)

    monkeypatch.setattr(app.core.drains.drainer, "probe_each", count_and_probe_each)

    with lingering(drain, app) as invocation:
        server.admin.hset(app.core.queues.agreed(worker).shards[0].key("meta"), "least_version", 99)

        with pytest.raises(DrainFailed, match=f"1 of 1 shards could not be drained: shard 0 of '{queue_name}'"):
            invocation.result()
    assert len(probes) < 60


def test_an_outage_amid_it_is_survived(drain: DrainFunction, make_server: MakeServer, queue_name: str) -> None:
    """The server restarts: what is pushed after that is still drained by the same invocation."""
    server = make_server()
    app = Lowkiq(Config(redis_url=server.url, poll_interval=0.2))
    worker = declare(app, queue_name, Notes())
    drain.install(app, idle="linger")

    with lingering(drain, app) as invocation:
        server.restart()
        worker.push_many(jobs_of("a"))

        assert {"done": 1} == invocation.result()["counts"]


def test_a_probe_that_takes_long_leads_to_no_busy_wait(
    drain: DrainFunction, fault_proxy: FaultProxy, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next probe comes later then, and until it comes the invocation waits for messages."""
    app = Lowkiq(Config(redis_url=fault_proxy.url, poll_interval=0.2))
    declare(app, queue_name, Notes())
    receive, waits = Notifications.receive, list[float]()

    def noted(self: Notifications, seconds: float) -> Heard:
        waits.append(seconds)
        return receive(self, seconds)

    monkeypatch.setattr(Notifications, "receive", noted)
    drain.install(app, idle="linger")
    fault_proxy.delay(0.1)
    drain(seconds=5)

    assert 0 < len(waits) < 100

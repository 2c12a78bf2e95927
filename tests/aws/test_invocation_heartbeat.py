"""Invocations that tell that they live, and end their tour when they are told to."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from lowkiq_lambda import Batch, Config, Lowkiq
from lowkiq_lambda.store.shard.keys import ProcessesRef
from tests.aws.functions import DrainFunction, overdue
from tests.kit.apps import closing_app
from tests.kit.servers import Server
from tests.kit.servers.monitor import Monitor
from tests.kit.waiting import eventually

SOON = 0.05
"""Seconds between two heartbeats."""


@pytest.fixture
def app(own_server: Server) -> Iterator[Lowkiq]:
    """An app on a server whose processes are its own."""
    with closing_app(Lowkiq(Config(redis_url=own_server.url, heartbeat_interval=SOON))) as made:
        yield made


@pytest.mark.parametrize("order", ["quiet", "stop"])
def test_sk2_an_invocation_under_load_ends_its_tour(app: Lowkiq, drain: DrainFunction, order: str) -> None:
    """SK-2: told either, what runs in all its threads comes to its end, nothing else begins, and no drain follows."""
    began: list[str] = []
    goes_on = Event()

    def perform(batch: Batch) -> None:
        began.extend(batch)
        goes_on.wait(60)

    worker = app.worker(queue_name="queue", shards_count=3, batch_size=1)(perform)
    worker.push_many(overdue([str(number) for number in range(60)]))
    drain.install(app, idle="start")
    with ThreadPoolExecutor(1) as executor:
        answer = executor.submit(drain)
        (process,) = eventually(lambda: [one for one in app.operate.processes() if len(one.doing) == 3])
        worker.push_many(overdue(["more"]))
        processes = app.operate.processes()
        is_known = processes.stop(process) if order == "stop" else processes.quiet(process)
        eventually(lambda: app.operate.processes()[0].quiet)
        goes_on.set()
        told = answer.result(60)

    assert is_known
    assert ("lambda", 5) == (process.kind, process.threads)
    assert ("stopping", {"done": 3}, False) == (told["reason"], told["counts"], told["continued"])
    assert 3 == len(began)
    assert 58 == app.drain()["done"]
    assert [] == [*app.operate.processes()]


def test_the_next_invocation_of_the_environment_drains(app: Lowkiq, drain: DrainFunction) -> None:
    """SK-2: an order is for one invocation, and for none that comes after it."""

    def perform(_batch: Batch) -> None:
        (process,) = app.operate.processes()
        app.operate.processes().stop(process)
        eventually(lambda: app.operate.processes()[0].quiet)

    worker = app.worker(queue_name="queue", shards_count=1, batch_size=1)(perform)
    worker.push_many(overdue("ab"))
    drain.install(app)

    reasons = [drain()["counts"] for _ in range(3)]

    assert [{"done": 1}, {"done": 1}, {}] == reasons


def test_sk1_the_heartbeats_of_a_short_invocation_travel_with_its_calls(
    own_server: Server, drain: DrainFunction
) -> None:
    """SK-1: with work it tells that it lives and that it ends, by no call of its own; without work it tells nothing."""
    asked = []
    with closing_app(Lowkiq(Config(redis_url=own_server.url))) as app:
        worker = app.worker(queue_name="queue", shards_count=2)(print)
        drain.install(app)
        for ids in ("ab", "", "a"):
            with Monitor(own_server) as monitor:
                worker.push_many(overdue(ids))
                drain()
                asked.append([(one.name, one.first.decode(), one.by_script) for one in monitor.heard()])

    alive, orders = ProcessesRef().keys
    heartbeats = [[one for one in each if one[1] in (alive, orders)] for each in asked]
    both = [("hset", alive, False), ("hdel", alive, False), ("hdel", orders, False)]
    assert [both, [], both] == heartbeats


def test_a_heartbeat_after_the_last_look_is_taken_back(
    app: Lowkiq, drain: DrainFunction, own_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SK-1: the thread may send one more when the end is told already; the next call of the environment mends it."""
    worker = app.worker(queue_name="queue", shards_count=1)(print)
    worker.push_many(overdue("a"))
    drain.install(app, idle="end")
    probe_each = app.core.drains.drainer.probe_each
    alive = ProcessesRef().keys[0]
    looks: list[int] = []

    def looked(*args: Any, **options: Any) -> Any:
        found = probe_each(*args, **options)
        looks.append(own_server.admin.hlen(alive))
        if len(looks) == 2:
            eventually(lambda: own_server.admin.hlen(alive), what="a heartbeat of the thread")
        return found

    monkeypatch.setattr(app.core.drains.drainer, "probe_each", looked)
    drain()
    assert [0, 0] == looks
    drain()

    assert [] == [*app.operate.processes()]

"""P4: every acquisition has a larger token, and a former holder of the shard writes nothing any more (LB-5)."""

import logging
import threading
from collections.abc import Callable

import pytest

from lowkiq_lambda import Batch, BatchJob, Config, LeaseLost, Lowkiq
from lowkiq_lambda.base.errors import BackendUnavailable
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.deaths import outlive, stop_renewing
from tests.kit.iterating import Items, declare_items
from tests.kit.looks import left_behind, look
from tests.kit.servers import FaultProxy, MakeServer
from tests.kit.workers import declare, jobs_of


def test_p4_fencing(make_app: MakeApp, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """P4: a holder that overslept has a smaller token, is told to stop, and its outcomes are refused."""
    late, other = make_app(), make_app()
    stop_renewing(late, monkeypatch)
    tokens: list[int] = []
    stopping: list[bool] = []

    def oversleep(batch: Batch) -> None:
        tokens.append(batch.token)
        outlive(late, clock, worker)
        other.drain()
        stopping.append(batch.stopping)
        batch.fail("a", "too late to count")

    worker = declare(late, queue_name, oversleep)
    declare(other, queue_name, lambda batch: tokens.append(batch.token))
    worker.push_many(jobs_of("a"))
    result = late.core.drains.drainer.visit(late.core.queues.agreed(worker).shards[0], Budget(clock))

    assert ("lease lost", {}, [True]) == (result.reason, result.counts, stopping)
    assert tokens[0] < tokens[1]
    assert {} == left_behind(late, worker)


def test_the_outcomes_that_a_lost_lease_refuses_are_logged(
    make_app: MakeApp,
    clock: ManualClock,
    queue_name: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """E-20: a warning names the ids that were performed here and will be again, ten at most; none that did not run."""
    late, other = make_app(), make_app()
    stop_renewing(late, monkeypatch)

    def oversleep(batch: Batch) -> None:
        if "11" in batch:
            outlive(late, clock, worker)
            other.drain()

    worker = declare(late, queue_name, oversleep, batch_size=12)
    declare(other, queue_name, lambda _batch: None)
    worker.push_many(jobs_of([f"{number:02}" for number in range(13)]))
    late.core.drains.drainer.visit(late.core.queues.agreed(worker).shards[0], Budget(clock))

    (line,) = (vars(record) for record in caplog.records if record.getMessage().startswith("a lease was lost"))
    assert "a lease was lost: its outcomes are refused, and these jobs will be performed again" == line["msg"]
    assert (logging.WARNING, queue_name, 0, 12) == (line["levelno"], line["queue"], line["shard"], line["count"])
    assert [f"{number:02}" for number in range(10)] == line["ids"]


def test_a_job_that_loses_the_lease_at_a_save_is_logged(
    make_app: MakeApp,
    clock: ManualClock,
    queue_name: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """E-20: it goes on with the new holder from what was saved before, and the warning names it."""
    late, other = make_app(settle_interval=0.0), make_app()
    stop_renewing(late, monkeypatch)

    def oversleep(job: BatchJob, item: int) -> None:
        if item == 1:
            outlive(late, clock, workers[job.id])
            other.drain()

    workers = {}
    for concurrency in (1, 2):
        job_id = f"at {concurrency}"
        name = f"{queue_name} {job_id}"
        workers[job_id] = worker = declare_items(late, name, Items(3, oversleep), concurrency=concurrency)
        declare_items(other, name, Items(3))
        worker.push_many([{"id": job_id}])
        result = late.core.drains.drainer.visit(late.core.queues.agreed(worker).shards[0], Budget(clock))
        assert ("lease lost", {}) == (result.reason, left_behind(other, worker))

    lines = [vars(one) for one in caplog.records if one.getMessage().startswith("a lease was lost")]
    assert [["at 1"], ["at 2"]] == [line["ids"] for line in lines]


def test_the_outcomes_that_redis_did_not_acknowledge_are_logged(
    make_app: MakeApp, fault_proxy: FaultProxy, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Where Redis is away for longer than the lease, a warning names the ids that may run again."""
    app = make_app(redis_url=fault_proxy.url)

    def go_away(_batch: Batch) -> None:
        fault_proxy.refuse()
        fault_proxy.cut()

    worker = declare(app, queue_name, go_away)
    worker.push_many(jobs_of("a"))
    with pytest.raises(BackendUnavailable):
        app.drain()

    (line,) = (vars(record) for record in caplog.records if "may be performed again" in record.getMessage())
    assert (queue_name, 0, 1, ["a"]) == (line["queue"], line["shard"], line["count"], line["ids"])


def test_p4_tokens_grow_though_the_counter_is_lost(
    make_server: MakeServer, clock: ManualClock, queue_name: str
) -> None:
    """P4, E-11: after FLUSHALL the clock carries the tokens on; and a clock that went back, the counter."""
    server = make_server()
    app = Lowkiq(Config(redis_url=server.url), clock=clock)
    tokens: list[int] = []
    worker = declare(app, queue_name, lambda batch: tokens.append(batch.token))

    def once() -> None:
        worker.push_many(jobs_of("a"))
        app.drain()

    once()
    clock.set_wall(clock.time() - 0.5)
    once()
    server.admin.flushall()
    clock.set_wall(clock.time() + 1)
    once()

    assert 3 == len(tokens)
    assert tokens == sorted(set(tokens))


def test_p4_every_call_of_a_former_holder_is_refused(app: Lowkiq, queue_name: str) -> None:
    """P4: settling, starting, renewing and abandoning are refused once somebody else has come."""
    refused: list[str] = []

    def refuse(name: str, call: Callable[[], object]) -> None:
        with pytest.raises(LeaseLost, match="has another holder by now"):
            call()
        refused.append(name)

    def try_all(_batch: Batch) -> None:
        (visit,) = app.core.drains.drainer._running
        holding = visit._shard.session
        app.core.backend.client.hset(shard.key("meta"), "nonce", "another")
        refuse("start", lambda: holding.start("a", 0.0))
        refuse("renew", lambda: holding.renew(0.0))
        refuse("abandon", lambda: holding.abandon(0.1, 0.0))

    worker = declare(app, queue_name, try_all)
    (shard,) = app.core.queues.agreed(worker).shards
    worker.push_many(jobs_of("a"))

    assert {} == app.drain()
    assert ["start", "renew", "abandon"] == refused


def test_lb5_a_late_settling_touches_nothing_of_the_next_holder(
    make_app: MakeApp, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LB-5, E-1: a holder that overslept its lease settles nothing that the next one has in flight."""
    late, next_one = make_app(), make_app()
    stop_renewing(late, monkeypatch)
    running, settled, in_time = threading.Event(), threading.Event(), list[bool]()

    def oversleep(_batch: Batch) -> None:
        outlive(late, clock, worker)
        thread.start()
        in_time.append(running.wait(10))

    def run(batch: Batch) -> None:
        if not running.is_set():
            running.set()
            in_time.append(settled.wait(10))
            batch.fail("a", "must count")

    thread = threading.Thread(target=next_one.drain)
    worker = declare(late, queue_name, oversleep, batch_size=2)
    other = declare(next_one, queue_name, run, batch_size=2)
    worker.push_many(jobs_of("ab"))
    counts = late.drain()
    in_flight = [job.id for job in late.operate(worker).in_flight.list()]
    settled.set()
    thread.join()

    assert [True, True] == in_time
    assert ({}, ["a"]) == (counts, in_flight)
    waiting = [look(next_one, other, job_id) for job_id in "ab"]
    assert ["must count", None] == [one and one.error for one in waiting]

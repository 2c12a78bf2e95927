"""Wanted holders: the number that threads, tasks and pods are scaled by."""

import math
import re
from typing import Any

import pytest

from lowkiq_lambda import Batch, Lowkiq, Rate
from lowkiq_lambda.dashboard import Auth, Token
from lowkiq_lambda.dashboard.api.monitoring import CACHE_SECONDS
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.deaths import Mortal
from tests.kit.handlers import Notes
from tests.kit.workers import declare, jobs_of

READER = "r" * 20
OF_EACH_SHARD = [f"id-{n}" for n in range(60)]
"""Enough ids for each of five shards to have some."""


@pytest.fixture
def namespace(queue_name: str) -> str:
    """One of the test alone."""
    return queue_name


def holders(app: Lowkiq, worker: Any) -> tuple[int, int]:
    """The holders that the worker's queue has, and those that it could use."""
    metrics = app.operate.metrics()[worker.queue_name]
    return metrics.holders, metrics.wanted_holders


def test_an_idle_queue_wants_no_holder_and_a_full_one_as_many_as_it_has_shards(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """However much waits, and for however long; ids that are due later count when they are due."""
    worker = declare(app, queue_name, Notes(), shards_count=5)
    assert (0, 0) == holders(app, worker)
    worker.push_many([{"id": job_id, "delay": 60} for job_id in OF_EACH_SHARD])
    assert (0, 0) == holders(app, worker)

    clock.advance(3_600.0)

    scale = app.operate.scale()
    assert (5, 5) == (scale.wanted, scale.most)
    assert 3_500.0 < scale.oldest_due_age < 3_600.0
    assert (5, 5) == (scale.queues[queue_name].wanted, scale.queues[queue_name].most)


def test_a_shard_with_a_holder_is_wanted_until_it_is_let_go(app: Lowkiq, queue_name: str) -> None:
    """Also while the holder has claimed all that was due."""
    seen: list[tuple[int, int]] = []

    def perform(_batch: Batch) -> None:
        seen.append(holders(app, worker))

    worker = declare(app, queue_name, perform, shards_count=5)
    worker.push("a")
    app.drain()
    assert [(1, 1)] == seen
    assert (0, 0) == holders(app, worker)


def test_what_a_dead_holder_left_is_wanted_again(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """First the shard counts as held, and behind the end of the lease as one with work."""
    mortal = Mortal(app)
    worker = declare(app, queue_name, mortal.die, shards_count=5)
    worker.push("a")
    mortal.drain()
    held = holders(app, worker)
    clock.advance(60.0)

    assert ((1, 1), (0, 1)) == (held, holders(app, worker))


def test_what_a_pause_keeps_is_not_wanted(app: Lowkiq, queue_name: str) -> None:
    """A pod more would have nothing to do there, neither for a queue nor for a tenant."""
    worker = declare(app, queue_name, Notes(), shards_count=5)
    worker.push_many([{"id": job_id} for job_id in OF_EACH_SHARD])
    app.operate(worker).pause()
    spread = declare(app, f"{queue_name}-spread", Notes(), shards_count=2, tenants="spread")
    spread.push_many(jobs_of(["ann:1", "ann:2", "ann:3", "ann:4", "bob:1"]))
    app.operate(spread).pause(tenant="ann")

    assert ((0, 0), (0, 1)) == (holders(app, worker), holders(app, spread))


@pytest.mark.parametrize(
    ("limits", "expected"), [({"max_running": 2}, 2), ({"rate": Rate(1, per=3_600)}, 0), ({"max_running": 9}, 5)]
)
def test_limits_bound_what_is_wanted(
    app: Lowkiq, clock: ManualClock, queue_name: str, limits: dict[str, Any], expected: int
) -> None:
    """As many as may run, and none while the rate is used up."""
    worker = declare(app, queue_name, Notes(), **{"shards_count": 5, "batch_size": 1, **limits})
    if "rate" in limits:
        worker.push("before")
        app.drain()
    worker.push_many([{"id": job_id} for job_id in OF_EACH_SHARD])
    clock.advance(1.0)

    assert (0, expected) == holders(app, worker)


def test_a_reader_s_token_asks_for_the_scale_and_redis_once_a_second(
    app: Lowkiq, clock: ManualClock, queue_name: str, make_browser: MakeBrowser
) -> None:
    """The three numbers that scalers read, and each queue's; strangers are refused."""
    worker = declare(app, queue_name, Notes(), shards_count=5)
    worker.push("a")
    browser = make_browser(None, auth=Auth(tokens=[Token("keda", READER)]))
    assert 401 == browser.get("/api/v1/scale").status
    browser.headers["authorization"] = f"Bearer {READER}"
    first = browser.get("/api/v1/scale").json
    worker.push_many([{"id": job_id} for job_id in OF_EACH_SHARD])
    cached = browser.get("/api/v1/scale").json
    clock.advance(CACHE_SECONDS)
    then = browser.get("/api/v1/scale").json

    assert (1, 5, {queue_name}) == (first["wanted"], first["most"], {*first["queues"]})
    assert (first, 5) == (cached, then["wanted"])
    assert math.isclose(1.0, then["oldest_due_age"], abs_tol=0.5)


def test_prometheus_is_told_of_each_queue_and_of_the_sum(
    app: Lowkiq, queue_name: str, make_browser: MakeBrowser
) -> None:
    """The sum has no label, as a scaler takes one number."""
    for name in (queue_name, f"{queue_name}-2"):
        declare(app, name, Notes(), shards_count=5).push_many([{"id": job_id} for job_id in OF_EACH_SHARD])

    text = make_browser().get("/metrics").text

    assert ["5", "5"] == re.findall(r"^lowkiq_queue_wanted_holders\{.*\} (\d+)$", text, re.MULTILINE)
    assert ["10"] == re.findall(r"^lowkiq_wanted_holders (\d+)$", text, re.MULTILINE)

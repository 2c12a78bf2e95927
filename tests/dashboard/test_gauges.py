"""Metrics of what is beside the queues: limits, schedule entries and tasks."""

from typing import Any

import pytest

from lowkiq_lambda import Lowkiq, Rate, Rejected
from lowkiq_lambda.base.errors import BackendDenied
from lowkiq_lambda.operate.gauges import MOST_TASKS, read_gauges
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import FailingHandler, Notes, raising
from tests.kit.workers import declare


@pytest.fixture
def namespace(queue_name: str) -> str:
    """One of the test alone."""
    return queue_name


def test_limits_are_told_with_their_use(app: Lowkiq, queue_name: str) -> None:
    """Those of code and those that were set at run time; a queue without any has no numbers."""
    declare(app, queue_name, FailingHandler(), max_running=3, rate=Rate(120, 60))
    at_run_time = declare(app, f"{queue_name}-set", FailingHandler())
    declare(app, f"{queue_name}-none", FailingHandler())
    app.operate(at_run_time).limits.set(max_running=2)

    limits = read_gauges(app.operate, [at_run_time.queue_name]).limits

    assert {queue_name: (3.0, 0, 0, 2.0, 120), at_run_time.queue_name: (2.0, 0, 0, None, None)} == limits


def test_entries_are_told_with_the_time_that_nobody_decided(app: Lowkiq, worker: Any, clock: ManualClock) -> None:
    """Of each queue by state; late is the one that is late most, and one that is off is not late."""
    app.every(60, worker, id="a", name="often")
    app.every(3_600, worker, id="b", name="seldom")
    app.schedules.tick()
    clock.advance(61.0)
    app.schedules.tick()
    at_work = read_gauges(app.operate, []).entries[worker.queue_name]
    clock.advance(600.0)
    late = read_gauges(app.operate, []).entries[worker.queue_name]
    app.schedules.disable(worker, "often")
    off = read_gauges(app.operate, []).entries[worker.queue_name]

    assert ({"on": 2, "off": 0, "broken": 0}, 0.0) == at_work
    assert 500.0 < late.late < 620.0
    assert ({"on": 1, "off": 1, "broken": 0}, 0.0) == off


def test_items_of_open_tasks_are_told_by_status(app: Lowkiq, worker: Any) -> None:
    """Of all of them together, while they are few enough to count; a task that is complete is not open."""
    failing = declare(app, f"{worker.queue_name}-failing", Notes(raising(Rejected("no"))))
    # The second one may succeed yet.
    for over, target in ((app.task("over"), worker), (app.task("failed", on_success=(worker, None)), failing)):
        over.push_many(target, [{"id": "x"}])
        over.close()
        app.drain()
    for name in ("one", "two"):
        app.task(name).push_many(worker, [{"id": f"{name}-{n}"} for n in range(3)])
    app.drain()
    app.task("three").push_many(worker, [{"id": "later", "delay": 60.0}])
    few = read_gauges(app.operate, []).tasks
    for n in range(MOST_TASKS):
        app.task(f"more-{n}")
    many = read_gauges(app.operate, []).tasks

    assert few is not None
    assert (3, 6, 1) == (few.open, few.items["done"], few.items["enqueued"])
    assert (MOST_TASKS + 3, {}) == many


@pytest.mark.usefixtures("worker")
def test_what_the_server_refuses_is_left_out(app: Lowkiq, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user may not run scripts on these keys."""
    monkeypatch.setattr(app.core.backend, "call_each", lambda calls: [BackendDenied("no")] * len(calls))

    assert ([], [], {}, {}, None, {}) == tuple(read_gauges(app.operate, []))

"""P9: how many ids are due now, and how many of them a pause keeps, apart."""

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Notes
from tests.kit.workers import declare, jobs_of


def due(app: Lowkiq, queue_name: str) -> tuple[int, int]:
    """Those that a drain may take, and those of a pause; each way to ask tells the same."""
    metrics = app.operate.metrics()[queue_name]
    with app.operate.overview() as overview:
        (glance,) = overview.queues
    shards = [(sum(shard.due for shard in metrics.shards), sum(shard.paused_due for shard in metrics.shards))]
    assert [(metrics.due, metrics.paused_due)] == shards == [(glance.now.due, glance.now.paused_due)]
    return metrics.due, metrics.paused_due


def test_p9_ids_are_due_from_their_time_on(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Not before; and in a paused queue for the pause, until it is over."""
    worker = declare(app, queue_name, Notes(), shards_count=3)
    worker.push_many([{"id": n} for n in range(20)])
    worker.push_many([{"id": n, "delay": 60} for n in range(20, 25)])
    now = due(app, queue_name)
    clock.advance(60.0)
    later = due(app, queue_name)
    app.operate(worker).pause(600.0)
    paused = due(app, queue_name)
    clock.advance(601.0)
    over = due(app, queue_name)
    app.drain()

    assert [(20, 0), (25, 0), (0, 25), (25, 0), (0, 0)] == [now, later, paused, over, due(app, queue_name)]


@pytest.mark.parametrize("tenants", ["spread", "home"])
def test_p9_ids_of_a_paused_tenant_count_for_the_pause(
    app: Lowkiq, clock: ManualClock, queue_name: str, tenants: str
) -> None:
    """Those whose time has come; those of other tenants are due, also while a rate lets none of them begin."""
    worker = declare(app, queue_name, Notes(), tenants=tenants, shards_count=3)
    app.operate(worker).pause(tenant="acme")
    worker.push_many([{"id": f"acme:{n}"} for n in range(9)])
    worker.push_many([{"id": f"acme:{n}", "delay": 60} for n in range(9, 12)])
    worker.push_many([{"id": f"globex:{n}"} for n in range(4)])
    beside = due(app, queue_name)
    clock.advance(60.0)
    later = due(app, queue_name)
    app.drain()
    drained = due(app, queue_name)
    app.operate(worker).resume(tenant="acme")

    assert [(4, 9), (4, 12), (0, 12), (12, 0)] == [beside, later, drained, due(app, queue_name)]


def test_p9_ids_that_nobody_may_run_are_not_due(app: Lowkiq, queue_name: str) -> None:
    """A queue of the future has none, however many wait."""
    worker = declare(app, queue_name, Notes())
    worker.push_many([{**job, "delay": 3_600} for job in jobs_of([str(n) for n in range(5)])])

    assert (0, 0) == due(app, queue_name)
    assert 5 == app.operate.metrics()[queue_name].length

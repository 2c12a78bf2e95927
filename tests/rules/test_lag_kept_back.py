"""P9: three lags. What a limit or a pause keeps back is not late, and rings no alarm; what nobody drains does."""

import pytest

from lowkiq_lambda import Lowkiq, Rate
from lowkiq_lambda.store.shard.keys import queue_key
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.queues import Metrics
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.workers import declare, jobs_of


def lags(app: Lowkiq, queue_name: str) -> tuple[float, float, float]:
    """By nobody, by a limit, by a pause; each way to ask tells the same."""
    metrics = app.operate.metrics()[queue_name]
    with app.operate.overview() as overview:
        (glance,) = overview.queues

    def of(numbers: Metrics) -> tuple[float, float, float]:
        return tuple(round(lag, 3) for lag in (numbers.oldest_due_age, numbers.limited_lag, numbers.paused_lag))  # type: ignore[return-value]  # there are three

    assert of(metrics) == of(glance.now)
    assert metrics.lag == glance.now.lag == app.operate.stats()["by_worker"][queue_name]["lag"]
    return of(metrics)


@pytest.mark.parametrize("tenants", ["spread", "home"])
def test_a_paused_tenant_is_not_late(app: Lowkiq, clock: ManualClock, queue_name: str, tenants: str) -> None:
    """Its ids count for the pause, those of others for themselves, until it is resumed."""
    worker = declare(app, queue_name, Notes(), tenants=tenants, shards_count=3)
    app.operate(worker).pause(tenant="acme")
    worker.push_many([{"id": f"acme:{n}"} for n in range(9)])
    clock.advance(600.0)
    alone = lags(app, queue_name)
    worker.push_many([{"id": f"globex:{n}"} for n in range(9)])
    clock.advance(20.0)
    beside = lags(app, queue_name)
    app.drain()
    drained = lags(app, queue_name)
    app.operate(worker).resume(tenant="acme")

    assert (0.0, 0.0, 600.0) == alone
    assert (20.0, 0.0, 620.0) == beside
    assert (0.0, 0.0, 620.0) == drained
    assert (620.0, 0.0, 0.0) == lags(app, queue_name)


def test_a_tenant_that_keeps_its_rate_is_limited_and_not_late(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """While it rests its ids count for the limit; once it may go on and nobody comes, they are late."""
    rate = Rate(2, per=60)
    worker = declare(app, queue_name, Notes(), tenants="home", tenant_rate=rate)
    worker.push_many([{"id": f"acme:{n}"} for n in range(9)])
    app.drain()
    clock.advance(30.0)
    resting = lags(app, queue_name)
    clock.advance(60.0)

    assert (0.0, 30.0, 0.0) == resting
    assert (90.0, 0.0, 0.0) == lags(app, queue_name)


def test_many_ids_of_paused_tenants_hide_no_late_one(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """However many lie before it, and however many tenants are paused or due later."""
    worker = declare(app, queue_name, Notes(), tenants="spread")
    for n in range(150):
        app.operate(worker).pause(None if n % 2 else 3_600.0, tenant=f"paused-{n}")
    worker.push_many([{"id": f"paused-{n % 150}:{n}"} for n in range(1_500)])
    worker.push_many([{"id": f"later-{n}:1", "delay": 1_800} for n in range(150)])
    clock.advance(50.0)
    worker.push_many([{"id": "late:1"}])
    clock.advance(10.0)

    assert (10.0, 0.0, 60.0) == lags(app, queue_name)


def test_a_queue_that_uses_up_its_rate_is_limited_and_not_late(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """Its backlog counts for the limit, also between a claim and the next drain; without a drain it is late."""
    worker = declare(app, queue_name, Notes(), rate=Rate(2, per=60))
    worker.push_many(jobs_of([str(n) for n in range(20)]))
    seen = []
    for _ in range(3):
        app.drain()
        clock.advance(30.0)
        seen.append(lags(app, queue_name))
        clock.advance(35.0)
        seen.append(lags(app, queue_name))
    clock.advance(600.0)

    # What may begin is granted for a second.
    assert [(0.0, 30.0, 0.0), (64.0, 65.0, 0.0)] == seen[:2]
    assert [(0.0, 95.0, 0.0), (64.0, 130.0, 0.0)] == seen[2:4]
    assert (664.0, 795.0, 0.0) == lags(app, queue_name)


def test_ids_that_a_visit_gives_back_make_no_backlog_late(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A visit that ends early leaves some of the rate for a moment: the backlog counts from when it let none begin."""
    notes = Notes()
    worker = declare(app, queue_name, notes, rate=Rate(4, per=60), shards_count=1)
    worker.push_many(jobs_of([str(n) for n in range(20)]))
    app.drain()
    clock.advance(50.0)
    app.drain()
    clock.advance(12.0)
    notes.then = lambda _batch: clock.advance(1.0)
    app.drain(0.5)

    assert 5 == len(notes.ids)
    assert (13.0, 63.0, 0.0) == lags(app, queue_name)


def test_a_rate_that_is_not_used_up_excuses_nothing(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A shard that no drain visits is late, though the queue has a rate and others of its ids begin."""
    worker = declare(app, queue_name, Notes(), rate=Rate(100, per=60))
    worker.push_many(jobs_of("a"))
    app.drain()
    worker.push_many(jobs_of("b"))
    clock.advance(300.0)

    assert (300.0, 0.0, 0.0) == lags(app, queue_name)


def test_the_rate_that_drains_keep_is_the_one_that_counts(
    app: Lowkiq, clock: ManualClock, queue_name: str, make_app: MakeApp
) -> None:
    """A process that looks may have other code: its own rate, which nobody keeps, limits nothing."""
    notes, seen = Notes(), list[tuple[float, float, float]]()
    worker = declare(app, queue_name, notes, rate=Rate(200, per=60), shards_count=1, batch_size=1)
    other = make_app()
    looking = declare(other, queue_name, Notes(), rate=Rate(2, per=60), shards_count=1, batch_size=1)

    def look(_batch: object) -> None:
        clock.advance(5.0)
        seen.append(lags(other, queue_name))

    notes.then = look
    worker.push_many(jobs_of("abcde"))
    app.drain()
    explained = other.operate(looking).limits.explain()

    assert [(5.0 * n, 0.0, 0.0) for n in range(1, 5)] == seen[:4]
    assert Rate(200, per=60) == explained.rate
    clock.advance(90.0)
    assert Rate(2, per=60) == other.operate(looking).limits.explain().rate


@pytest.mark.parametrize(
    "damage", [("declared", b"\xc1"), ("declared", b"\x07"), ("now", b"never"), ("declared", b"\x90")]
)
def test_damaged_limits_are_told_as_code_has_them(app: Lowkiq, queue_name: str, damage: tuple[str, bytes]) -> None:
    """Whoever looks gets an answer, whatever a foreign hand has left of what drains declared."""
    worker = declare(app, queue_name, Notes(), rate=Rate(200, per=60))
    worker.push_many(jobs_of("a"))
    app.drain()
    app.core.backend.client.hset(queue_key(queue_name, "limits", app.core.backend.prefix), *damage)

    assert Rate(200, per=60) == app.operate(worker).limits.explain().rate


def test_a_queue_whose_places_are_taken_is_limited(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """What waits behind a visit counts for the limit, what is in flight for the lag; set at run time it is the same."""
    seen = []
    notes = Notes()
    worker = declare(app, queue_name, notes, shards_count=2, batch_size=1)
    app.operate(worker).limits.set(max_running=1)

    def look(_batch: object) -> None:
        clock.advance(5.0)
        seen.append((lags(app, queue_name), app.operate.stats()["by_worker"][queue_name]["lag"]))

    notes.then = look
    worker.push_many(jobs_of([str(n) for n in range(6)]))
    app.drain()
    worker.push_many(jobs_of("z"))
    clock.advance(40.0)

    assert (0.0, 5.0, 0.0) == seen[0][0]
    assert 5.0 == seen[0][1]
    assert (40.0, 0.0, 0.0) == lags(app, queue_name)

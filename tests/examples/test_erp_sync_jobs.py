"""The queues of the example, performed by the test kit: no time passes but what a test moves."""

import json
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from examples.erp_sync.erp import Erp
from examples.erp_sync.jobs import (
    NIGHTLY,
    FinishExport,
    OrderChanged,
    Reconcile,
    StockMoved,
    SyncOrder,
    UpdateStock,
    app,
    export_catalogue,
)
from examples.erp_sync.shop import Shop
from examples.erp_sync.web import web
from lowkiq_lambda.testing import AppUnderTest
from tests.examples.conftest import POISON
from tests.kit.web import Browser


def test_a_late_webhook_of_an_older_version_changes_nothing(lowkiq: AppUnderTest, erp: Erp) -> None:
    """Versions are scores: what is older than what was done does not even run."""
    SyncOrder.push(7, OrderChanged("paid", 100), score=2)
    lowkiq.drain()
    late = SyncOrder.push(7, OrderChanged("new", 100), score=1)
    lowkiq.drain()

    assert late.superseded
    assert {"7": {"version": 2, "status": "paid", "total": 100}} == erp.orders
    assert {"done": 1} == erp.answers


@pytest.mark.parametrize("worker", [SyncOrder, UpdateStock])
def test_a_job_that_runs_twice_counts_once(
    lowkiq: AppUnderTest, erp: Erp, worker: type[SyncOrder] | type[UpdateStock]
) -> None:
    """Its process may die behind the request, and before the queue knows."""
    SyncOrder.push(7, OrderChanged("paid", 100), score=2)
    UpdateStock.push("sku-1", StockMoved(1, 5))
    lowkiq.advance(seconds=3)
    lowkiq.deliver_twice(worker)
    lowkiq.drain()

    assert (2, 5) == (erp.orders["7"]["version"], erp.stock["sku-1"])
    assert 3 == erp.answers["done"]
    lowkiq.assert_empty()


def test_movements_of_many_products_are_one_request_and_a_repeat_is_one_payload(lowkiq: AppUnderTest, erp: Erp) -> None:
    """Stock debounces: the ERP is told once, of all that came meanwhile."""
    for movement, by in ((1, 1), (2, 2), (2, 2)):
        for sku in range(40):
            UpdateStock.push(f"sku-{sku}", StockMoved(100 * sku + movement, by))
    lowkiq.advance(seconds=3)
    lowkiq.drain()

    assert dict.fromkeys((f"sku-{sku}" for sku in range(40)), 3) == erp.stock
    assert {"done": UpdateStock.shards_count} == erp.answers
    assert 80 == app.operate.metrics()["UpdateStock"].payloads


def test_an_erp_that_throttles_is_asked_again_when_it_says(lowkiq: AppUnderTest, erp: Erp) -> None:
    """429 is no failure and no retry: the order comes again after Retry-After."""
    erp.rate = 0
    SyncOrder.push(7, OrderChanged("paid", 100), score=2)

    assert ["7"] == lowkiq.drain().later
    assert {"throttled": 1} == erp.answers
    erp.rate = 1_000
    lowkiq.advance(seconds=1)

    assert ["7"] == lowkiq.drain().done
    lowkiq.assert_empty()


def test_a_poison_order_ends_in_the_morgue_with_its_reason(lowkiq: AppUnderTest, erp: Erp) -> None:
    """Others go on meanwhile."""
    SyncOrder.push(POISON, OrderChanged("paid", 100), score=1)
    SyncOrder.push(7, OrderChanged("paid", 100), score=1)
    lowkiq.drain(raises=False)
    for _ in range(SyncOrder.max_retry_count):
        lowkiq.advance(minutes=1)
        lowkiq.drain(raises=False)

    lowkiq.assert_dead(SyncOrder, id=POISON, error="cannot compute the tax of order 1000")
    assert ["7"] == list(erp.orders)
    lowkiq.assert_empty(UpdateStock, Reconcile)


def test_the_night_finds_the_orders_whose_webhook_was_lost(lowkiq: AppUnderTest, erp: Erp, shop: Shop) -> None:
    """At three in the morning, in Berlin, what differs is pushed again, on all pages of the shop; nothing else is."""
    numbers = [f"{number:03}" for number in range(120)]
    shop.orders.update({id: {"id": id, "version": 2, "status": "paid", "total": 1} for id in numbers})
    erp.orders.update({id: {"version": 2, "status": "paid", "total": 1} for id in numbers[1:-1]})
    erp.orders["060"] = {"version": 1, "status": "new", "total": 1}
    lowkiq.drain()
    planned_at = next(view.next for view in app.schedules.all() if view.name == NIGHTLY)
    assert planned_at is not None
    lowkiq.advance(seconds=planned_at - lowkiq.clock.time())

    assert [NIGHTLY, "000", "060", "119"] == sorted(lowkiq.drain().done, key=lambda id: (id != NIGHTLY, id))
    assert 3 == datetime.fromtimestamp(planned_at, ZoneInfo("Europe/Berlin")).hour
    assert set(numbers) == {id for id, order in erp.orders.items() if order["version"] == 2}


def test_an_export_tells_which_products_were_refused_and_finishes_once(
    lowkiq: AppUnderTest, erp: Erp, shop: Shop
) -> None:
    """A product without a picture ends with the reason; the rest is listed, and then the ERP is told."""
    task = app.tasks.get(export_catalogue())
    assert len(shop.products) == task.progress().total
    lowkiq.drain()

    assert "completed" == task.progress().state
    assert [("product 0", "product 0 has no picture")] == [
        (item.label, item.text) for item in task.items(status="failed").items
    ]
    assert {task.id: {"listed": 9, "rejected": 1}} == erp.catalogues
    lowkiq.assert_empty(FinishExport)


def test_the_web_app_takes_webhooks_and_says_what_is_left(lowkiq: AppUnderTest, erp: Erp) -> None:
    """What it accepts Redis has; what is no webhook is refused with the reason; the status counts and names."""
    browser = Browser(web)
    order = {"id": "7", "version": 1, "status": "paid", "total": 100}
    moved = {"sku": "sku-1", "movement": 1, "by": 5}

    assert 202 == browser.ask("POST", "/webhooks/orders", body=json.dumps(order).encode()).status
    assert 202 == browser.ask("POST", "/webhooks/stock", body=json.dumps(moved).encode()).status
    refused = browser.ask("POST", "/webhooks/orders", body=b'{"id": "7"}')
    assert (422, "Object missing required field `version`") == (refused.status, refused.json["reason"])
    assert {"waiting": 2, "morgue": [], "moves": []} == browser.get("/status").json
    lowkiq.drain()
    lowkiq.advance(seconds=3)
    lowkiq.drain()
    assert {"waiting": 0, "morgue": [], "moves": []} == browser.get("/status").json
    assert ({"sku-1": 5}, ["7"]) == (erp.stock, list(erp.orders))


@pytest.mark.usefixtures("shop")
def test_an_export_whose_process_is_killed_behind_its_last_item_is_left_to_do(
    lowkiq: AppUnderTest, erp: Erp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks what is left completes it, and its last job tells the ERP."""
    export_catalogue()
    with monkeypatch.context() as killed:
        killed.setattr(app.core.drains.drainer, "look_at_tasks", None)
        lowkiq.drain()
    assert {} == erp.catalogues

    assert {"waiting": 1, "morgue": [], "moves": []} == Browser(web).get("/status").json
    lowkiq.drain()
    assert 1 == len(erp.catalogues)
    assert {"waiting": 0, "morgue": [], "moves": []} == Browser(web).get("/status").json

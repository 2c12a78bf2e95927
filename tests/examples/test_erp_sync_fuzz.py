"""No fault changes the end of the example's jobs: the fuzz of its handlers, against the double of the ERP."""

import pytest

from examples.erp_sync.erp import Erp
from examples.erp_sync.http import ask
from examples.erp_sync.jobs import (
    ExportProduct,
    FinishExport,
    OrderChanged,
    Product,
    Reconcile,
    StockMoved,
    SyncOrder,
    UpdateStock,
    export_catalogue,
)
from examples.erp_sync.shop import Shop
from lowkiq_lambda.tasks.tasks import Tasks
from lowkiq_lambda.testing import AppUnderTest

FUZZED = 45


def test_an_order_is_the_newest_one_whatever_happens(lowkiq: AppUnderTest, erp: Erp) -> None:
    """The ERP refuses what is older than what it has, so late requests of frozen processes do no harm."""
    orders = [OrderChanged("new", 10), OrderChanged("paid", 20), OrderChanged("sent", 20)]

    report = lowkiq.fuzz(
        SyncOrder, state=lambda: erp.orders, isolate=erp.orders, payloads=orders, outside=[ask], scenarios=FUZZED
    )

    assert report.faults["freeze"] > 0


def test_a_movement_counts_once_whatever_happens(lowkiq: AppUnderTest, erp: Erp) -> None:
    """Each has a number of its own, so one product is enough here."""
    isolated = (erp.stock, erp._movements)
    moves = [StockMoved(1, 5), StockMoved(2, -3), StockMoved(3, 1)]

    report = lowkiq.fuzz(
        UpdateStock,
        state=lambda: erp.stock,
        isolate=isolated,
        payloads=moves,
        outside=[ask],
        ids=1,
        duplicates=True,
        scenarios=FUZZED,
    )

    assert report.faults["freeze"] > 0


def test_a_product_is_exported_whatever_happens(lowkiq: AppUnderTest, erp: Erp) -> None:
    """A catalogue has each product once, so nothing of it comes late."""
    report = lowkiq.fuzz(
        ExportProduct,
        state=lambda: erp.products,
        isolate=erp.products,
        payloads=[Product("a lamp", "lamp.png")],
        outside=[ask],
        versions=False,
        merges=False,
        scenarios=30,
    )

    assert report.faults["freeze"] > 0


def test_orders_are_reconciled_whatever_happens(lowkiq: AppUnderTest, erp: Erp, shop: Shop) -> None:
    """What the ERP lacks is pushed, and pushed again where that is unknown."""
    shop.orders |= {f"{n}": {"id": f"{n}", "version": n, "status": "paid", "total": 10} for n in range(1, 4)}

    report = lowkiq.fuzz(
        Reconcile,
        state=lambda: erp.orders,
        isolate=erp.orders,
        payloads=[""],
        outside=[ask],
        versions=False,
        merges=False,
        ids=1,
        scenarios=30,
    )

    assert report.faults["freeze"] > 0
    assert report.faults["die"] > 0


def test_an_export_is_finished_whatever_happens(
    lowkiq: AppUnderTest, erp: Erp, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its task has ended, so its counts stay; the ids of a fuzz are those of no task."""
    task = lowkiq.app.tasks.get(export_catalogue())
    lowkiq.drain()
    assert len(shop.products) == sum(erp.catalogues[task.id].values())
    monkeypatch.setattr(Tasks, "get", lambda *_: task)

    report = lowkiq.fuzz(
        FinishExport,
        state=lambda: erp.catalogues,
        isolate=erp.catalogues,
        payloads=[""],
        outside=[ask],
        versions=False,
        merges=False,
        scenarios=30,
    )

    assert report.faults["freeze"] > 0

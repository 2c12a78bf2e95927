"""The queues: what the shop says goes to the ERP, in order, and as fast as the ERP allows."""

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import ClassVar
from urllib.parse import quote

from examples.erp_sync.clients import ask_shop, tell_erp
from lowkiq_lambda import Auto, Batch, BatchJob, Config, Debounce, Job, Lowkiq, Rate, Worker

# The server that the environment names, else one of its own for development.
app = Lowkiq(Config.from_env({"LOWKIQ_REDIS_URL": "embedded:", **os.environ}))


class TryAgainSoon:
    """Retries within seconds, so that a run is short. Where the other side needs a rest, leave this out."""

    max_retry_count: ClassVar[int] = 5

    def retry_in(self, retry_count: int) -> float:
        """A twentieth of a second, then twice as long each time."""
        return float(0.05 * 2**retry_count)


@dataclass(frozen=True, slots=True)
class OrderChanged:
    """A whole order as it is now; its version is the score of the push."""

    status: str
    total: int


@app.worker
class SyncOrder(TryAgainSoon, Worker[OrderChanged]):
    """Tells the ERP the newest version of an order: a late or repeated webhook changes nothing."""

    merge = "latest"
    # LOWKIQ_AUTO=act: the shards that it lacks are made. The example's server has no replica that would keep a move.
    shards_count = Auto(least=2, lag=5, unreplicated=True)
    rate = Rate(int(os.environ.get("ORDERS_RATE", "20")), per=1)

    def perform_job(self, job: BatchJob[OrderChanged]) -> None:
        """One order, one request."""
        [version], [order] = job.scores, job.payloads
        tell_erp("PUT", f"/orders/{job.id}", {"version": int(version), **asdict(order)})


@dataclass(frozen=True, slots=True)
class StockMoved:
    """So many pieces of a product came or went; each movement has a number of its own."""

    movement: int
    by: int


@app.worker
class UpdateStock(TryAgainSoon, Worker[StockMoved]):
    """Collects movements and tells many products in one request; the ERP counts no movement twice."""

    batch_size = 50
    debounce = Debounce(0.5, at_most=2)
    isolate = False  # what fails is the request, and not one of its products

    def perform(self, batch: Batch[StockMoved]) -> None:
        """Many products, one request."""
        tell_erp("POST", "/stock", {sku: [asdict(moved) for moved in moves] for sku, moves in batch.items()})


@app.worker
class Reconcile(TryAgainSoon, Worker):
    """Compares all orders of the shop with those of the ERP, and pushes what differs: webhooks get lost."""

    shards_count = 1

    def perform_job(self, job: BatchJob) -> Iterator[str]:
        """Goes on behind the order that it yielded last, also in another process."""
        after = job.cursor or ""
        while page := ask_shop(f"/orders?after={quote(after)}"):
            known = tell_erp("POST", "/versions", [order["id"] for order in page])
            SyncOrder.push_many(
                Job(order["id"], OrderChanged(order["status"], order["total"]), score=order["version"])
                for order in page
                if known.get(order["id"], 0) < order["version"]
            )
            after = page[-1]["id"]
            yield after


NIGHTLY = "nightly"
app.cron("0 3 * * *", Reconcile, id=NIGHTLY, tz="Europe/Berlin", description="finds orders whose webhook was lost")


@dataclass(frozen=True, slots=True)
class Product:
    """A product as it is to stand in the catalogue."""

    name: str
    picture: str | None


@app.worker
class ExportProduct(TryAgainSoon, Worker[Product]):
    """An item of the catalogue's export; one that the ERP refuses ends with the reason, and is not retried."""

    def perform_job(self, job: BatchJob[Product]) -> None:
        """One product, one request."""
        tell_erp("PUT", f"/products/{job.id}", asdict(job.payloads[-1]))
        job.note("listed")


@app.worker
class FinishExport(TryAgainSoon, Worker):
    """Runs once, when all products of an export have ended."""

    def perform_job(self, job: BatchJob) -> None:
        """Tell the ERP how many came through."""
        counts = app.tasks.get(job.id).progress().counts
        tell_erp("PUT", f"/catalogues/{job.id}", {"listed": counts["done"], "rejected": counts["failed"]})


def export_catalogue() -> str:
    """Begin an export of all products; the id of its task, which tells how far it is."""
    with app.task("catalogue", on_complete=(FinishExport, "")) as task:
        task.push_many(
            ExportProduct,
            [
                {"id": each["sku"], "payload": Product(each["name"], each["picture"]), "item": each["name"]}
                for each in ask_shop("/products")
            ],
        )
    return task.id

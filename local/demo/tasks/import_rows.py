"""A file of prices is imported. Products repeat in it: the rows of one are performed together, in their order."""

import csv
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from local.demo.tasks.demo import Demo, DemoFailed
from lowkiq_lambda import Batch, Lowkiq
from lowkiq_lambda.tasks.task import Task

AT_ONCE = 500
"""Rows of a push."""
TIMES = 10
"""How often a product is in the file."""


class Import(Demo):
    """10,000 rows of 1,000 products."""

    size = 10_000
    unit = "rows"

    def declare(self, app: Lowkiq, folder: Path) -> None:
        """The worker: the id of a job is the product, so its rows never run at the same time, nor out of order."""
        self._file, self._table = folder / "prices.csv", folder / "prices.sqlite"

        @app.worker(queue_name=self.queue_name("ImportPrices"), shards_count=5, batch_size=50)
        def import_prices(batch: Batch) -> None:
            prices = [(product, rows[-1]["price"], len(rows)) for product, rows in batch.items()]
            with closing(self._open()) as table, table:
                table.executemany(_UPSERT, prices)

        self.worker = import_prices

    def push(self, task: Task, size: int) -> Iterator[None]:
        """One item for each row of the file, which is labelled by its number."""
        self._write_file(size)
        self._table.unlink(missing_ok=True)
        with closing(self._open()) as table, table:
            table.execute("CREATE TABLE prices (product TEXT PRIMARY KEY, price INTEGER, payloads INTEGER)")
        with self._file.open(newline="") as file:
            jobs = (
                {"id": row["product"], "payload": {"price": int(row["price"])}, "item": f"row {number}"}
                for number, row in enumerate(csv.DictReader(file), 2)
            )
            while chunk := [*islice(jobs, AT_ONCE)]:
                task.push_many(self.worker, chunk)
                yield

    def outcome(self, _task: Task, size: int) -> Iterator[str]:
        """How many payloads the rows were joined into, and that each product has its last price."""
        with closing(self._open()) as table:
            found = {product: price for product, price, _ in table.execute("SELECT * FROM prices")}
            ((payloads,),) = table.execute("SELECT sum(payloads) FROM prices")
        yield f"  {size:,} rows of {len(found):,} products; equal rows were joined into {payloads:,} payloads"
        with self._file.open(newline="") as file:
            last = {row["product"]: int(row["price"]) for row in csv.DictReader(file)}
        if found != last:
            raise DemoFailed("a product does not have the price of its last row")

    def _write_file(self, size: int) -> None:
        products = max(1, size // TIMES)
        with self._file.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["product", "price"])
            # Each price is there twice in a row, which changes nothing.
            writer.writerows((f"product {row % products}", 100 + row // products // 2) for row in range(size))

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._table, timeout=30)


_UPSERT = (
    "INSERT INTO prices VALUES (?, ?, ?) "
    "ON CONFLICT DO UPDATE SET price = excluded.price, payloads = payloads + excluded.payloads"
)

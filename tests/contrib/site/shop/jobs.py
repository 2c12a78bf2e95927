"""The jobs of the shop, and what its handlers have noted."""

import os
from typing import Any
from uuid import uuid4

import msgspec

from lowkiq_lambda import Batch, Lowkiq, Worker

app = Lowkiq()
performed: list[tuple[str, list[Any]]] = []
NAME = os.environ.get("SHOP_QUEUE") or uuid4().hex


class Changed(msgspec.Struct):
    """A change of an order."""

    status: str


@app.worker
class ShipOrder(Worker):
    """Notes the orders of each batch."""

    queue_name = f"ship-{NAME}"
    shards_count = 1
    batch_size = 10

    def perform(self, batch: Batch) -> None:
        """Note them."""
        performed.extend((order, [*payloads]) for order, payloads in batch.items())


@app.worker
class TellCustomer(Worker[Changed]):
    """Has payloads of a type."""

    queue_name = f"tell-{NAME}"
    shards_count = 1

    def perform(self, batch: Batch[Changed]) -> None:
        """Note them."""
        performed.extend((order, [*payloads]) for order, payloads in batch.items())

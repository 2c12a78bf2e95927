"""Handlers that mark payloads as done, and pushes for them."""

from typing import Any

from lowkiq_lambda import Batch, Later, Rejected, Worker
from tests.kit.handlers import Then

SOLD_OUT = Rejected("sold out")


def marking(*positions: int, then: Then | None = None) -> Then:
    """Marks these payloads of each id as done, then goes on."""

    def handle(batch: Batch) -> None:
        for job_id in batch:
            for position in positions:
                batch.done(job_id, payload=position)
        if then:
            then(batch)

    return handle


def put_off(_batch: Batch) -> None:
    """Goes on in a minute."""
    raise Later(60)


def push_payloads(worker: type[Worker], *payloads: Any, job_id: str = "a") -> None:
    """Payloads of one id, in this order."""
    worker.push_many({"id": job_id, "payload": payload} for payload in payloads)

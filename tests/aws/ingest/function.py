"""The ingest function as Lambda calls it, with a worker that notes what it gets."""

from collections.abc import Iterator
from typing import Any

from lowkiq_lambda import Incoming, Lowkiq, Worker
from lowkiq_lambda.aws.ingest_function import handler
from lowkiq_lambda.declare.ingest import MappingFunction
from tests.aws.functions import FunctionContext, Install
from tests.kit.handlers import Notes
from tests.kit.looks import look
from tests.kit.workers import declare


class IngestFunction:
    """One execution environment for an app whose jobs are noted."""

    def __init__(self, install: Install, app: Lowkiq, queue_name: str) -> None:
        self.app = app
        self.notes = Notes()
        self.worker = declare(app, queue_name, self.notes)
        app.inbox("inbox-*")
        install(app)

    def __call__(self, event: object) -> dict[str, Any]:
        """Invoke it."""
        return handler(event, FunctionContext(30))

    def payloads(self) -> dict[str, list[Any]]:
        """What the queue has, drained: the payloads of each id in their order."""
        self.notes.clear()
        self.app.drain()
        return {job_id: payloads for batch in self.notes.batches for job_id, payloads in batch.items()}

    def waiting(self, job_id: str) -> list[tuple[object, float]]:
        """The payloads that wait under an id, with their scores."""
        seen = look(self.app, self.worker, job_id)
        return seen.payloads if seen else []


def by_order(worker: type[Worker], *refused: object) -> MappingFunction:
    """A mapping function for bodies with an `order`, which becomes the id; it raises for those that are `refused`."""

    def orders(record: Incoming) -> Iterator[tuple[type[Worker], dict[str, Any]]]:
        if record.body in refused:
            raise ValueError("not an order")
        yield worker, {"id": record.body["order"], "payload": record.body}

    return orders

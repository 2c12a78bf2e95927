"""A project of somebody's: a typed worker, a coroutine, and a schedule entry."""

import msgspec

from lowkiq_lambda import Batch, Lowkiq, Worker

app = Lowkiq()
orders: dict[str, str] = {}
pings: list[str] = []


class StatusChanged(msgspec.Struct):
    """A change of an order."""

    status: str


@app.worker
class SyncOrder(Worker[StatusChanged]):
    """Keeps the last status of each order."""

    batch_size = 10
    max_retry_count = 1

    def retry_in(self, retry_count: int) -> float:
        """A minute for the first, two for the second."""
        return 60.0 * (retry_count + 1)

    def perform(self, batch: Batch[StatusChanged]) -> None:
        """Some statuses do not get through."""
        for id, payloads in batch.items():
            for payload in payloads:
                if payload.status == "boom":
                    raise RuntimeError(payload.status)
                if payload.status == "bad":
                    batch.fail(id, "a bad status")
                orders[id] = payload.status


@app.worker(queue_name="ping")
async def ping(batch: Batch) -> None:
    """Note the ids."""
    pings.extend(batch)


app.every(60, ping, id="tick")

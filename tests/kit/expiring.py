"""Jobs that expire: what the store has of it, and handlers of the tests."""

import struct
from collections.abc import Iterator
from typing import Any

from lowkiq_lambda import Lowkiq, Worker
from lowkiq_lambda.store.shard.keys import EXPIRY

HOUR = 3_600.0


def push(worker: type[Worker], *payloads: int, id_: str = "a", **fields: Any) -> None:
    """A push of each payload under the id."""
    for payload in payloads:
        worker.push_many([{"id": id_, "payload": payload, **fields}])


def expiries(app: Lowkiq, worker: type[Worker]) -> dict[int, float]:
    """The expiries that the queue has, by arrival number."""
    client, kept = app.core.backend.client, dict[int, float]()
    for shard in app.core.queues.agreed(worker).shards:
        stored: dict[bytes, bytes] = client.hgetall(shard.using((EXPIRY,)).key("expiries"))  # type: ignore[assignment]  # no future here
        kept |= {int.from_bytes(arrival): struct.unpack(">d", time)[0] for arrival, time in stored.items()}
    return kept


def in_use(app: Lowkiq, worker: type[Worker]) -> object:
    """What the queue's first shard says of features that it uses."""
    shard = app.core.queues.agreed(worker).shards[0]
    return app.core.backend.client.hget(shard.key("meta"), "in_use")


def events(app: Lowkiq, worker: type[Worker], *kinds: str) -> Iterator[tuple[str, list[int]]]:
    """The events of the id "a" of these kinds, each with the arrival numbers of its payloads."""
    for event in app.operate(worker).biography("a").events:
        if event.kind in kinds:
            yield event.kind, event.arrivals

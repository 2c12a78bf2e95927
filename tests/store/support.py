"""Workers that fail on demand, and looks at a queue from below."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
import redis
from lowkiq_lambda import Batch, JobView, Lowkiq, MorgueJob, Pushed, Worker
from lowkiq_lambda.store.inspect.actions import Actions
from lowkiq_lambda.store.inspect.queries import Queries
from lowkiq_lambda.store.shard.scripts import Reply
from lowkiq_lambda.testing import ManualClock
from tests.kit.stored import State, stored
from tests.kit.handlers import FailingHandler
from tests.kit.handlers import LATER


def declare(app: Lowkiq, queue_name: str, handler: FailingHandler, **fields: Any) -> type[Worker]:
    """A worker of one shard with batches of ten, which tries again after a minute, unless `fields` say otherwise."""
    body: dict[str, Any] = {
        "queue_name": queue_name,
        "shards_count": 1,
        "batch_size": 10,
        "retry_in": lambda _self, _retry_count: LATER,
        "perform": lambda _self, batch: handler(batch),
        **fields,
    }
    return app.worker(type("Any", (Worker,), body))

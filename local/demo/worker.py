"""The demo's worker: the code that a user of the library would write."""

from random import random
from typing import Any

from local.demo.replay import Replay
from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.engine.batch import Batch


def declare_worker(app: Lowkiq, replay: Replay, name: str) -> type[Worker[Any]]:
    """A worker of `app` that applies changes for `replay`, from the queue `name`."""

    @app.worker
    class ApplyChanges(Worker):
        queue_name = name
        shards_count = 5
        batch_size = 10
        # Faults strike at random, so nothing here is beyond hope; the morgue is for what is.
        max_retry_count = 100

        def retry_in(self, _retry_count: int) -> float:
            return 0.05 + 0.15 * random()  # noqa: S311 - spreads retries in time, protects nothing

        def perform(self, batch: Batch) -> None:
            replay.perform(batch)

    return ApplyChanges

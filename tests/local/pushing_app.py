"""An app for a daemon whose handler pushes to another queue."""

import os
import threading
from typing import Any

from lowkiq_lambda import Batch, Buffer, Config, Lowkiq
from lowkiq_lambda.push import redelivery
from tests.kit.telling import declare_stage_worker, tell

# A daemon of a user takes five seconds, which prove no more.
vars(redelivery)["LAST_FLUSH"] = 0.5


def tell_lost(_worker: object, jobs: list[dict[str, Any]]) -> None:
    """Which jobs were given up."""
    tell("lost", ids=[job["id"] for job in jobs])


def push_and_hang(_job_id: str, _batch: Batch) -> None:
    """Push, and never come back."""
    (pushed,) = other.push_many([{"id": "child"}])
    tell("kept", buffered=pushed.buffered)
    threading.Event().wait()


app = Lowkiq(Config.from_env(os.environ, when_unavailable=Buffer(on_lost=tell_lost)))
declare_stage_worker(app, {"push and hang": push_and_hang})


@app.worker(queue_name=f"{os.environ['STAGE_QUEUE']}-other", shards_count=1)
def other(_batch: Batch) -> None:
    """Never gets there."""

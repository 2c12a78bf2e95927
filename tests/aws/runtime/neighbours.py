"""An app of four queues for functions in processes of their own: two are healthy, one exits, one kills its process."""

import os
import threading
from typing import Final

from lowkiq_lambda import Batch, Config, Lowkiq, Worker
from tests.kit.telling import tell

QUEUE: Final = os.environ["STAGE_QUEUE"]
DOES: Final = {"good": "note", "fine": "note", "exits": "exit", "kills": "die"}
"""What the handler of each queue does with its jobs."""


def declare(app: Lowkiq, name: str) -> type[Worker]:
    """The worker of one of them, of one shard; a failure is tried again once, at once."""

    def perform(_worker: Worker, batch: Batch) -> None:
        for job_id in batch:
            tell("begin", queue=name, id=job_id, retry_count=batch.job(job_id).retry_count)
            # Slow enough that thirty jobs take more than one turn.
            threading.Event().wait(0.01)
            if DOES[name] == "exit":
                raise SystemExit(3)
            if DOES[name] == "die":
                os._exit(3)
            tell("end", queue=name, id=job_id)

    fields = {
        "queue_name": f"{QUEUE}-{name}",
        "shards_count": 1,
        "max_retry_count": 1,
        "retry_in": lambda _self, _retry_count: 0.0,
        "perform": perform,
    }
    return app.worker(type(name.capitalize(), (Worker,), fields))


def declare_all(app: Lowkiq) -> dict[str, type[Worker]]:
    """The workers by their names."""
    return {name: declare(app, name) for name in DOES}


app = Lowkiq(Config.from_env(os.environ))
declare_all(app)

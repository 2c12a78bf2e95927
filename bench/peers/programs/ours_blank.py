"""Ours: calls of `push_many`; a daemon with default settings. `python -m bench.peers.programs.ours_blank` works."""

import logging
import time
from typing import Final

from bench.peers.programs import meter
from lowkiq_lambda import Batch, Config, Lowkiq
from lowkiq_lambda.declare.pushable import FunctionWorker
from lowkiq_lambda.local.daemon import Daemon

_TIMEOUT: Final = 600.0


def _blank(batch: Batch) -> None:
    meter.work(len(batch))


async def _blank_async(batch: Batch) -> None:
    await meter.work_async(len(batch))


def _declare() -> tuple[Lowkiq, FunctionWorker]:
    logging.getLogger("lowkiq_lambda").setLevel(logging.ERROR)
    app = Lowkiq(Config(redis_url=meter.URL))
    worker = app.worker(
        queue_name="blank",
        shards_count=int(meter.setting("shards_count")),
        batch_size=int(meter.setting("batch_size")),
        concurrency=int(meter.setting("concurrency")),
    )
    return app, worker(_blank_async if meter.setting("handler") == "coroutine" else _blank)


def push() -> None:
    """Push many at once."""
    app, worker = _declare()
    app.core.queues.agreed(worker)
    jobs = [[{"id": payload, "payload": payload} for payload in payloads] for payloads in meter.calls()]
    with meter.pushing():
        for call in jobs:
            worker.push_many(call)


if __name__ == "__main__":
    with Daemon(_declare()[0]):
        # It is ended when its report is there.
        time.sleep(_TIMEOUT)

"""A queue whose handler notes the ids."""

import logging
import signal
import threading
from contextlib import closing, suppress
from pathlib import Path
import pytest
from lowkiq_lambda import BackendDenied, Batch, ConfigError, Lowkiq, QueueMismatch, Worker
from lowkiq_lambda.local.daemon import Daemon
from lowkiq_lambda.local.splitters import DefaultSplitter
from tests.kit.apps import MakeApp
from tests.kit.stage import Stage
from tests.local.conftest import APP
from tests.kit.servers import Cluster, FaultProxy, MakeServer
from tests.kit.waiting import eventually


class Counting:
    """A queue whose handler notes the ids."""

    def __init__(self, app: Lowkiq, queue_name: str, shards_count: int = 2) -> None:
        self.done: list[str] = []
        counting = self

        class Count(Worker):
            def perform(self, batch: Batch) -> None:
                counting.done.extend(batch)

        Count.queue_name, Count.shards_count = queue_name, shards_count
        self.worker = app.worker(Count)

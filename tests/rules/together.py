"""Drains of several apps at once."""

import threading
from collections import defaultdict
from random import Random
from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.job import shard_for
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Notes
from tests.kit.workers import declare, jobs_of
from tests.kit.looks import left_behind, look


def in_threads(*apps: Lowkiq) -> None:
    """Drain the apps side by side until none finds anything."""
    threads = [threading.Thread(target=app.drain) for app in apps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

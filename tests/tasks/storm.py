"""A task over two queues, while the daemons that perform its items are killed.

By hand, with the numbers of items and of kills, and the seconds of an item: `python -m tests.tasks.storm 3000 5 0.02`.
"""

import importlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import uuid4

from lowkiq_lambda.tasks.task import Task
from lowkiq_lambda.tasks.views import Progress
from tests.kit.apps import close_app
from tests.kit.daemons import DaemonProcess
from tests.kit.servers import Server
from tests.kit.waiting import eventually
from tests.tasks.watching import check_shards

DAEMONS: Final = 2
LEASE_TTL: Final = 1.0
LONGEST: Final = 200.0
"""Seconds that a storm may take."""
KINDS: Final = ("done", "failing", "dying", "done", "done")
_pause = threading.Event()


@contextmanager
def storm_app(server: Server) -> Iterator[tuple[Any, dict[str, str]]]:
    """The module of the app, in this process too, and the environment of its daemons."""
    environment = {
        "LOWKIQ_REDIS_URL": server.url,
        "LOWKIQ_LEASE_TTL": str(LEASE_TTL),
        "STORM_QUEUE": f"storm-{uuid4().hex}",
    }
    before = dict(os.environ)
    os.environ |= environment
    try:
        sys.modules.pop("tests.tasks.storm_app", None)
        module = importlib.import_module("tests.tasks.storm_app")
        yield module, environment
        close_app(module.app)
    finally:
        os.environ.clear()
        os.environ |= before


def expected(items: int) -> dict[str, int]:
    """How many end how. A third of them are pushed with the payload and the id of the one before, and share its end."""
    words = {"done": "done", "failing": "failed", "dying": "dead"}
    ends = [words[_kind(number)] for number in range(items)]
    return {word: ends.count(word) for word in words.values()}


def push(module: Any, task: Task, items: int) -> None:
    """All items, by turns into both queues."""
    jobs = [{"id": f"{_kind(number)}-{number - number % 3 // 2}", "item": f"row {number}"} for number in range(items)]
    for at in range(0, items, 60):
        worker = (module.InBatches, module.OneByOne)[at // 60 % 2]
        task.push_many(worker, jobs[at : at + 60])


def storm(server: Server, folder: Path, items: int, kills: int, seconds: float) -> tuple[Progress, list[str]]:
    """Push, kill a daemon each so many seconds, and wait for the end: the progress, and the callbacks that came."""
    rng = Random(items)
    with storm_app(server) as (module, environment):
        module.app.operate(module.Finished).pause()
        task = module.app.task("storm", on_complete=(module.Finished, None))

        def start() -> DaemonProcess:
            return DaemonProcess(["tests.tasks.storm_app:app"], environment, folder / "log")

        daemons = [start() for _ in range(DAEMONS)]
        try:
            with task:
                push(module, task, items)
            eventually(lambda: task.progress().ended, LONGEST)
            for _ in range(kills):
                _pause.wait(seconds)
                at = rng.randrange(DAEMONS)
                daemons[at].close()
                daemons[at] = start()
            eventually(lambda: task.progress().state == "completed", LONGEST)
        finally:
            for daemon in daemons:
                daemon.close()
        for worker in (module.InBatches, module.OneByOne):
            check_shards(module.app, worker)
        module.app.operate(module.Finished).resume()
        module.Finished.performed.clear()
        module.app.drain(10)
        return task.progress(), [*module.Finished.performed]


def _kind(number: int) -> str:
    """Of two that share an id and a payload it is the same."""
    return KINDS[(number - number % 3 // 2) % len(KINDS)]


if __name__ == "__main__":
    os.environ["STORM_PAUSE"] = sys.argv[3]
    with Server() as own, tempfile.TemporaryDirectory() as where:
        told, callbacks = storm(own, Path(where), int(sys.argv[1]), int(sys.argv[2]), 2.0)
    found = {word: count for word, count in told.counts.items() if count}
    sys.stdout.write(f"{found}, to be {expected(int(sys.argv[1]))}; {len(callbacks)} callback\n")

"""A task over two queues, while the daemons that perform its items are killed.

By hand, with the numbers of items and of kills, and the seconds of an item: `python -m tests.tasks.storm 3000 5 0.02`.
"""

import importlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import uuid4

from lowkiq_lambda.tasks.task import Task
from lowkiq_lambda.tasks.views import OPEN
from tests.kit.apps import close_app
from tests.kit.daemons import DaemonProcess
from tests.kit.servers import Server
from tests.kit.waiting import eventually
from tests.proof.history import Recorder, Terms, Verdict, check
from tests.tasks.watching import check_shards, statuses

DAEMONS: Final = 2
LEASE_TTL: Final = 1.0
LONGEST: Final = 200.0
"""Seconds that a storm may take."""
ENDS: Final = {"done": "done", "failing": "failed", "dying": "dead"}
KINDS: Final = ("done", "failing", "dying", "done", "done")
_pause = threading.Event()


@contextmanager
def storm_app(server: Server, folder: Path) -> Iterator[tuple[Any, dict[str, str]]]:
    """The module of the app, in this process too, and the environment of its daemons."""
    environment = {
        "LOWKIQ_REDIS_URL": server.url,
        "LOWKIQ_LEASE_TTL": str(LEASE_TTL),
        "STORM_QUEUE": f"storm-{uuid4().hex}",
        "STORM_HISTORY": str(folder / "history"),
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


def expected(items: int) -> dict[str, list[int]]:
    """The numbers of the items by how they have to end.

    A third of them are pushed with the payload and the id of the one before, and share its end.
    """
    return {end: [n + 1 for n in range(items) if ENDS[_kind(n)] == end] for end in ENDS.values()}


def push(module: Any, task: Task, items: int) -> None:
    """All items, by turns into both queues."""
    for end, numbers in expected(items).items():
        module.history.write("item-begin", task.id, numbers, outcome=end)
    jobs = [{"id": f"{_kind(number)}-{number - number % 3 // 2}", "item": f"row {number}"} for number in range(items)]
    for at in range(0, items, 60):
        worker = (module.InBatches, module.OneByOne)[at // 60 % 2]
        task.push_many(worker, jobs[at : at + 60])


class ItemLooks:
    """Notes how items have ended: each once, and once more if its status is another one later."""

    def __init__(self, history: Recorder, task: Task) -> None:
        self._history = history
        self._task = task
        self._ended: dict[int, str] = {}

    def look(self) -> None:
        """At all of them."""
        ended = {number: status for number, status in statuses(self._task).items() if status not in OPEN}
        changed = {number: status for number, status in ended.items() if self._ended.get(number) != status}
        for status in {*changed.values()}:
            numbers = [number for number, one in changed.items() if one == status]
            self._history.write("item-end", self._task.id, numbers, outcome=status)
        self._ended |= changed


def storm(server: Server, folder: Path, items: int, kills: int, seconds: float) -> Verdict:
    """Push, kill a daemon each so many seconds, and wait for the end."""
    rng = Random(items)
    with storm_app(server, folder) as (module, environment):
        module.app.operate(module.Finished).pause()
        task, history = module.app.task("storm", on_complete=(module.Finished, None)), module.history
        looks = ItemLooks(history, task)

        def start() -> DaemonProcess:
            return DaemonProcess(["tests.tasks.storm_app:app"], environment, folder / "log")

        daemons = [start() for _ in range(DAEMONS)]
        try:
            with task:
                push(module, task, items)
            eventually(lambda: task.progress().ended, LONGEST)
            for _ in range(kills):
                _pause.wait(seconds)
                looks.look()
                at = rng.randrange(DAEMONS)
                died_at = time.monotonic()
                history.write("fault", process=daemons[at].pid)
                daemons[at].close()
                history.write("died", process=daemons[at].pid, at=died_at)
                daemons[at] = start()
            eventually(lambda: task.progress().state == "completed", LONGEST)
            # All items have ended by now, though nobody has performed the callback yet.
            looks.look()
        finally:
            for daemon in daemons:
                daemon.close()
        for worker in (module.InBatches, module.OneByOne):
            check_shards(module.app, worker)
        module.app.operate(module.Finished).resume()
        module.app.drain(10)
        looks.look()
        counted = {status: count for status, count in task.progress().counts.items() if count}
        assert {end: len(numbers) for end, numbers in expected(items).items()} == counted
        return check(history.read(), Terms(acknowledged=True))


def _kind(number: int) -> str:
    """Of two that share an id and a payload it is the same."""
    return KINDS[(number - number % 3 // 2) % len(KINDS)]


if __name__ == "__main__":
    os.environ["STORM_PAUSE"] = sys.argv[3]
    with Server() as own, tempfile.TemporaryDirectory() as where:
        verdict = storm(own, Path(where), int(sys.argv[1]), int(sys.argv[2]), 2.0)
    sys.stdout.write("\n".join([f"{verdict.operations}, {len(verdict.words)} found", *verdict.words[:20]]) + "\n")

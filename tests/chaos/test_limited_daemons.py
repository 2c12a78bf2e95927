"""Daemons that share a limited queue, killed and frozen at random, and judged by what their handlers noted."""

import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lowkiq_lambda import Config, Lowkiq, Worker
from lowkiq_lambda.store.shard.admitting import visits_running
from tests.kit.apps import closing_app
from tests.kit.daemons import DaemonProcess
from tests.kit.looks import left_behind
from tests.kit.servers import Server
from tests.kit.waiting import eventually
from tests.kit.workers import declare
from tests.proof.history import Recorder, Terms, check

TTL = 2.0
SHARDS = 12
JOBS = 400


class Daemons:
    """Three daemons; who is killed is replaced at once."""

    def __init__(self, url: str, queue_name: str, folder: Path) -> None:
        self._folder = folder
        self.history = Recorder(folder / "history")
        self._environment = {
            "LOWKIQ_REDIS_URL": url,
            "LOWKIQ_LEASE_TTL": str(TTL),
            "LIMITED_QUEUE": queue_name,
            "LIMITED_HISTORY": str(folder / "history"),
            "LIMITED_RUNNING": "2",
            "LIMITED_SHARDS": str(SHARDS),
        }
        self.running = [self._start() for _ in range(3)]

    def kill(self, at: int) -> None:
        """As a machine does that is lost."""
        # With the time before the kill: others may take its permit before this has heard of its end.
        killed_at = time.monotonic()
        self.history.write("fault", process=self.running[at].pid)
        self.running[at].close()
        self.history.write("died", process=self.running[at].pid, at=killed_at)
        self.running[at] = self._start()

    def freeze(self, at: int) -> None:
        """For longer than a permit lasts."""
        self.history.write("frozen", process=self.running[at].pid)
        self.running[at].send(signal.SIGSTOP)
        threading.Event().wait(1.3 * TTL)
        self.running[at].send(signal.SIGCONT)
        self.history.write("thawed", process=self.running[at].pid)

    def close(self) -> None:
        """End them."""
        for daemon in self.running:
            daemon.close()
        self.history.close()

    def _start(self) -> DaemonProcess:
        return DaemonProcess(["tests.chaos.limited_app:app"], self._environment, self._folder / "log")


@pytest.fixture
def daemons(server: Server, queue_name: str, tmp_path: Path) -> Iterator[Daemons]:
    """Started, of a queue that allows two visits."""
    started = Daemons(server.url, queue_name, tmp_path)
    yield started
    started.close()


@pytest.fixture
def worker(server: Server, queue_name: str) -> Iterator[type[Worker]]:
    """That of the queue, in this process; only to push."""
    with closing_app(Lowkiq(Config(redis_url=server.url))) as app:
        yield declare(app, queue_name, print, shards_count=SHARDS)


def await_more(history: Recorder) -> None:
    """Wait until some runs more have been noted."""
    goal = len(history.read()) + 50
    eventually(lambda: len(history.read()) >= goal, timeout=60.0, what="more runs")


def test_x30_never_more_handlers_than_allowed_whatever_happens_to_daemons(
    daemons: Daemons, worker: type[Worker]
) -> None:
    """X-30: kills and stops let no third handler in, keep none out for longer than a lease, and lose no job."""
    app, chance, history = worker.app, random.Random(5), daemons.history
    assert isinstance(app, Lowkiq)
    ids = [str(number) for number in range(JOBS)]
    for job_id in ids:
        history.write("push-begin", job_id, [1])
    worker.push_many([{"id": job_id, "payload": 1} for job_id in ids])
    for job_id in ids:
        history.write("push-end", job_id, [1], outcome="ok")
    await_more(history)
    for harm in (daemons.kill, daemons.kill, daemons.freeze, daemons.kill):
        harm(chance.randrange(3))
        await_more(history)
    eventually(lambda: not left_behind(app, worker), timeout=120.0, what="the end of all jobs")
    eventually(lambda: not visits_running(app.core.backend, worker.queue_name, 0.0).running, what="free permits")
    verdict = check(history.read(), Terms(running=2))

    assert [] == verdict.words
    assert 2 == verdict.holders

"""Bursts beside a daemon that is killed again and again, judged by what handlers noted."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lowkiq_lambda import Config, Lowkiq, Worker
from tests.kit.apps import closing_app
from tests.kit.daemons import DaemonProcess
from tests.kit.looks import left_behind
from tests.kit.servers import Server
from tests.kit.waiting import eventually
from tests.kit.workers import declare
from tests.proof.history import Recorder, check

AFTER = 1.0
SHARDS = 6
IDS = [f"id-{n}" for n in range(40)]
KILLS = 3


class DaemonWithBursts:
    """A daemon that is killed, a program that bursts, and a pusher that notes what it pushes."""

    def __init__(self, url: str, queue_name: str, folder: Path) -> None:
        self.history = Recorder(folder / "history")
        self._log = folder / "log"
        self._environment = {
            "LOWKIQ_REDIS_URL": url,
            "LOWKIQ_LEASE_TTL": "1",
            "LOWKIQ_POLL_INTERVAL": "0.2",
            "LOWKIQ_BURST_AFTER": str(AFTER),
            "LOWKIQ_THREADS_PER_NODE": "3",
            "BURST_QUEUE": queue_name,
            "BURST_SHARDS": str(SHARDS),
            "BURST_HISTORY": str(folder / "history"),
        }
        self.bursts = DaemonProcess([], self._environment, self._log, program="tests.chaos.burst_app")
        self.daemon = self.start()
        self._number = 0

    def start(self) -> DaemonProcess:
        """Start a daemon."""
        self.daemon = DaemonProcess(["tests.chaos.burst_app:app"], self._environment, self._log)
        return self.daemon

    def kill(self) -> None:
        """As a machine does that is lost."""
        self.history.write("fault", process=self.daemon.pid)
        self.daemon.close()
        self.history.write("died", process=self.daemon.pid)

    def push(self, worker: type[Worker]) -> None:
        """The next payload of each id."""
        self._number += 1
        for job_id in IDS:
            self.history.write("push-begin", job_id, [self._number])
        worker.push_many([{"id": job_id, "payload": self._number, "score": self._number} for job_id in IDS])
        for job_id in IDS:
            self.history.write("push-end", job_id, [self._number], outcome="ok")

    def runs_of(self, process: DaemonProcess) -> int:
        """How many runs of it have begun."""
        return sum(event.what == "begin" and event.process == process.pid for event in self.history.read())

    def push_until_runs_of(self, process: DaemonProcess, worker: type[Worker]) -> None:
        """Push, and wait until the process has begun another run."""
        before = self.runs_of(process)
        self.push(worker)
        eventually(lambda: self.runs_of(process) > before, timeout=60.0, what="another run")

    def await_daemon(self, app: Lowkiq) -> None:
        """Wait until the daemon tells that it lives."""
        pid = self.daemon.pid
        eventually(lambda: any(one.pid == pid for one in app.operate.processes()), timeout=60.0, what="a heartbeat")

    def close(self) -> None:
        """End both."""
        self.daemon.close()
        self.bursts.close()
        self.history.close()


@pytest.fixture
def both(server: Server, queue_name: str, tmp_path: Path) -> Iterator[DaemonWithBursts]:
    """Started."""
    started = DaemonWithBursts(server.url, queue_name, tmp_path)
    yield started
    started.close()


@pytest.fixture
def worker(server: Server, queue_name: str) -> Iterator[type[Worker]]:
    """That of the queue, in this process; only to push."""
    with closing_app(Lowkiq(Config(redis_url=server.url))) as app:
        yield declare(app, queue_name, print, shards_count=SHARDS, max_retry_count=1_000)


def test_bursts_take_over_from_dead_daemons_and_disturb_no_order(both: DaemonWithBursts, worker: type[Worker]) -> None:
    """Nothing is lost, no order is broken, and no id has two holders; both the daemon and bursts perform jobs."""
    app = worker.app
    assert isinstance(app, Lowkiq)
    for _ in range(KILLS):
        both.await_daemon(app)
        both.push_until_runs_of(both.daemon, worker)
        both.push(worker)
        both.kill()
        both.push_until_runs_of(both.bursts, worker)
        both.start()
    both.push(worker)
    eventually(lambda: not left_behind(app, worker), timeout=60.0, what="the end of all jobs")
    verdict = check(both.history.read())

    assert [] == verdict.words
    assert (3 * KILLS + 1) * len(IDS) == verdict.payloads

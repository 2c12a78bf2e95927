"""Daemons that share a limited queue, killed and frozen at random, and judged by what their handlers noted."""

import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lowkiq_lambda import Config, Lowkiq, Worker
from lowkiq_lambda.store.shard.admitting import visits_running
from tests.chaos.race.notes import RaceNotes
from tests.kit.apps import closing_app
from tests.kit.daemons import DaemonProcess
from tests.kit.looks import left_behind
from tests.kit.servers import Server
from tests.kit.waiting import eventually
from tests.kit.workers import declare, jobs_of

TTL = 2.0
SHARDS = 12
JOBS = 400


class Daemons:
    """Three daemons; who is killed is replaced at once."""

    def __init__(self, url: str, queue_name: str, folder: Path) -> None:
        self._folder = folder
        self._environment = {
            "LOWKIQ_REDIS_URL": url,
            "LOWKIQ_LEASE_TTL": str(TTL),
            "LIMITED_QUEUE": queue_name,
            "LIMITED_NOTES": str(folder / "notes"),
            "LIMITED_RUNNING": "2",
            "LIMITED_SHARDS": str(SHARDS),
        }
        self.running = [self._start() for _ in range(3)]

    def kill(self, at: int) -> None:
        """As a machine does that is lost."""
        self.running[at].close()
        self.running[at] = self._start()

    def freeze(self, at: int) -> None:
        """For longer than a permit lasts."""
        self.running[at].send(signal.SIGSTOP)
        threading.Event().wait(1.3 * TTL)
        self.running[at].send(signal.SIGCONT)

    def close(self) -> None:
        """End them."""
        for daemon in self.running:
            daemon.close()

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


def await_more(notes: RaceNotes) -> None:
    """Wait until ten runs more have been noted."""
    goal = len(notes.read()) + 50
    eventually(lambda: len(notes.read()) >= goal, timeout=60.0, what="more runs")


def most_at_once(notes: RaceNotes) -> int:
    """How many runs lasted at the same time at most; each from its first to its last moment."""
    runs: dict[tuple[str, int], list[float]] = {}
    for note in notes.read():
        if note.what == "runs" and not note.stopping:
            runs.setdefault((note.id, note.token), []).append(note.at)
    edges = sorted(edge for times in runs.values() for edge in ((times[0], 1), (times[-1], -1)))
    most = running = 0
    for _, change in edges:
        running += change
        most = max(most, running)
    return most


def test_x30_never_more_handlers_than_allowed_whatever_happens_to_daemons(
    daemons: Daemons, worker: type[Worker], tmp_path: Path
) -> None:
    """X-30: kills and stops let no third handler in, keep none out for longer than a lease, and lose no job."""
    app, chance, notes = worker.app, random.Random(5), RaceNotes(tmp_path / "notes")
    assert isinstance(app, Lowkiq)
    worker.push_many(jobs_of([str(number) for number in range(JOBS)]))
    await_more(notes)
    for harm in (daemons.kill, daemons.kill, daemons.freeze, daemons.kill):
        harm(chance.randrange(3))
        await_more(notes)
    eventually(lambda: not left_behind(app, worker), timeout=120.0, what="the end of all jobs")
    eventually(lambda: not visits_running(app.core.backend, worker.queue_name, 0.0).running, what="free permits")

    assert {str(number) for number in range(JOBS)} <= {note.id for note in notes.read() if note.what == "done"}
    assert 2 == most_at_once(notes)
    notes.close()

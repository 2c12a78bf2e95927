"""The history of a real repository, replayed by two daemons that are killed again and again."""

import gzip
import itertools
import random
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.store.keys import ShardRef
from tests.chaos.replay_app import FOLDER_VARIABLE, QUEUE_VARIABLE, SHARDS, applied_to, replay_worker
from tests.chaos.support import closing, is_in_order
from tests.local.daemons import DaemonProcess
from tests.properties.observed import stored
from tests.servers import Server
from tests.waiting import eventually

DATA = Path(__file__).parents[1] / "data"
CHUNK = 100
BACKLOG = 700
"""Ids that may wait: pushes go on as long as the daemons do."""
LEASE_TTL = 1.5
FEWEST_KILLS = 8


class Replay:
    """A queue, the process that pushes to it, and two daemons that drain it."""

    def __init__(self, server: Server, queue_name: str, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.records = folder / "records"
        self.records.mkdir()
        self.app = Lowkiq(Config(redis_url=server.url))
        self.worker = replay_worker(self.app, queue_name, self.records)
        self.shards = [ShardRef(queue_name, SHARDS, index) for index in range(SHARDS)]
        self.environment = {
            "LOWKIQ_REDIS_URL": server.url,
            "LOWKIQ_LEASE_TTL": str(LEASE_TTL),
            "LOWKIQ_THREADS_PER_NODE": "3",
            QUEUE_VARIABLE: queue_name,
            FOLDER_VARIABLE: str(self.records),
        }
        self.daemons = [self.new_daemon(), self.new_daemon()]
        self.pushing = threading.Thread(target=self.push_all)
        self.finished = threading.Event()

    def new_daemon(self) -> DaemonProcess:
        """One more."""
        return DaemonProcess(["tests.chaos.replay_app:app"], self.environment, self.folder / "log")

    def kill_one(self, which: int) -> None:
        """SIGKILL for one of the two, and another in its place."""
        self.daemons[which].close()
        self.daemons[which] = self.new_daemon()

    def push_all(self) -> None:
        """The whole history, in its order, no faster than it is worked off."""
        jobs = history()
        for at in range(0, len(jobs), CHUNK):
            eventually(lambda: self.waiting() < BACKLOG, timeout=60.0)
            self.worker.perform_async(jobs[at : at + CHUNK])
        eventually(self.is_done, timeout=60.0)
        self.finished.set()

    def waiting(self) -> int:
        """Ids that wait."""
        return self.app.stats()["total"]["length"]

    def is_done(self) -> bool:
        """Whether nothing waits or is in flight."""
        keys = [shard.key(name) for shard in self.shards for name in ("due", "flight")]
        return not self.server.admin.exists(*keys)

    def close(self) -> None:
        """End what is left."""
        for daemon in self.daemons:
            daemon.close()
        self.pushing.join()


@pytest.fixture
def replay(server: Server, queue_name: str, tmp_path: Path) -> Iterator[Replay]:
    """Two daemons that wait for work."""
    made = Replay(server, queue_name, tmp_path)
    with closing(made.app):
        yield made
        made.close()


def history() -> list[dict[str, Any]]:
    """Each change of each file as a job, oldest first."""
    numbers: Counter[str] = Counter()
    jobs = []
    with gzip.open(DATA / "file-history.jsonl.gz") as lines:
        for line in lines:
            change = msgspec.json.decode(line)
            path = change["path"]
            numbers[path] += 1
            payload = {"number": numbers[path], "seq": change["seq"], "blob": change["blob"]}
            jobs.append({"id": path, "payload": payload, "score": change["seq"]})
    return jobs


def test_p1_p2_p3_two_daemons_killed_again_and_again_replay_a_history(replay: Replay) -> None:
    """What is left is exactly what git says; no file was in two hands at once, no order reversed, nothing is buried."""
    rng, kills = random.Random(1), itertools.count()
    replay.pushing.start()
    while not replay.finished.wait(rng.uniform(0.5, 1.5)):
        replay.kill_one(next(kills) % 2)
    assert next(kills) >= FEWEST_KILLS

    final: dict[str, str] = {}
    for path, count in Counter(job["id"] for job in history()).items():
        applied = applied_to(replay.records, path)
        assert all(one.alone for one in applied), path
        numbers = [one.change.number for one in applied]
        assert is_in_order([[number] for number in numbers]), (path, numbers)
        assert set(range(1, count + 1)) == set(numbers)
        if blob := applied[-1].change.blob:
            final[path] = blob
    assert msgspec.json.decode((DATA / "file-history-final.json").read_bytes()) == final
    states = [stored(replay.server.admin, shard) for shard in replay.shards]
    assert all({} == state["morgue"] == state["trouble"] == state["errors"] for state in states)

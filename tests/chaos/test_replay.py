"""The history of a real repository, replayed by two daemons that are killed again and again."""

import itertools
import random
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lowkiq_lambda import Config, Lowkiq
from tests.chaos.moving.processes import Movers
from tests.kit.apps import closing_app
from tests.kit.daemons import DaemonProcess
from tests.kit.replay.app import HISTORY_VARIABLE, QUEUE_VARIABLE, SHARDS, SHARDS_VARIABLE, replay_worker
from tests.kit.replay.history import final_state, history, push_noted, written_state
from tests.kit.servers import Server
from tests.kit.stored import stored
from tests.kit.waiting import eventually
from tests.proof.history import Recorder, Terms, check

CHUNK = 100
BACKLOG = 700
"""Ids that may wait: pushes go on as long as the daemons do."""
FEWEST_KILLS, MOST_KILLS = 8, 40
"""After the most of them the daemons live: a machine that starts them slowly must come to the end too."""
FEWEST_FREEZES = 3
HALF, QUARTER = 4_000, 2_000
COUNTS = (10, 3, 7)


class Replay:
    """A queue, the process that pushes to it, and two daemons that drain it."""

    def __init__(self, server: Server, queue_name: str, folder: Path, lease_ttl: float, shards: int = SHARDS) -> None:
        self.server = server
        self.folder = folder
        self.history = Recorder(folder / "history")
        self.app = Lowkiq(Config(redis_url=server.url))
        self.worker = replay_worker(self.app, queue_name, self.history, shards)
        self.environment = {
            "LOWKIQ_REDIS_URL": server.url,
            "LOWKIQ_LEASE_TTL": str(lease_ttl),
            "LOWKIQ_THREADS_PER_NODE": "3",
            QUEUE_VARIABLE: queue_name,
            HISTORY_VARIABLE: str(folder / "history"),
            SHARDS_VARIABLE: str(shards),
        }
        self.daemons = [self.new_daemon(), self.new_daemon()]
        self.finished = threading.Event()
        self.disturbances = 0

    def new_daemon(self) -> DaemonProcess:
        """One more."""
        return DaemonProcess(["tests.kit.replay.app:app"], self.environment, self.folder / "log")

    def kill_one(self, which: int) -> None:
        """SIGKILL for one of the two, and another in its place."""
        pid, died_at = self.daemons[which].pid, time.monotonic()
        self.history.write("fault", process=pid)
        self.daemons[which].close()
        self.history.write("died", process=pid, at=died_at)
        self.daemons[which] = self.new_daemon()
        self.disturbances += 1

    @contextmanager
    def one_frozen(self, which: int) -> Iterator[None]:
        """SIGSTOP for one of the two, while the block lasts."""
        daemon = self.daemons[which]
        self.history.write("frozen", process=daemon.pid)
        daemon.send(signal.SIGSTOP)
        self.disturbances += 1
        yield
        daemon.send(signal.SIGCONT)
        self.history.write("thawed", process=daemon.pid)

    def begin(self, jobs: Sequence[Mapping[str, Any]], fewest_disturbances: int) -> None:
        """Push them in their order, no faster than they are worked off, nor than the daemons are disturbed."""
        self.pushing = threading.Thread(target=self._push_all, args=(jobs, fewest_disturbances))
        self.pushing.start()

    def _push_all(self, jobs: Sequence[Mapping[str, Any]], fewest_disturbances: int) -> None:
        try:
            for at in range(0, len(jobs), CHUNK):
                is_next = partial(self._is_next, fewest_disturbances * at / len(jobs))
                eventually(is_next, timeout=60.0)
                push_noted(self.worker, self.history, jobs[at : at + CHUNK])
            eventually(self.is_done, timeout=60.0)
        finally:
            self.finished.set()

    def _is_next(self, disturbances: float) -> bool:
        return self.disturbances >= disturbances and self.app.operate.stats()["total"]["length"] < BACKLOG

    def is_done(self) -> bool:
        """Whether nothing waits or is in flight."""
        if self.app.operate.stats()["total"]["length"]:
            return False
        shards = self.app.core.queues.agreed(self.worker).shards
        keys = [shard.key(name) for shard in shards for name in ("due", "flight")]
        return not self.server.admin.exists(*keys)

    def check(self) -> None:
        """The history is sound, nothing failed, and nothing died."""
        assert [] == check(self.history.read(), Terms(looked=True, acknowledged=True)).words
        for state in (stored(self.server.admin, shard) for shard in self.app.core.queues.agreed(self.worker).shards):
            assert {} == state["morgue"] == state["trouble"] == state["errors"]
            assert 0 == state["counters"]["retried"]

    def close(self) -> None:
        """End what is left."""
        for daemon in self.daemons:
            daemon.close()
        self.pushing.join()
        self.history.close()


@pytest.fixture
def replay(server: Server, queue_name: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Replay]:
    """Two daemons that wait for work, with leases of so many seconds."""
    made = Replay(server, queue_name, tmp_path, *request.param)
    with closing_app(made.app):
        yield made
        made.close()


@pytest.mark.nightly("the history is replayed while its queue moves in each check")
@pytest.mark.parametrize("replay", [(1.5,)], indirect=True)
def test_p1_p2_p3_two_daemons_killed_again_and_again_replay_a_history(replay: Replay) -> None:
    """What is left is exactly what git says; no file was in two hands at once, no order reversed, nothing is dead."""
    jobs, rng, kills = history(), random.Random(1), itertools.count()
    replay.begin(jobs, FEWEST_KILLS)
    while not replay.finished.wait(rng.uniform(0.5, 1.5)):
        if replay.disturbances < MOST_KILLS:
            replay.kill_one(next(kills) % 2)
    assert replay.disturbances >= FEWEST_KILLS

    replay.check()
    assert final_state() == written_state(replay.history.read())


@pytest.mark.parametrize("replay", [(1.5, 5)], indirect=True)
def test_e93_e94_a_history_is_replayed_while_its_queue_moves(replay: Replay, tmp_path: Path) -> None:
    """E-93, E-94: from 5 to 10 to 3 to 7 shards, each mover killed once; no file in two hands, no order reversed."""
    jobs, rng, kills = history()[:QUARTER], random.Random(1), itertools.count()
    movers = Movers(replay.worker.queue_name, replay.environment, tmp_path, rng, "tests.kit.replay.app:app")
    # A part is pushed after each kill, the last one when the queue has moved.
    replay.begin(jobs, len(COUNTS) + 1)
    for count in COUNTS:
        movers.kill_one("--to", str(count), when=lambda: True)
        replay.kill_one(next(kills) % 2)
        movers.run("--to", str(count))
    replay.kill_one(next(kills) % 2)
    replay.finished.wait()

    replay.check()
    assert COUNTS[-1] == len(replay.app.core.queues.agreed(replay.worker).shards)


@pytest.mark.parametrize("replay", [(0.5,)], indirect=True)
def test_p4_two_daemons_frozen_again_and_again_are_fenced_off_by_their_tokens(replay: Replay) -> None:
    """Who oversleeps its lease writes late; a database that compares tokens sees all in order nevertheless."""
    jobs, rng, freezes = history()[:HALF], random.Random(1), itertools.count()
    replay.begin(jobs, FEWEST_FREEZES)
    while not replay.finished.wait(rng.uniform(0.1, 0.5)):
        with replay.one_frozen(next(freezes) % 2):
            replay.finished.wait(rng.uniform(0.5, 2.0))
    assert replay.disturbances >= FEWEST_FREEZES

    replay.check()

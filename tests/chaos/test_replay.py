"""The history of a repository, replayed by daemons that are killed again and again while it is being pushed."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from lowkiq_lambda import Config, Lowkiq, Worker
from lowkiq_lambda.views import QueueMetrics
from tests.chaos.replay import SHARDS, Change, Delivery, deliveries_of, notes_of, read_final, read_history
from tests.local.daemons import ROOT, DaemonProcess, clean_environment
from tests.servers import MakeServer
from tests.waiting import eventually

KILLS = range(5, 31)
"""Fewer say little; after the most of them the daemons live, so that a slow machine comes to the end too."""
TIMEOUT = 60.0


class Replaying:
    """The queue, its two daemons, and the process that pushes to it."""

    def __init__(self, url: str, queue_name: str, folder: Path) -> None:
        self._folder = folder
        self.notes = folder / "notes"
        self.notes.mkdir()
        self._environment = {
            "REPLAY_FOLDER": str(self.notes),
            "REPLAY_QUEUE": queue_name,
            "LOWKIQ_REDIS_URL": url,
            "LOWKIQ_LEASE_TTL": "1",
            "LOWKIQ_POLL_INTERVAL": "0.5",
            "LOWKIQ_THREADS_PER_NODE": "3",
        }
        # Only to look at the queue.
        self.app = Lowkiq(Config(redis_url=url))
        fields = {"queue_name": queue_name, "shards_count": SHARDS, "perform": lambda _self, _batch: None}
        self._worker: type[Worker] = self.app.worker(type("Replay", (Worker,), fields))
        self._daemons = [self._start(number) for number in range(2)]

    def kill(self, number: int) -> None:
        """SIGKILL for a daemon, which is started anew at once."""
        self._daemons[number].close()
        self._daemons[number] = self._start(number)

    def numbers(self) -> QueueMetrics:
        """The queue's."""
        return self.app.metrics()[self._worker.queue_name]

    def is_over(self) -> bool:
        """Whether nothing waits and nothing is in flight."""
        numbers = self.numbers()
        return numbers.length == numbers.busy == 0

    @contextmanager
    def pushing(self) -> Iterator["subprocess.Popen[bytes]"]:
        """A process that pushes the history while the block runs."""
        arguments = [sys.executable, "-m", "tests.chaos.replay_app"]
        environment = {**clean_environment(), **self._environment}
        with subprocess.Popen(arguments, cwd=ROOT, env=environment) as process:
            try:
                yield process
            finally:
                process.kill()

    def close(self) -> None:
        """End what is left."""
        for daemon in self._daemons:
            daemon.close()
        self.app.backend.client.close()

    def _start(self, number: int) -> DaemonProcess:
        log = self._folder / f"daemon-{number}.log"
        return DaemonProcess(["tests.chaos.replay_app:app", "--log-level", "error"], self._environment, log)


@pytest.mark.timeout(240)
def test_the_replay_ends_in_the_right_state_whatever_is_killed(
    make_server: MakeServer, queue_name: str, tmp_path: Path
) -> None:
    """P1 to P4: daemons are killed again and again while pushes go on; nothing is lost, reversed or in two hands."""
    server = make_server(appendonly=True, appendfsync="everysec")
    replaying = Replaying(server.url, queue_name, tmp_path)
    try:
        kills = kill_while_pushing(replaying, Random(20_120_117))
        eventually(replaying.is_over, timeout=TIMEOUT)
        numbers = replaying.numbers()
    finally:
        replaying.close()

    changes = by_path(read_history())
    notes = {path: notes_of(replaying.notes, path) for path in changes}
    assert [] == [path for path, lines in notes.items() if any(line.event == "overlap" for line in lines)]
    # The last change that was applied is the one that stays.
    contents = {path: line.blob for path, lines in notes.items() for line in lines if line.event == "apply"}
    assert read_final() == {path: blob for path, blob in contents.items() if blob is not None}
    assert 0 == numbers.morgue_length == numbers.dead
    figures = Counter[str](kills=kills, files=len(notes), changes=sum(map(len, changes.values())))
    for path, lines in notes.items():
        deliveries = deliveries_of(lines)
        check_order(path, [change.seq for change in changes[path]], deliveries)
        figures += figures_of(deliveries)
    print("\nreplay:", dict(figures))  # noqa: T201 - for pytest -s
    assert figures["kills"] in KILLS
    assert 0 < figures["killed"] <= figures["repeats"]


def kill_while_pushing(replaying: Replaying, rng: Random) -> int:
    """Push everything, and kill one daemon or the other every second or two; how many were killed."""
    kills = 0
    with replaying.pushing() as pusher:
        while kills < KILLS.stop - 1:
            try:
                pusher.wait(rng.uniform(0.5, 2.0))
            except subprocess.TimeoutExpired:
                replaying.kill(rng.randrange(2))
                kills += 1
            else:
                break
        assert 0 == pusher.wait(TIMEOUT)
    return kills


def by_path(history: Sequence[Change]) -> dict[str, list[Change]]:
    """The changes of each file, oldest first."""
    found: dict[str, list[Change]] = {}
    for change in history:
        found.setdefault(change.path, []).append(change)
    return found


def check_order(path: str, seqs: list[int], deliveries: Sequence[Delivery]) -> None:
    """Each delivery has the oldest changes that are not settled, without a gap, and the last one comes to the end.

    One that did not come to its end was not settled, so the next begins where it began. One that did may have died
    with its process before it was settled: the next begins there too, or right behind it.
    """
    may_begin, token = {0}, 0
    for delivery in deliveries:
        given, begin = delivery.given, seqs.index(delivery.given.seq)
        end = begin + given.count
        assert begin in may_begin, (path, deliveries)
        assert (given.seq, given.last) == (seqs[begin], seqs[end - 1]), (path, given)
        assert seqs[begin : begin + len(delivery.applied)] == delivery.applied, (path, delivery)
        assert "end" != delivery.ended or given.count == len(delivery.applied)
        assert token <= given.token
        token = given.token
        may_begin = {begin, end} if delivery.ended == "end" else {begin}
    assert len(seqs) in may_begin, (path, deliveries[-1:])


def figures_of(deliveries: Sequence[Delivery]) -> Counter[str]:
    """Deliveries of a file: how many, how many were killed or failed, and how many repeated one before."""
    begins = [delivery.given.seq for delivery in deliveries]
    repeats = sum(one == other for one, other in pairwise(begins))
    ended = Counter[str](delivery.ended for delivery in deliveries)
    return Counter(deliveries=len(deliveries), killed=ended["killed"], failed=ended["fail"], repeats=repeats)

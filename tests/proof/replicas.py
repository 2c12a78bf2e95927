"""`python -m tests.proof.replicas` kills a primary again and again, and counts what each of two apps has lost.

Both push to the same servers at the same moments: one as by default, and one with `wait_replicas=1`. Before half of
the kills the replica stands still, and gets more than the system keeps for it on the way, so it lacks the last writes.
A checker of its own compares the pushes that have returned with what the servers hold.
"""

import argparse
import logging
import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count, islice
from typing import Any, Final
from uuid import uuid4

import redis
from redis.crc import key_slot

from lowkiq_lambda import Batch, Config, Lowkiq, LowkiqError, Worker
from lowkiq_lambda.store.shard.keys import ShardRef
from tests.kit.apps import closing_app
from tests.kit.servers import ReplicatedCluster, SentinelSetup, Server
from tests.kit.waiting import eventually

FAILOVERS: Final = 20
_BALLAST: Final = b"x" * 1024 * 1024
_MEGABYTES: Final = 16
"""More than the system keeps between two processes."""
_REPLICATED: Final = 16_384 // 3
"""Slots before this one are on the node of a cluster that has a replica."""
_TIMEOUT: Final = 120.0

Setup = SentinelSetup | ReplicatedCluster


class Subject:
    """An app that pushes jobs, half of which it drains; it notes which pushes have returned."""

    def __init__(self, setup: Setup, wait_replicas: int) -> None:
        self.wait_replicas = wait_replicas
        self.returned: dict[str, set[str]] = {}
        self.refused = 0
        self.runs: list[str] = []
        self._setup = setup
        self._config = Config(redis_url=setup.url, redis_timeout=1.0, lease_ttl=2.0, wait_replicas=wait_replicas)
        self._queues = [*islice(replicated_names(), 2)]

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """It pushes and drains until the block ends; then it drains the rest."""
        stop = threading.Event()
        with closing_app(Lowkiq(self._config)) as storing, closing_app(Lowkiq(self._config)) as draining:
            stored, drained = (
                self._worker(app, name) for app, name in zip((storing, draining), self._queues, strict=True)
            )
            threads = [
                threading.Thread(target=self._push, args=(stored, stop)),
                threading.Thread(target=self._push, args=(drained, stop)),
                threading.Thread(target=self._drain, args=(draining, stop)),
            ]
            for thread in threads:
                thread.start()
            try:
                yield
            finally:
                stop.set()
                for thread in threads:
                    thread.join()
            eventually(lambda: _is_empty(draining), timeout=_TIMEOUT, what="the end of all jobs")

    def lost(self) -> int:
        """Pushes that have returned, and are neither stored nor were they performed."""
        stored, drained = self._queues
        kept = {job_id.decode() for job_id in self._read(_shard(stored).key("jobs"))}
        return len(self.returned.get(stored, set()) - kept) + len(self.returned.get(drained, set()) - {*self.runs})

    def await_more(self) -> None:
        """Pushes return again."""
        goal = self.accepted + 100
        eventually(lambda: self.accepted > goal, timeout=_TIMEOUT, what="pushes that return")

    @property
    def accepted(self) -> int:
        """How many pushes have returned."""
        return sum(map(len, [*self.returned.values()]))

    def _read(self, key: str) -> list[bytes]:
        client = self._setup.client if isinstance(self._setup, ReplicatedCluster) else self._setup.primary.admin
        found: list[Any] = client.hkeys(key)
        return found

    def _worker(self, app: Lowkiq, name: str) -> type[Worker]:
        runs = self.runs

        class Noting(Worker):
            queue_name = name
            shards_count = 1
            batch_size = 10

            def perform(self, batch: Batch) -> None:
                runs.extend(batch)

        return app.worker(Noting)

    def _push(self, worker: type[Worker], stop: threading.Event) -> None:
        number, returned = 0, self.returned.setdefault(worker.queue_name, set())
        while not stop.wait(0.002):
            number += 1
            try:
                worker.push_many([{"id": f"id{number}"}])
                returned.add(f"id{number}")
            except LowkiqError:
                self.refused += 1

    def _drain(self, app: Lowkiq, stop: threading.Event) -> None:
        while not stop.wait(0.01):
            with suppress(LowkiqError):
                app.drain(seconds=1.0)


def replicated_names() -> Iterator[str]:
    """Names of queues whose only shard lies on the node of a cluster that has a replica."""
    names = (f"queue-{uuid4().hex}" for _ in count())
    return (name for name in names if key_slot(_shard(name).keys[0].encode()) < _REPLICATED)


def _shard(queue_name: str) -> ShardRef:
    return ShardRef(queue_name, 1, 0)


def lag(primary: Server, replica: Server) -> None:
    """Let the replica stand still, and write more than the system keeps for it: it lacks all that comes from now on."""
    replica.freeze()
    client = redis.Redis(host=primary.host, port=primary.port, socket_timeout=30, protocol=2)
    with client:
        for number in range(_MEGABYTES):
            # Its name is in the slots of the primary of a cluster.
            client.execute_command("SET", f"ballast-{number}-{{06S}}", _BALLAST, "PX", 60_000)


def fail_over(setup: Setup) -> Server:
    """Kill the primary; returns the replica when it serves, which may stand still until then."""
    primary, (replica,) = setup.primary, setup.replicas
    primary.kill()
    replica.thaw()
    return setup.await_other_than(primary)


class Proof:
    """Apps without and with a wait, through so many failovers, every other one of a replica that lags.

    It `broke_off` if one came by itself, as on a machine that stood still: a Sentinel may then promote the server that
    was killed last, before it has caught up, and no wait helps.
    """

    def __init__(self, setup: Setup, failovers: int, seed: int) -> None:
        self.failovers = 0
        self.broke_off = False
        self.careless, self.careful = Subject(setup, 0), Subject(setup, 1)
        with self.careless.at_work(), self.careful.at_work():
            self._fail_over(setup, failovers, random.Random(seed))

    def _fail_over(self, setup: Setup, failovers: int, rng: random.Random) -> None:
        while self.failovers < failovers and not self.broke_off:
            self.careless.await_more()
            self.careful.await_more()
            if self.failovers % 2:
                lag(setup.primary, *setup.replicas)
            threading.Event().wait(rng.uniform(0.0, 0.4))
            promoted = fail_over(setup)
            setup.heal()
            self.failovers += 1
            self.broke_off = setup.primary is not promoted


def setup_of(kind: type[Setup]) -> Setup:
    """One in which a primary is given up only after seconds."""
    return SentinelSetup(down_after=3.0) if kind is SentinelSetup else ReplicatedCluster()


def main() -> int:
    """Print a table; 1 if a push was lost that had waited."""
    parser = argparse.ArgumentParser("python -m tests.proof.replicas", description=__doc__)
    parser.add_argument("--failovers", type=int, default=FAILOVERS, help=f"of each setup ({FAILOVERS})")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    options = parser.parse_args()
    logging.getLogger("lowkiq_lambda").setLevel(logging.ERROR)
    is_broken = False
    lines = ["| setup | wait_replicas | failovers | pushes returned | refused | lost | runs again | broke off |"]
    for kind in (SentinelSetup, ReplicatedCluster):
        with setup_of(kind) as setup:
            proof = Proof(setup, options.failovers, options.seed)
            for one in (proof.careless, proof.careful):
                again = len(one.runs) - len({*one.runs})
                words = (one.accepted, one.refused, one.lost(), again, proof.broke_off)
                cells = (kind.__name__, one.wait_replicas, proof.failovers, *words)
                lines.append(f"| {' | '.join(map(str, cells))} |")
            is_broken |= proof.careful.lost() > 0 and not proof.broke_off
    sys.stdout.write("\n".join([f"seed {options.seed}", *lines, ""]))
    return int(is_broken)


def _is_empty(app: Lowkiq) -> bool:
    with suppress(LowkiqError):
        app.drain(seconds=2.0)
        return app.operate.stats()["total"]["length"] == 0
    return False


if __name__ == "__main__":
    sys.exit(main())

"""A race from its start to its judgement.

`python -m tests.chaos.race.course --processes 20 --seconds 120` is a long one.
"""

import argparse
import math
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from lowkiq_lambda.store.shard.keys import ShardRef
from tests.chaos.race import actors
from tests.chaos.race.actors import SHARDS, Track
from tests.chaos.race.mutants import CHANGES
from tests.kit.apps import close_app
from tests.kit.servers import Server
from tests.kit.waiting import eventually
from tests.proof.history import Recorder, Terms, Verdict, check

KINDS: Final = ("threads", "coroutines", "items")
PATIENCE: Final = 30.0
"""Seconds for which it goes on until each kind of harm has happened."""
BACKLOG: Final = 150
"""Ids that may wait."""
_processes: Final = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload([actors.__name__])


class Race:
    """A context manager, at whose end no process is left."""

    def __init__(self, track: Track, server: Server, processes: int, seed: int) -> None:
        self._track = track
        self._server = server
        self._rng = random.Random(seed)
        self._history = Recorder(track.path)
        self._app = msgspec.structs.replace(track, mutant="").app()
        self._worker = self._app.workers[0]
        self._shards = [ShardRef(track.queue_name, SHARDS, index) for index in range(SHARDS)]
        self._pushed: dict[str, int] = {}
        self._pause = threading.Event()
        self._app.core.queues.agreed(self._worker)
        self._drains = [self._start() for _ in range(processes)]
        self._harms: list[str] = []
        self.harm = dict.fromkeys(self._all_harms(), 0)
        """How often each has happened, by its name."""

    def run(self, seconds: float) -> None:
        """Push, and disturb who drains, for so long, and until each kind of harm has happened."""
        began_at, disturbs_at, harms = time.monotonic(), 0.0, self._all_harms()
        while time.monotonic() < began_at + seconds + (PATIENCE if self.missing else 0.0):
            self._push()
            self._pause.wait(0.01)
            if time.monotonic() >= disturbs_at:
                # One after the other, in any order; a death comes twice.
                self._harms = self._harms or self._rng.sample(["kill", *harms], len(harms) + 1)
                name = self._harms.pop()
                harms[name]()
                self.harm[name] += 1
                disturbs_at = time.monotonic() + self._rng.uniform(0.1, 0.6)

    def finish(self, timeout: float) -> Verdict:
        """Wait until all is worked off, and judge it."""
        keys = [shard.key(name) for shard in self._shards for name in ("due", "flight")]
        queue = self._app.operate(self._worker)

        def is_worked_off() -> bool:
            queue.morgue.requeue(everything=True)
            return not self._server.admin.exists(*keys)

        eventually(is_worked_off, timeout=timeout, what="the end of all jobs")
        # What was settled last is noted by those who go on to look for more.
        self._pause.wait(0.2)
        return self.judge(ended=True)

    def judge(self, *, ended: bool = False) -> Verdict:
        """What the history shows until now. What is done, and not acknowledged, comes again only after some harm.

        At the end nothing lies in the morgue: all of it was put back.
        """
        return check(self._history.read(), Terms(ended=ended, looked=ended, settling=math.inf))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._drains:
            process.kill()
            process.join()
        self._history.close()
        close_app(self._app)

    def _start(self) -> ForkServerProcess:
        process = _processes.Process(target=actors.drain, args=(self._track,), daemon=True)
        process.start()
        return process

    def _push(self) -> None:
        if sum(self._server.admin.hlen(shard.key("jobs")) for shard in self._shards) > BACKLOG:
            return
        jobs: list[dict[str, Any]] = []
        numbers: dict[str, list[int]] = {}
        for _ in range(self._rng.randint(1, 30)):
            # A few ids are hot: most pushes meet them in flight.
            job_id = f"id{int(self._rng.expovariate(0.05))}"
            # One, as many as its record takes, or so many that they go to the box.
            for _ in range(self._rng.choice([1, 1, 1, 1, 2, 3, 8, 20])):
                number = self._pushed[job_id] = self._pushed.get(job_id, 0) + 1
                jobs.append({"id": job_id, "payload": number, "score": number})
                numbers.setdefault(job_id, []).append(number)
        for job_id, given in numbers.items():
            self._history.write("push-begin", job_id, given)
        self._app.push_many(self._worker, jobs)
        for job_id, given in numbers.items():
            self._history.write("push-end", job_id, given, outcome="ok")

    @property
    def missing(self) -> list[str]:
        """The kinds of harm that have never happened: of these a race proves nothing."""
        return [name for name, count in self.harm.items() if not count]

    def _all_harms(self) -> dict[str, Callable[[], None]]:
        return {"kill": self._kill, "leave": self._leave, "evict": self._evict, "hold": self._hold}

    def _kill(self) -> None:
        self._end(signal.SIGKILL)

    def _leave(self) -> None:
        """As a daemon does whose time to stop is over: what it has in flight is abandoned."""
        self._end(signal.SIGUSR1)

    def _end(self, number: signal.Signals) -> None:
        at = self._rng.randrange(len(self._drains))
        pid = self._drains[at].pid or 0
        self._history.write("fault", process=pid)
        os.kill(pid, number)
        # Others may take its shards before this has heard of its end.
        died_at = time.monotonic()
        self._drains[at].join(10.0)
        self._history.write("died", process=pid, at=died_at)
        self._drains[at] = self._start()

    def _evict(self) -> None:
        shard = self._rng.choice(self._shards)
        token: Any = self._server.admin.hget(shard.key("meta"), "token")
        self._history.write("evicted", scope=str(shard.index), token=int(token or 0))
        self._app.operate(self._worker).in_flight.evict_holder(shard, int(token or 0))

    def _hold(self) -> None:
        queue = self._app.operate(self._worker)
        queue.pause(60.0)
        self._pause.wait(0.1)
        queue.resume()


def main(arguments: list[str] | None = None) -> None:
    """Run one, and tell what was found."""
    parser = argparse.ArgumentParser("python -m tests.chaos.race.course", description=__doc__)
    parser.add_argument("--kind", choices=KINDS, default=KINDS[0])
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--ttl", type=float, default=2.0)
    parser.add_argument("--mutant", choices=["", *CHANGES], default="")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, Server() as server:
        track = Track(server.url, "race", Path(folder) / "notes", options.kind, options.ttl, options.mutant)
        with Race(track, server, options.processes, options.seed) as race:
            race.run(options.seconds)
            verdict = race.finish(timeout=300.0)
        found = verdict.words
        told = f"{options}: {verdict.runs} runs, at most {verdict.most} at once, {race.harm}, {len(found)} found"
        sys.stdout.write("\n".join([told, *found[:20]]) + "\n")


if __name__ == "__main__":
    main()

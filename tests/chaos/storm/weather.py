"""Makes a storm: starts the processes, and does to them and to their server what a bad day does."""

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from multiprocessing.context import ForkServerProcess
from threading import Event
from types import TracebackType
from typing import Any, Final, Self

from lowkiq_lambda.store.shard.keys import ShardRef
from tests.chaos.storm import actors
from tests.chaos.storm.actors import BAD, RETRIES, Scene
from tests.chaos.storm.mutants import scripts_of
from tests.kit.servers import FaultProxy, Server
from tests.kit.waiting import eventually
from tests.proof.history import Recorder, Terms, check

DRAINS: Final = 3
SETTLING: Final = 5
"""Leases within which a failure is durable, if no harm is done: on a busy machine one may not be enough."""
_processes: Final = multiprocessing.get_context("forkserver")
# A process costs a fork then, and no import.
_processes.set_forkserver_preload([actors.__name__])


class Storm:
    """Rages until it is told to stop; a context manager, at whose end no process is left."""

    def __init__(self, scene: Scene, server: Server, proxy: FaultProxy, seed: int) -> None:
        self._scene = scene
        self._server = server
        self._proxy = proxy
        self._rng = random.Random(seed)
        self._history = Recorder(scene.history)
        self._started = 0
        self._drains = [self._start(actors.drain) for _ in range(DRAINS)]
        self._pusher = self._start(actors.push)
        self._shards = [ShardRef(scene.queue_name, 2, index) for index in range(2)]
        self._pause = Event()
        self._frozen, self._thaws_at = 0, 0.0
        self.faults = 0

    def rage(self, seconds: float) -> list[str]:
        """Do harm for so long, or until something is found; what was found."""
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            self._rng.choice(self._harms())()
            self.faults += 1
            self._pause.wait(self._rng.uniform(0.02, 0.3))
            if time.monotonic() >= self._thaws_at:
                self._thaw()
            if found := self.found(ended=False):
                return found
        return []

    def calm(self, timeout: float) -> None:
        """Push no more, and return when everything was worked off."""
        self._kill(self._pusher)
        self._thaw()
        self._proxy.heal()
        keys = [shard.key(name) for shard in self._shards for name in ("due", "flight")]
        eventually(lambda: not self._server.admin.exists(*keys), timeout=timeout, what="the end of all jobs")

    def found(self, *, ended: bool) -> list[str]:
        """What the history shows that must not be."""
        terms = Terms(
            ended=ended, settling=SETTLING * self._scene.lease_ttl, acknowledged=True, failing=BAD, retries=RETRIES
        )
        return check(self._history.read(), terms).words

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ExitStack() as stack:
            stack.callback(self._history.close)
            for process in (self._pusher, *self._drains):
                stack.callback(self._kill, process)

    def _harms(self) -> list[Callable[[], None]]:
        return [
            self._kill_a_drain,
            self._kill_a_drain,
            self._freeze_a_drain,
            self._kill_the_pusher,
            self._cut,
            self._lose_a_reply,
            self._lose_a_reply,
            self._evict_leases,
            self._flush_scripts,
        ]

    def _kill_a_drain(self) -> None:
        """At a moment when there is something to lose, if one comes soon."""
        with suppress(AssertionError):
            eventually(self._much_is_in_flight, timeout=0.2)
        at = self._rng.randrange(DRAINS)
        if self._drains[at].pid == self._frozen:
            self._thaw()
        self._kill(self._drains[at])
        self._drains[at] = self._start(actors.drain)

    def _much_is_in_flight(self) -> bool:
        return any(self._server.admin.hlen(shard.key("flight")) > 1 for shard in self._shards)

    def _kill_the_pusher(self) -> None:
        self._kill(self._pusher)
        self._pusher = self._start(actors.push)

    def _freeze_a_drain(self) -> None:
        """For longer than its lease, or for less; one at a time."""
        if self._frozen:
            return
        drain = self._rng.choice(self._drains)
        # A broken engine may have ended it.
        if not drain.is_alive():
            return
        pid = drain.pid or 0
        self._history.write("frozen", process=pid)
        os.kill(pid, signal.SIGSTOP)
        self._frozen, self._thaws_at = pid, time.monotonic() + self._rng.uniform(0.1, 1.3) * self._scene.lease_ttl

    def _thaw(self) -> None:
        if self._frozen:
            os.kill(self._frozen, signal.SIGCONT)
            self._history.write("thawed", process=self._frozen)
            self._frozen = 0

    def _cut(self) -> None:
        self._history.write("fault", process=0)
        self._proxy.cut()

    def _lose_a_reply(self) -> None:
        self._history.write("fault", process=0)
        self._proxy.drop_reply_after(scripts_of(self._scene.mutant)("settle").sha.encode())

    def _evict_leases(self) -> None:
        self._server.admin.delete(*(shard.key("lease") for shard in self._shards))

    def _flush_scripts(self) -> None:
        self._server.admin.script_flush()

    def _start(self, act: Callable[..., Any]) -> ForkServerProcess:
        self._started += 1
        process = _processes.Process(target=act, args=(self._scene, self._started), daemon=True)
        process.start()
        return process

    def _kill(self, process: ForkServerProcess) -> None:
        self._history.write("fault", process=process.pid)
        process.kill()
        # A machine that stands still may let others take its shards before this has heard of its end.
        at = time.monotonic()
        process.join()
        self._history.write("died", process=process.pid, at=at)

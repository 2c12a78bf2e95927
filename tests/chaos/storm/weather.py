"""Makes a storm: starts the processes, and does to them and to their server what a bad day does."""

import math
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Any, Final, Protocol, Self

import msgspec

from lowkiq_lambda import LowkiqError
from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.scripts import Script
from tests.chaos.storm import actors
from tests.chaos.storm.actors import BAD, RETRIES, SHARDS, TURNS, Scene
from tests.chaos.storm.clock import ClockFile, ServerClock
from tests.chaos.storm.disk import FullDisk
from tests.chaos.storm.late import LateCalls
from tests.chaos.storm.mutants import scripts_of
from tests.chaos.storm.versions import OtherProcess
from tests.kit.apps import close_app
from tests.kit.looks import dead_numbers
from tests.kit.servers import FaultProxy, Server
from tests.kit.waiting import eventually
from tests.proof.history import Recorder, Terms, check

DRAINS: Final = 3
PATIENCE: Final = 30.0
"""Seconds for which it goes on until each kind of harm has happened."""
PILE: Final = [*(f"pile-{number}" for number in range(60)), *(f"{BAD}-pile-{number}" for number in range(3))]
"""Some are bad: on a busy machine pushers may die before they have pushed any."""
SETTLING: Final = 5
"""Leases within which a failure is durable, if no harm is done: on a busy machine one may not be enough."""
_processes: Final = multiprocessing.get_context("forkserver")
# A process costs a fork then, and no import.
_processes.set_forkserver_preload([actors.__name__])


class Extras(msgspec.Struct, frozen=True):
    """Harms that not every storm has.

    `disk`: it is full again and again. `clock`: the file by which the server's clock is set, and `setter` the name of
    that. `version`: some processes are of this version, whose package lies in that folder; without one its scripts have
    another text.
    """

    disk: bool = False
    clock: Path | None = None
    setter: str = "set the server's clock"
    version: str = ""
    package: Path | None = None

    @property
    def replacing(self) -> str:
        """The harm that begins each process of another version."""
        return f"start a process of {self.version}"


class Harm(Protocol):
    """One that a storm may have beside its own."""

    @property
    def name(self) -> str:
        """In a few words."""
        ...

    def happen(self) -> bool:
        """Do it; whether it has come to that."""
        ...


class Storm:
    """Rages until it is told to stop; a context manager, at whose end no process is left.

    Each kind of harm comes once before one comes again.
    """

    def __init__(
        self, scene: Scene, server: Server, proxy: FaultProxy, seed: int, extras: Extras | None = None
    ) -> None:
        self._scene = scene
        self._server = server
        self._proxy = proxy
        self._rng = random.Random(seed)
        self._history = Recorder(scene.history)
        # Of this process, which no fault is planted into, and which no proxy disturbs.
        self._app = msgspec.structs.replace(scene, mutant="", url=server.url).app()
        msgspec.structs.replace(scene, mutant="").declare(self._app, seed)
        self._piles = 0
        self._extras = extras or Extras()
        self.harm = Counter({self._extras.replacing: 0} if self._extras.version else {})
        """How often each has happened, by its name."""
        self._shards = [ShardRef(scene.queue_name, SHARDS, index) for index in range(SHARDS)]
        self._pause = Event()
        self._frozen, self._thaws_at = 0, 0.0
        self._harms = self._all_harms(seed)
        self._next: list[str] = []
        self.harm.update(dict.fromkeys(self._harms, 0))
        self._started = 0
        self._drains = [self._start(actors.drain, at) for at in range(DRAINS)]
        self._pusher = self._start(actors.push)
        # By this it learns which features the queue uses.
        self._pile_up()

    def rage(self, seconds: float) -> list[str]:
        """Do harm for so long, and until each kind has happened; or until something is found. What was found."""
        began_at = time.monotonic()
        while time.monotonic() < began_at + seconds + (PATIENCE if self.missing else 0.0):
            self._next = self._next or self._rng.sample([*self._harms], len(self._harms))
            name = self._next.pop()
            self.harm[name] += self._harms[name]() is not False
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
        """What the history shows that must not be; at the end with a look at the morgue."""
        for job_id, numbers in dead_numbers(self._app, self._app.workers[0]).items() if ended else ():
            self._history.write("left", job_id, numbers, outcome="dead")
        terms = Terms(
            ended=ended,
            looked=ended,
            settling=SETTLING * self._scene.lease_ttl,
            acknowledged=True,
            failing=BAD,
            retries=RETRIES,
            # Where the server's clock is set, nobody knows when a payload is over.
            blur=math.inf if self._extras.clock else self._scene.lease_ttl,
        )
        return check(self._history.read(), terms).words

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ExitStack() as stack:
            stack.callback(self._history.close)
            stack.callback(close_app, self._app)
            for process in (self._pusher, *self._drains):
                stack.callback(self._kill, process)

    @property
    def missing(self) -> list[str]:
        """The kinds of harm that have never happened: of these a storm proves nothing."""
        return [name for name, count in self.harm.items() if not count]

    def _all_harms(self, seed: int) -> dict[str, Callable[[], bool | None]]:
        mine: list[Callable[[], bool | None]] = [
            self._kill_a_drain,
            self._freeze_a_drain,
            self._kill_the_pusher,
            self._cut,
            self._lose_a_reply,
            self._evict_leases,
            self._flush_scripts,
        ]
        return {
            **{harm.__name__.strip("_").replace("_", " "): harm for harm in mine},
            **{harm.name: partial(self._do, harm) for harm in self._others(seed)},
        }

    def _others(self, seed: int) -> Iterator[Harm]:
        extras, server, shards = self._extras, self._server, self._shards
        if extras.disk:
            yield FullDisk(server)
        if extras.clock:
            ttl = self._scene.lease_ttl
            file = ClockFile(extras.clock, extras.setter)
            yield ServerClock(file, server, shards, self._history, lease_ttl=ttl, seed=seed)
        else:
            # If the clock is set, the times of copies say nothing.
            yield LateCalls(self._proxy, shards, self._script, self._pile_up, self._visited)

    def _do(self, harm: Harm) -> bool:
        self._history.write("fault", process=0)
        return harm.happen()

    def _kill_a_drain(self) -> None:
        """At a moment when there is something to lose, if one comes soon."""
        with suppress(AssertionError):
            eventually(self._much_is_in_flight, timeout=0.2)
        at = self._rng.randrange(DRAINS)
        if self._drains[at].pid == self._frozen:
            self._thaw()
        self._kill(self._drains[at])
        self._drains[at] = self._start(actors.drain, at)

    def _much_is_in_flight(self) -> bool:
        return any(self._server.admin.hlen(shard.key("flight")) > 1 for shard in self._shards)

    def _kill_the_pusher(self) -> None:
        self._kill(self._pusher)
        self._pusher = self._start(actors.push)

    def _freeze_a_drain(self) -> bool:
        """For longer than its lease, or for less; one at a time."""
        drain = self._rng.choice(self._drains)
        # A broken engine may have ended it.
        if self._frozen or not drain.is_alive():
            return False
        pid = drain.pid or 0
        self._history.write("frozen", process=pid)
        os.kill(pid, signal.SIGSTOP)
        self._frozen, self._thaws_at = pid, time.monotonic() + self._rng.uniform(0.1, 1.3) * self._scene.lease_ttl
        return True

    def _pile_up(self) -> None:
        """A job for each of many ids, so that some wait whoever drains."""
        self._piles += 1
        jobs = [{"id": job_id, "payload": self._piles, "score": self._piles} for job_id in PILE]
        for job_id in PILE:
            self._history.write("push-begin", job_id, [self._piles])
        self._app.push_many(self._app.workers[0], jobs)
        for job_id in PILE:
            self._history.write("push-end", job_id, [self._piles], outcome="ok")

    @contextmanager
    def _visited(self, shard: ShardRef) -> Iterator[None]:
        """This process has had the shard, behind the holders that there were; in the block all drains stand still."""
        queue = self._app.operate(self._app.workers[0])
        queue.pause(60.0)
        with suppress(AssertionError):
            eventually(lambda: not self._server.admin.exists(shard.key("lease")), timeout=self._scene.lease_ttl)
        with self._standing():
            queue.resume()
            with suppress(LowkiqError):
                self._app.core.drains.drainer.visit(shard, Budget(SystemClock(), TURNS[0]))
            yield

    @contextmanager
    def _standing(self) -> Iterator[None]:
        self._thaw()
        still = [drain.pid or 0 for drain in self._drains if drain.is_alive()]
        for pid in still:
            self._history.write("frozen", process=pid)
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in still:
                os.kill(pid, signal.SIGCONT)
                self._history.write("thawed", process=pid)

    def _thaw(self) -> None:
        if self._frozen:
            os.kill(self._frozen, signal.SIGCONT)
            self._history.write("thawed", process=self._frozen)
            self._frozen = 0

    def _cut(self) -> None:
        self._history.write("fault", process=0)
        self._proxy.cut()

    def _lose_a_reply(self) -> bool:
        self._history.write("fault", process=0)
        self._proxy.drop_reply_after(self._script("settle").sha.encode())
        with suppress(AssertionError):
            self._proxy.wait_dropped(self._scene.lease_ttl)
            return True
        return False

    def _script(self, name: str) -> Script:
        """As processes call it by now: with the keys of what the queue uses."""
        features = self._app.core.backend.as_used(self._shards[0]).features
        return scripts_of(self._scene.mutant)(name, features)

    def _evict_leases(self) -> None:
        self._server.admin.delete(*(shard.key("lease") for shard in self._shards))

    def _flush_scripts(self) -> None:
        self._server.admin.script_flush()

    def _start(self, act: Callable[..., Any], at: int = -1) -> ForkServerProcess | OtherProcess:
        self._started += 1
        scene = self._scene
        # The first drain is always of this version, whose calls the proxy knows.
        if self._extras.version and at != 0 and self._started % 2:
            self.harm[self._extras.replacing] += 1
            if self._extras.package:
                return OtherProcess(self._extras.package, act.__name__, scene.encoded, self._started)
            scene = msgspec.structs.replace(scene, upgraded=True)
        process = _processes.Process(target=act, args=(scene, self._started), daemon=True)
        process.start()
        return process

    def _kill(self, process: ForkServerProcess | OtherProcess) -> None:
        self._history.write("fault", process=process.pid)
        process.kill()
        # A machine that stands still may let others take its shards before this has heard of its end.
        at = time.monotonic()
        process.join()
        self._history.write("died", process=process.pid, at=at)

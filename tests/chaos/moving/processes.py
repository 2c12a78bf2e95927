"""The processes of a course, as its driver handles them."""

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from tests.chaos.moving.producer import ids_of
from tests.kit.daemons import ROOT, DaemonProcess, clean_environment
from tests.kit.waiting import eventually
from tests.proof.history import Recorder

APP: Final = "tests.chaos.moving.app:app"
TIMEOUT: Final = 120.0


class ProducerProcess:
    """One that pushes from now on."""

    def __init__(self, prefix: str, ids: int, rate: float, environment: Mapping[str, str], folder: Path) -> None:
        self.ids = ids_of(prefix, ids)
        self._log = folder / f"producer-{prefix}"
        self._errors = folder / f"{prefix}.errors"
        with self._log.open("wb") as told, self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.moving.producer", prefix, str(ids), str(rate)],
                cwd=ROOT,
                env={**clean_environment(), **environment},
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=errors,
                start_new_session=True,
            )

    @property
    def pushes(self) -> int:
        """How many calls have come back."""
        return self._log.read_bytes().count(b"\n")

    def await_more(self, pushes: int = 5) -> None:
        """Wait until so many more have come back."""
        goal = self.pushes + pushes
        eventually(lambda: self._is_alive() and self.pushes >= goal, timeout=TIMEOUT, what="more pushes")

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def end(self) -> None:
        """It pushes no more, and no push has failed."""
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(TIMEOUT)
        assert 0 == code, self._errors.read_text()

    def close(self) -> None:
        """End it, whatever it is doing."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _is_alive(self) -> bool:
        assert self._process.poll() is None, self._errors.read_text()
        return True


class MovingDaemons:
    """So many; who is killed is replaced at once."""

    def __init__(
        self, count: int, environment: Mapping[str, str], folder: Path, history: Recorder, app: str = APP
    ) -> None:
        self._app = app
        self._environment = environment
        self._folder = folder
        self._history = history
        self._running = [self._start() for _ in range(count)]
        self.killed = 0

    def kill(self, at: int) -> None:
        """SIGKILL for one, and another in its place."""
        self.killed += 1
        daemon, died_at = self._running[at % len(self._running)], time.monotonic()
        self._history.write("fault", process=daemon.pid)
        daemon.close()
        self._history.write("died", process=daemon.pid, at=died_at)
        self._running[at % len(self._running)] = self._start()

    def replace_dead(self) -> None:
        """Another in the place of each that has died."""
        for at, daemon in enumerate(self._running):
            if daemon.process.poll() is not None:
                self.kill(at)

    def close(self) -> None:
        """End all of them."""
        for daemon in self._running:
            daemon.close()

    def _start(self) -> DaemonProcess:
        return DaemonProcess([self._app], self._environment, self._folder / "log")


class Movers:
    """Runs the command that moves a queue, kills it on the way, and starts it again."""

    def __init__(
        self, queue_name: str, environment: Mapping[str, str], folder: Path, rng: random.Random, app: str = APP
    ) -> None:
        self._app = app
        self._queue_name = queue_name
        self._environment = environment
        self._folder = folder
        self._rng = rng
        self._pause = threading.Event()
        self.killed = 0

    def run(self, *options: str, at_once: int = 1) -> None:
        """With these options, so many at once, to their end."""
        with ExitStack() as ending:
            movers = [self._start(options) for _ in range(at_once)]
            for mover in movers:
                ending.callback(_end, mover)
            codes = [mover.wait(TIMEOUT) for mover in movers]
        assert [0] * at_once == codes, self.log

    def kill_one(self, *options: str, when: Callable[[], object], longest: float = 1.0) -> None:
        """With these options, and SIGKILL at random: up to so many seconds after something is so, or it has ended."""
        mover = self._start(options)
        try:
            eventually(lambda: when() or mover.poll() is not None, timeout=TIMEOUT, what="the moment to kill a mover")
            self._pause.wait(self._rng.uniform(0.0, longest))
        finally:
            self.killed += mover.poll() is None
            _end(mover)

    @property
    def log(self) -> str:
        """What all of them have told."""
        return (self._folder / "movers").read_text()

    def _start(self, options: tuple[str, ...]) -> "subprocess.Popen[bytes]":
        with (self._folder / "movers").open("ab") as log:
            return subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "lowkiq_lambda",
                    "reshard",
                    self._queue_name,
                    *options,
                    "--yes",
                    "--app",
                    self._app,
                ],
                cwd=ROOT,
                env={**clean_environment(), **self._environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()

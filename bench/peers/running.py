"""One side of a peer: its program starts, reports what the jobs took, and is ended."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.peers.backends import Backend
from bench.peers.catalog import Peer, Settings
from bench.peers.installed import Installed
from bench.usage import MICROSECONDS

_LOOK: Final = 0.02
_PATIENCE: Final = 0.5
_LINES: Final = 8
"""Of a program's log, if it fails."""


class PeerFailedError(Exception):
    """A program ended, or took too long, before its jobs were done."""


@dataclass(frozen=True, slots=True)
class Load:
    """How many jobs, how many seconds each handler waits, and how long a program may take for all."""

    jobs: int
    wait: float
    limit: float


@dataclass(frozen=True, slots=True)
class Took:
    """Jobs a second; microseconds of the processor for each: the program's and the server's."""

    rate: float
    own: float
    server: float


@dataclass(frozen=True, slots=True)
class PeerSample:
    """A push and the drain of what was pushed."""

    pushed: Took
    drained: Took


def measure(peer: Peer, installed: Installed, settings: Settings, load: Load, backend: Backend) -> PeerSample:
    """Push and drain so many jobs, on a server whose data is thrown away."""
    backend.clear()
    run = _Runs(peer, installed, {**peer.fixed, **settings}, load, backend)
    sample = PeerSample(run.took(peer.push), run.took(peer.work))
    backend.clear()
    return sample


@dataclass(frozen=True, slots=True)
class _Runs:
    peer: Peer
    installed: Installed
    settings: Settings
    load: Load
    backend: Backend

    def took(self, command: str) -> Took:
        """What one program reports, and what the server had of the processor from its start to its report."""
        words = {**self.installed.words, **self.settings, "url": self.backend.url}
        with TemporaryDirectory(prefix="lowkiq-peer-") as folder:
            report, log, used = Path(folder) / "report", Path(folder) / "log", self.backend.processor()
            with log.open("wb") as output:
                process = subprocess.Popen(
                    [part.format(**words) for part in command.split()],
                    cwd=folder,
                    env=self._environment(report, words),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            try:
                reported = _reported(process, report, self.load.limit)
            except PeerFailedError as failed:
                failed.add_note("\n".join(log.read_text(errors="replace").splitlines()[-_LINES:]))
                raise
            finally:
                _end(process)
            server = self.backend.processor() - used
        each = MICROSECONDS / self.load.jobs
        return Took(self.load.jobs / reported["seconds"], reported["processor"] * each, server * each)

    def _environment(self, report: Path, words: Settings) -> dict[str, str]:
        facts = {"url": self.backend.url, "jobs": self.load.jobs, "wait": self.load.wait, "report": report}
        own = {name: value.format(**words) for name, value in self.peer.environment.items()}
        all_facts = {f"BENCH_{name.upper()}": str(value) for name, value in {**facts, **self.settings}.items()}
        return {**os.environ, **self.installed.environment, **own, **all_facts}


def _reported(process: subprocess.Popen[bytes], report: Path, limit: float) -> dict[str, float]:
    until = time.monotonic() + limit
    while not report.exists():
        if process.poll() is not None and not report.exists():
            raise PeerFailedError(f"its program ended with {process.returncode}")
        if time.monotonic() > until:
            raise PeerFailedError(f"its jobs were not done after {limit:.0f} s")
        time.sleep(_LOOK)
    found: dict[str, float] = json.loads(report.read_bytes())
    return found


def _end(process: subprocess.Popen[bytes]) -> None:
    """All of its session: some peers work in a child."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, how)
            process.wait(_PATIENCE)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
    process.wait()


def fastest(samples: Sequence[tuple[Settings, PeerSample]]) -> Settings:
    """The settings that drained the most jobs a second; the first of equals."""
    return max(samples, key=lambda one: one[1].drained.rate)[0]

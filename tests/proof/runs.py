"""The runs of a proof: one world with faults by a seed, judged by the history of what its processes noted."""

import random
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any, Final

from tests.chaos.race.actors import Track
from tests.chaos.race.course import KINDS as RACES
from tests.chaos.race.course import Race
from tests.chaos.storm.actors import Scene
from tests.chaos.storm.weather import Extras, Storm
from tests.kit.servers import Server
from tests.kit.servers.fault_proxy import FaultProxy
from tests.proof.failover import fail_over_again_and_again
from tests.proof.history import Recorder, check
from tests.proof.moves import move_again_and_again
from tests.proof.results import Run

SECONDS: Final = 30.0
END: Final = 300.0
"""Seconds that the end of all jobs may take."""


def storm(seed: int, size: float) -> Run:
    """Processes are killed, frozen and cut off."""
    with _folder() as folder, Server() as server:
        return _storm(seed, size, folder, server, Extras())


def disk(seed: int, size: float) -> Run:
    """And the server's disk is full again and again."""
    with _folder() as folder, Server(appendonly=True, appendfsync="everysec") as server:
        return _storm(seed, size, folder, server, Extras(disk=True))


def clock(seed: int, size: float, library: Path | None = None) -> Run:
    """And the server's clock is set: as its processes see it, or below the server by the library of libfaketime."""
    with _folder() as folder:
        path = folder / "clock"
        path.write_text("+0\n")
        below = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(path),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        if library is None:
            with Server() as server:
                return _storm(seed, size, folder, server, Extras(clock=path), clock=path)
        with Server(environment=below) as server:
            return _storm(seed, size, folder, server, Extras(clock=path, setter="set the server's clock below it"))


def versions(seed: int, size: float, version: str = "the next version", package: Path | None = None) -> Run:
    """And some processes are of another version: one whose scripts have another text, or that of a commit."""
    with _folder() as folder, Server() as server:
        return _storm(seed, size, folder, server, Extras(version=version, package=package))


def _storm(seed: int, size: float, folder: Path, server: Server, extras: Extras, **fields: Any) -> Run:
    began = monotonic()
    with FaultProxy(server) as proxy:
        scene = Scene(proxy.url, "proof", folder / "history", 1.0, **fields)
        with Storm(scene, server, proxy, seed, extras) as one:
            violations = one.rage(SECONDS * size)
            if not violations:
                one.calm(timeout=END)
                violations = one.found(ended=True)
            violations += _never(one.missing)
        return Run(seed, monotonic() - began, _done(scene.history), dict(one.harm), violations)


def race(seed: int, size: float) -> Run:
    """Processes perform many batches side by side, in threads, coroutines or item by item."""
    began, kind = monotonic(), random.Random(seed).choice(RACES)
    with _folder() as folder, Server() as server:
        track = Track(server.url, "proof", folder / "history", kind, 2.0)
        with Race(track, server, 3, seed) as one:
            one.run(SECONDS * size)
            verdict = one.finish(timeout=END)
        violations = [*verdict.words, *_never(one.missing)]
        return Run(seed, monotonic() - began, _done(track.path), dict(one.harm), violations)


def _done(history: Path) -> dict[str, int]:
    """How many payloads were pushed and answered, and how often a handler ran."""
    verdict = check(Recorder(history).read())
    return {"payloads": verdict.payloads, "handler runs": verdict.runs}


def _never(missing: Iterable[str]) -> list[str]:
    """Of what has not happened a run proves nothing."""
    return [f"sometimes: {name}: it never happened" for name in missing]


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


RUNS: Final[Mapping[str, Callable[[int, float], Run]]] = {
    "storm": storm,
    "disk": disk,
    "clock": clock,
    "versions": versions,
    "race": race,
    "move": move_again_and_again,
    "failover": fail_over_again_and_again,
}
"""What a run of each kind is, by its seed and its size: 1 is a whole one."""

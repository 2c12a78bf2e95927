"""The runs of a proof: one world with faults by a seed, judged by the history of what its processes noted."""

import random
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Final

from tests.chaos.race.actors import Track
from tests.chaos.race.course import KINDS as RACES
from tests.chaos.race.course import Race
from tests.chaos.storm.actors import Scene
from tests.chaos.storm.weather import Storm
from tests.kit.servers import Server
from tests.kit.servers.fault_proxy import FaultProxy
from tests.proof.failover import fail_over_again_and_again
from tests.proof.history import Event, Recorder
from tests.proof.moves import move_again_and_again
from tests.proof.results import Run

SECONDS: Final = 30.0
END: Final = 300.0
"""Seconds that the end of all jobs may take."""
Harm = Callable[[], None]


def storm(seed: int, size: float) -> Run:
    """Processes are killed, frozen and cut off."""
    began = monotonic()
    with tempfile.TemporaryDirectory() as folder, Server() as server, FaultProxy(server) as proxy:
        scene = Scene(proxy.url, "proof", Path(folder) / "history", 1.0)
        with Storm(scene, server, proxy, seed) as one:
            violations = one.rage(SECONDS * size)
            if not violations:
                one.calm(timeout=END)
                violations = one.found(ended=True)
        done = performed(Recorder(scene.history).read())
    return Run(seed, monotonic() - began, done, dict(one.harm), violations)


def race(seed: int, size: float) -> Run:
    """Processes perform many batches side by side, in threads, coroutines or item by item."""
    began, kind = monotonic(), random.Random(seed).choice(RACES)
    with tempfile.TemporaryDirectory() as folder, Server() as server:
        track = Track(server.url, "proof", Path(folder) / "history", kind, 2.0)
        with _CountedRace(track, server, 3, seed) as one:
            one.run(SECONDS * size)
            verdict = one.finish(timeout=END)
        done = performed(Recorder(track.path).read())
    return Run(seed, monotonic() - began, done, dict(one.harm), verdict.words)


def performed(events: Sequence[Event]) -> dict[str, int]:
    """How many payloads were pushed and answered, and how often a handler ran."""
    payloads = sum(len(event.numbers) for event in events if event.what == "push-end" and event.outcome == "ok")
    return {"payloads": payloads, "handler runs": sum(event.what == "begin" for event in events)}


class _CountedRace(Race):
    """Counts each harm by its name."""

    harm: Counter[str]

    def _harms(self) -> list[Harm]:
        self.harm = vars(self).get("harm", Counter())
        return [_counted(harm, self.harm) for harm in super()._harms()]


def _counted(harm: Harm, counts: Counter[str]) -> Harm:
    def count_and_harm() -> None:
        counts[harm.__name__.strip("_").replace("_", " ")] += 1
        harm()

    return count_and_harm


RUNS: Final[Mapping[str, Callable[[int, float], Run]]] = {
    "storm": storm,
    "race": race,
    "move": move_again_and_again,
    "failover": fail_over_again_and_again,
}
"""What a run of each kind is, by its seed and its size: 1 is a whole one."""

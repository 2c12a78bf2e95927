"""The part of the mutants: faults that are planted into the engine, and whether the proof sees them."""

import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Final

from tests.chaos.race.actors import Track
from tests.chaos.race.course import Race
from tests.chaos.race.mutants import CHANGES
from tests.chaos.storm.actors import Scene
from tests.chaos.storm.mutants import NAMES
from tests.chaos.storm.weather import Storm
from tests.kit.servers import Server
from tests.kit.servers.fault_proxy import FaultProxy
from tests.mutants.runner import mutants, outcomes
from tests.proof.results import MutantResult, Mutants

Tell = Callable[[str], object]
LONGEST: Final = 30.0
"""Seconds until a planted fault is found, or counts as not found."""


def prove_mutants(*, is_long: bool, tell: Tell) -> Mutants:
    """Plant each fault. Those that the nearest tests look for are for a long proof; `make nightly` has them too."""
    results = list[MutantResult]()
    for name in NAMES:
        tell(f"a storm over the fault {name!r}")
        results.append(_timed(name, "storm", lambda name=name: _storm_sees(name)))  # type: ignore[misc]  # bound here
    for name in CHANGES:
        tell(f"a race over the fault {name!r}")
        results.append(_timed(name, "race", lambda name=name: _race_sees(name)))  # type: ignore[misc]  # bound here
    for name, outcome, seconds in outcomes(mutants()) if is_long else ():
        tell(f"the tests over the fault {name!r}: {outcome}")
        results.append(MutantResult(name.replace("-", " "), "its nearest tests", outcome == "killed", seconds))
    return Mutants(results)


def _timed(name: str, seen_by: str, sees: Callable[[], bool]) -> MutantResult:
    began = monotonic()
    return MutantResult(name, seen_by, sees(), monotonic() - began)


def _storm_sees(name: str) -> bool:
    with tempfile.TemporaryDirectory() as folder, Server() as server, FaultProxy(server) as proxy:
        scene = Scene(proxy.url, "proof", Path(folder) / "history", 1.0, name)
        with Storm(scene, server, proxy, random.SystemRandom().randrange(2**32)) as storm:
            if storm.rage(8.0 if name == "retry_count + 1" else LONGEST):
                return True
            storm.calm(timeout=60.0)
            return bool(storm.found(ended=True))


def _race_sees(name: str) -> bool:
    ends_at = monotonic() + LONGEST
    with tempfile.TemporaryDirectory() as folder, Server() as server:
        track = Track(server.url, "proof", Path(folder) / "history", "threads", 2.0, name)
        with Race(track, server, 3, random.SystemRandom().randrange(2**32)) as race:
            while monotonic() < ends_at:
                race.run(1.0)
                if race.judge().words:
                    return True
    return False

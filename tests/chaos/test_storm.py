"""Storms: processes that are killed, frozen and cut off at random, judged by what they noted."""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

import lowkiq_lambda
from tests.chaos.storm.actors import Scene
from tests.chaos.storm.mutants import NAMES, SCRIPTS
from tests.chaos.storm.versions import OtherProcess
from tests.chaos.storm.weather import Extras, Storm
from tests.kit.examples import mostly_nightly
from tests.kit.servers import MakeServer
from tests.kit.servers.fault_proxy import FaultProxy
from tests.proof.history import Event, Terms, check
from tests.proof.history.events import What

Brew = Callable[..., Storm]
LEASE = 1.0
LUA = Path(lowkiq_lambda.__file__).parent / "store" / "lua"
SEED = int(os.environ.get("LOWKIQ_TEST_SEED") or random.SystemRandom().randrange(2**32))
"""Of the faults and of what is pushed; a failure tells it."""
PUSH: Final[list[tuple[What, str]]] = [("push-begin", ""), ("push-end", "ok")]
HANDLED: Final[list[tuple[What, str]]] = [("begin", ""), ("end", "done"), ("settled", "")]
LONGEST = {"retry_count + 1": 8.0}
"""Seconds of a storm, where only its end shows the fault. The others end as soon as they have found it."""


@pytest.fixture
def brew(make_server: MakeServer, queue_name: str, tmp_path: Path) -> Iterator[Brew]:
    """Starts storms, each on the same server of its own."""
    server = make_server()
    with FaultProxy(server) as proxy:

        def start(mutant: str = "", extras: Extras | None = None) -> Storm:
            scene = Scene(proxy.url, queue_name, tmp_path / "history", LEASE, mutant)
            return Storm(scene, server, proxy, SEED, extras)

        yield start


def test_p1_p2_p3_p7_hold_in_a_storm(brew: Brew) -> None:
    """P1, P2, P3, P7: no id twice at once, nothing lost, nothing out of order, each payload its chances.

    Half of the processes that push and drain are of the next version, as while a deploy or a rollback goes on.
    """
    with brew(extras=Extras(version="the next version")) as storm:
        found = storm.rage(10.0)
        storm.calm(timeout=60.0)
        found += storm.found(ended=True)

    assert [] == found, f"seed {SEED}, {storm.harm}"
    assert [] == storm.missing


def test_a_process_of_another_version_that_does_not_run_is_found(tmp_path: Path) -> None:
    """As of a package that the actors cannot import: the storm would be one of this version alone."""
    (tmp_path / "lowkiq_lambda.py").write_text("raise ImportError('another one')\n")
    other = OtherProcess(tmp_path, "drain", "{}", 1)
    other.join()

    with pytest.raises(AssertionError, match="a process of another version ended"):
        other.kill()


@pytest.mark.nightly("test_outages, test_clocks and test_rolling have one of each in each check")
@pytest.mark.parametrize("kind", ["disk", "clock"])
def test_p1_p2_p3_p7_hold_in_a_storm_of_more_kinds(
    make_server: MakeServer, queue_name: str, tmp_path: Path, kind: str
) -> None:
    """P1, P2, P3, P7: the disk is full, the server's clock is set."""
    server = make_server(appendonly=kind == "disk", appendfsync="everysec")
    clock = tmp_path / "clock" if kind == "clock" else None
    extras = Extras(disk=kind == "disk", clock=clock)
    with FaultProxy(server) as proxy:
        scene = Scene(proxy.url, queue_name, tmp_path / "history", LEASE, clock=clock)
        with Storm(scene, server, proxy, SEED, extras) as storm:
            found = storm.rage(15.0)
            storm.calm(timeout=60.0)
            found += storm.found(ended=True)

    assert [] == found, f"seed {SEED}, {storm.harm}"
    assert [] == storm.missing


@pytest.mark.parametrize(("outcome", "is_wrong"), [("", False), ("stale", False), ("done", True), ("failed", True)])
def test_a_process_that_stood_still_is_judged_by_what_it_tells(outcome: str, is_wrong: bool) -> None:  # noqa: FBT001 - a parameter
    """P1: before it goes on nobody knows whether it outlived its lease; an outcome says that it had its lease still."""
    events = [
        Event(1.0, "begin", 1, "a", [1], token=1),
        Event(1.1, "frozen", 1),
        Event(2.5, "begin", 2, "a", [1], token=2),
        Event(2.6, "thawed", 1),
        *([Event(2.7, "end", 1, "a", token=1, outcome=outcome)] if outcome else []),
    ]

    found = check(events, Terms(settling=LEASE, ended=False)).words

    assert is_wrong == any("began in process 2 while process 1 ran" in each for each in found)


@pytest.mark.parametrize(
    ("stood_still", "outcome", "is_wrong"), [(True, "stale", False), (True, "done", True), (False, "stale", True)]
)
def test_payloads_that_were_done_come_again_only_to_a_process_that_stood_still(
    stood_still: bool,  # noqa: FBT001 - a case
    outcome: str,
    is_wrong: bool,  # noqa: FBT001 - a case
) -> None:
    """P3: it may have looked at its lease before it stood still, and it says at the end that the lease is lost."""
    events = [
        Event(0.1, "push-begin", 9, "a", [1]),
        Event(0.2, "push-end", 9, "a", [1], outcome="ok"),
        *([Event(1.0, "frozen", 1)] if stood_still else []),
        Event(2.5, "begin", 2, "a", [1], token=2),
        Event(2.6, "end", 2, "a", token=2, outcome="done"),
        Event(3.8, "begin", 1, "a", [1], token=1),
        Event(3.9, "end", 1, "a", token=1, outcome=outcome),
    ]

    found = check(events, Terms(settling=0.1, ended=False)).words

    assert is_wrong == any("again after they were done" in each for each in found)


@pytest.mark.parametrize(("outcome", "is_wrong"), [("stale", False), ("done", True)])
def test_a_holder_that_stood_still_goes_on_with_its_batch_until_it_has_its_lease_at_an_end(
    outcome: str,
    is_wrong: bool,  # noqa: FBT001 - a case
) -> None:
    """P2: the end of another id says that the lease is lost, so that a younger holder may have had the next id."""
    events = [
        *(Event(0.1, what, 9, "b", [1], outcome=end) for what, end in PUSH),
        *(Event(0.1, what, 9, "a", [1], outcome=end) for what, end in PUSH),
        Event(1.0, "begin", 1, "b", [1], token=1),
        Event(1.1, "frozen", 1),
        *(Event(2.5, what, 2, "a", [1], token=2, outcome=end) for what, end in HANDLED),
        Event(3.0, "thawed", 1),
        Event(3.1, "end", 1, "b", token=1, outcome=outcome),
        Event(3.2, "begin", 1, "a", [1], token=1, repeated=False),
        Event(3.3, "end", 1, "a", token=1, outcome="stale"),
    ]

    found = check(events, Terms(acknowledged=True, ended=False)).violations["P2"]

    assert is_wrong == any("again after they were done" in violation.words for violation in found)
    assert is_wrong == any("as if for the first time" in violation.words for violation in found)


def test_a_process_that_runs_is_judged_before_it_tells() -> None:
    """P1: one that never stood still has its lease, so that two at once are wrong whatever comes."""
    events = [Event(1.0, "begin", 1, "a", [1], token=1), Event(1.5, "begin", 2, "a", [1], token=2)]
    found = check(events, Terms(settling=LEASE, ended=False)).words

    assert ["P1: a: [1] began in process 2 while process 1 ran [1]"] == [each for each in found if "began" in each]


@pytest.mark.parametrize("mutant", SCRIPTS)
def test_a_fault_of_a_script_is_planted(mutant: str) -> None:
    """Each text that it replaces stands in the scripts: else the storm would look for a fault that is not there."""
    sources = [path.read_text() for path in LUA.rglob("*.lua")]

    assert [] == [old for old, _ in SCRIPTS[mutant] if not any(old in source for source in sources)]


@pytest.mark.unverified("the engine is broken")
@pytest.mark.parametrize("mutant", mostly_nightly(NAMES, next(iter(NAMES))))
def test_a_storm_finds_a_broken_engine(brew: Brew, mutant: str) -> None:
    """The checker sees each of these faults: what it does not find is not there."""
    with brew(mutant) as storm:
        found = storm.rage(LONGEST.get(mutant, 40.0))
        if not found:
            storm.calm(timeout=60.0)
            found = storm.found(ended=True)

    assert found, f"seed {SEED}, {storm.harm}"

"""The checker of histories: it finds nothing in sound ones, and names the claim that a spoilt one breaks."""

import ast
import random
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, get_args

import msgspec
import pytest

from tests.proof import history
from tests.proof.generated import TERMS, SoundWorld
from tests.proof.history import CLAIMS, Event, Recorder, Terms, check
from tests.proof.history.events import What
from tests.proof.spoilt import SPOILINGS

HISTORIES: Final = 200
FEWEST: Final = 50
"""Histories that have a place for a spoiling."""
OUTSIDE: Final = {
    *("bisect", "collections", "collections.abc", "heapq", "itertools", "math", "os", "pathlib", "time", "typing"),
    "msgspec",
}


@cache
def sound(seed: int) -> tuple[Event, ...]:
    """A history in which nothing is wrong."""
    return tuple(SoundWorld(seed).events)


def test_nothing_is_wrong_in_sound_histories() -> None:
    """With deaths, freezes, evictions, unknown and refused pushes, dead payloads, tasks and schedules."""
    wrong = {seed: check(sound(seed), TERMS).words for seed in range(HISTORIES)}

    assert {} == {seed: words for seed, words in wrong.items() if words}


def test_sound_histories_have_each_kind_of_event() -> None:
    """A checker that never sees a kind proves nothing of it."""
    kinds = {event.what for seed in range(HISTORIES) for event in sound(seed)}

    assert {*get_args(What)} - {"fault"} == kinds


@pytest.mark.parametrize("name", SPOILINGS)
def test_the_checker_names_the_claim_that_a_spoilt_history_breaks(name: str) -> None:
    """Each of 200 sound histories that has a place for it is spoilt in one way."""
    claim, spoil = SPOILINGS[name]
    spoilt = {seed: spoil(random.Random(seed), [*sound(seed)]) for seed in range(HISTORIES)}
    broken = {seed: check(events, TERMS).violations[claim] for seed, events in spoilt.items() if events is not None}

    assert len(broken) >= FEWEST
    assert [] == [seed for seed, found in broken.items() if not found]


def test_each_claim_has_a_spoiling_and_sentences() -> None:
    """A claim that nothing breaks is not checked."""
    assert {claim.id for claim in CLAIMS} == {spoiling.claim for spoiling in SPOILINGS.values()}
    assert [] == [claim.id for claim in CLAIMS if not (claim.words.endswith(".") and claim.sentence.endswith("."))]


def test_a_push_without_an_answer_may_have_been_written_or_not_for_ever() -> None:
    """P2: its payloads may come late or never; those of a refused push never come."""
    pushed = Event(1.0, "push-begin", 9, "a", [1])
    run = [Event(90.0, "begin", 1, "a", [1]), Event(91.0, "end", 1, "a", outcome="done")]
    unknown, refused = (Event(2.0, "push-end", 9, "a", [1], outcome=outcome) for outcome in ("unknown", "refused"))

    assert check([pushed]).sound
    assert check([pushed, unknown]).sound
    assert check([pushed, unknown, *run]).sound
    assert check([pushed, *run]).sound
    assert not check([pushed, refused, *run]).sound


def test_payloads_of_an_open_push_come_in_their_order() -> None:
    """P3: what a push sent before a payload is put before it, though the push is not answered."""
    pushed, begun = Event(1.0, "push-begin", 9, "a", [1, 3, 2]), Event(2.0, "begin", 1, "a", [2])

    assert ["P3: a: [2] were handed over before [1]"] == check([pushed, begun]).words
    assert check([msgspec.structs.replace(pushed, numbers=[3, 2, 1]), begun]).sound


def test_a_recorder_keeps_what_it_is_told(tmp_path: Path) -> None:
    """Events of several recorders come in the order of time; half a line is none yet."""
    path = tmp_path / "history"
    one, other = Recorder(path), Recorder(path)
    one.write("begin", "a", [2], at=2.0, token=3)
    other.write("push-begin", "a", [2], at=1.0, process=7)
    with path.open("ab") as file:
        file.write(b'{"at": 3.0')

    assert [("push-begin", 7, 0), ("begin", 3)] == [
        (event.what, event.process, event.token) if event.token == 0 else (event.what, event.token)
        for event in one.read()
    ]
    one.close()
    other.close()


def test_time_grows_with_the_length_of_a_history_alone() -> None:
    """Linear: ten times as many events take less than thirty times as long, by the processor's time."""
    few, many = (check_seconds(events_of(count)) for count in (500, 5_000))

    assert many < 30 * few


def check_seconds(events: list[Event]) -> float:
    """The least of three."""
    seconds = []
    for _ in range(3):
        began = time.process_time()
        assert check(events, Terms(settling=1.0)).sound
        seconds.append(time.process_time() - began)
    return min(seconds)


def events_of(count: int) -> list[Event]:
    """The worst case: all payloads of one id wait, and each is performed alone."""
    events = []
    for number in range(1, count + 1):
        events += [
            Event(0.0, "push-begin", 9, "a", [number]),
            Event(0.0, "push-end", 9, "a", [number], outcome="ok"),
            Event(2.0 * number, "begin", 1, "a", [number]),
            Event(2.0 * number + 1, "end", 1, "a", outcome="done"),
        ]
    return events


def imports(path: Path) -> Iterator[str]:
    """The modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_the_checker_knows_no_server_no_engine_and_no_other_test() -> None:
    """It imports its own files and the standard library, and msgspec to read lines."""
    files = [*Path(history.__file__).parent.glob("*.py")]
    strange = {
        name
        for path in files
        for name in imports(path)
        if name not in OUTSIDE and not name.startswith("tests.proof.history")
    }

    assert len(files) > 10
    assert set() == strange

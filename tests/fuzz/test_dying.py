"""A dead process runs no further line: no `finally`, no `except`; and an `except` that would go on is reported."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from lowkiq_lambda.testing import AppUnderTest
from lowkiq_lambda.testing.fuzz.points import CodePlace, PointCounter, UserCode, counted
from lowkiq_lambda.testing.fuzz.process import FuzzProcess, SimulatedDeath
from lowkiq_lambda.testing.fuzz.run import fuzz
from tests.fuzz import planted
from tests.fuzz.fuzzing import options_of

USER_CODE = UserCode(Path(__file__).parents[2])
done: list[str] = []
lock = threading.Lock()


def ends_with_finally() -> None:
    """In two frames, before and behind a call."""
    try:
        try:
            die()
        finally:
            done.append("a call")
            done.append("behind it")
    finally:
        globals()["is_done"] = True
        append("the call of a function")


def ends_with_blocks() -> None:
    """The exits of a lock and of a generator."""
    with lock, noted():
        die()


def raises_again() -> None:
    """It has its say, and goes."""
    try:
        die()
    except ValueError:
        done.append("another exception")
    except BaseException:
        done.append("rolled back")
        raise


def catches() -> None:
    """It would go on."""
    try:
        die()
    except BaseException:  # noqa: BLE001 - what is tested
        done.append("caught")


def passes_over() -> None:
    """It goes on, and would note it."""
    try:  # noqa: SIM105 - what is tested
        die()
    except BaseException:  # noqa: BLE001, S110 - as above
        pass
    done.append("behind it")


def returns_at_last() -> int:
    """A `return` in `finally` ends each exception, too."""
    try:
        die()
    finally:
        return len(done)  # noqa: B012 - what is tested


@contextmanager
def noted() -> Iterator[None]:
    """What users write."""
    try:
        yield
    finally:
        done.append("noted")


def append(text: str) -> None:
    """In a frame of its own."""
    done.append(text)


def die() -> None:
    """Here."""
    raise AssertionError("the process was dead before")


def _dead(function: Callable[[], object]) -> tuple[bool, bool]:
    """Let a process die at the line of `die`; whether it has caught that, and whether the call came to its end."""
    process = FuzzProcess(planted.Counter, None, USER_CODE, lambda _: None)

    def act(_number: int, place: CodePlace) -> None:
        if place.function == "die":
            process.is_dead = True
            raise SimulatedDeath

    with suppress(SimulatedDeath), counted(USER_CODE, PointCounter(act, process._die_again)):
        function()
        return process.has_swallowed, True
    assert (None, None, None) == sys.exc_info()
    return process.has_swallowed, False


@pytest.mark.parametrize(
    ("function", "has_swallowed"),
    [
        (ends_with_finally, False),
        (ends_with_blocks, False),
        (raises_again, False),
        (catches, True),
        (passes_over, True),
        (returns_at_last, True),
    ],
)
def test_no_further_line_runs(function: Callable[[], object], has_swallowed: bool) -> None:  # noqa: FBT001 - a case
    """Blocks of the system are left, as it does that for a process that is gone."""
    done.clear()

    assert (has_swallowed, False) == _dead(function)
    assert [] == done
    assert "is_done" not in globals()
    assert not lock.locked()


def test_a_process_that_lives_runs_all() -> None:
    """The same code, without a death."""
    done.clear()
    lines: list[object] = []

    with pytest.raises(AssertionError), counted(USER_CODE, PointCounter(lambda *_: None, lines.append)):
        ends_with_finally()

    assert ["a call", "behind it", "the call of a function"] == done
    assert globals().pop("is_done")
    assert len(lines) > 8


def _classes(kit: AppUnderTest, name: str, kind: Any) -> list[str]:
    options = options_of(name, scenarios=60, faults=[kind])
    report = fuzz(kit.app, kit.clock, getattr(planted, name), options)
    assert report.faults[kind] > 0
    return [finding.fault_class for finding in report.findings]


@pytest.mark.parametrize("name", ["NotesFailures", "NotesFailuresAwaited", "NotesFailuresByPage"])
def test_only_a_process_that_lives_runs_what_is_final(lowkiq: AppUnderTest, name: str) -> None:
    """A failure is noted, a death is not."""
    assert ([], ["repeat"]) == (_classes(lowkiq, name, "die"), _classes(lowkiq, name, "fail"))

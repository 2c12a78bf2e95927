"""The harness itself: what AWS does to a process is done here, and told truly."""

import os
import signal
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from threading import Event

import pytest

from tests.kit import awake
from tests.kit.awake import AwakeTimer
from tests.kit.process_states import state_of
from tests.kit.servers.lambda_outcome import Crashed, Error, Killed
from tests.kit.servers.lambda_runtime import LambdaEnvironment
from tests.kit.waiting import eventually


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[LambdaEnvironment]:
    """One for a function that obeys its events."""
    with LambdaEnvironment("tests.aws.runtime.plain.handler", {}, tmp_path, name="plain") as made:
        yield made


def test_a_result_comes_back_and_the_process_is_used_again(environment: LambdaEnvironment) -> None:
    """The first invocation is cold; the second finds what the first left in the module."""
    first = environment.begin({"do": "nothing"}, request_id="one").result()
    second = environment.begin({"do": "nothing"}, request_id="two").result()

    assert (True, False) == (first.cold, second.cold)
    assert first.pid == second.pid == environment.pid
    assert ["one", "two"] == second.value["calls"]
    assert "plain" == second.value["function"]


def test_the_handler_knows_its_deadline(environment: LambdaEnvironment) -> None:
    """The time that remains is counted from when the event was handed over, not from the start of the process."""
    assert 800.0 < environment.begin({"do": "nothing"}, timeout=900.0).result().value["remaining"] <= 900.0


def test_an_exception_comes_back_as_an_error_and_the_process_lives(environment: LambdaEnvironment) -> None:
    """Type, message and trace are what the runtime client says, and the next invocation is warm."""
    error = environment.invoke({"do": "raise"})
    after = environment.begin({"do": "nothing"}).result()

    assert isinstance(error, Error)
    assert ("ValueError", "a bad event") == (error.type, error.message)
    assert any("plain.py" in line for line in error.trace)
    assert (error.pid, False) == (after.pid, after.cold)


def test_a_handler_that_cannot_be_imported_is_an_error(tmp_path: Path) -> None:
    """What the start of the process says is not lost, and the next one tries again."""
    with LambdaEnvironment("tests.aws.runtime.absent.handler", {}, tmp_path) as environment:
        first, second = environment.invoke({}), environment.invoke({})

    assert isinstance(first, Error)
    assert isinstance(second, Error)
    assert "Runtime.ImportModuleError" == first.type
    assert "No module named 'tests.aws.runtime.absent'" in first.message
    assert first.pid != second.pid


def test_the_deadline_kills_without_cleaning_up(environment: LambdaEnvironment) -> None:
    """SIGKILL when the time is over, not before; what was printed is in the log; the next invocation is cold."""
    environment.invoke({"do": "nothing"})
    killed = environment.invoke({"do": "hang"}, timeout=1.0)
    after = environment.begin({"do": "nothing"}).result()

    assert isinstance(killed, Killed)
    assert 1.0 <= killed.seconds
    assert [{"_aws": {}, "calls": 2}] == killed.metrics
    assert "cleaned up" not in environment.log
    assert (False, True) == (killed.cold, after.cold)
    assert killed.pid != after.pid


def test_a_machine_that_stands_still_uses_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadline is late by as much: else what a loaded machine does not run would be killed for it."""
    minutes = count(step=60)
    monkeypatch.setattr(awake, "monotonic", lambda: next(minutes))
    over = Event()

    AwakeTimer(0.29, over.set).run()

    assert over.is_set()
    assert 2 * 3 * 60 == next(minutes)


def test_what_it_prints_can_be_read_while_it_runs(environment: LambdaEnvironment) -> None:
    """Lines in the embedded metric format are found among the others."""
    running = environment.begin({"do": "hang"})

    assert [{"_aws": {}, "calls": 1}] == eventually(lambda: environment.metrics, timeout=30.0)
    assert not running.is_over


def test_it_is_frozen_while_it_has_nothing_to_do(environment: LambdaEnvironment) -> None:
    """Between invocations the process stands still, and the next one thaws it."""
    first = environment.begin({"do": "nothing"}).result()

    assert "T" == state_of(first.pid)
    assert first.pid == environment.begin({"do": "nothing"}).result().pid


def test_it_can_be_frozen_in_the_middle(environment: LambdaEnvironment) -> None:
    """A frozen process stands still until it is thawed; the deadline passes over it as over any other."""
    running = environment.begin({"do": "hang"}, timeout=3.0)
    pid = eventually(lambda: environment.metrics and environment.pid, timeout=30.0)
    assert pid
    environment.freeze()
    assert "T" == state_of(pid)
    environment.thaw()
    assert "T" != state_of(pid)
    environment.freeze()

    assert isinstance(running.outcome(), Killed)


@pytest.mark.parametrize(("do", "exit_code"), [("exit", 3), ("shoot", -signal.SIGKILL)])
def test_a_process_that_dies_is_noticed(environment: LambdaEnvironment, do: str, exit_code: int) -> None:
    """How it ended is told, and the next invocation gets a new process."""
    started_at = time.monotonic()
    crashed = environment.invoke({"do": do})
    ended_at = time.monotonic()
    after = environment.begin({"do": "nothing"}).result()

    assert isinstance(crashed, Crashed)
    assert exit_code == crashed.exit_code
    assert ended_at - started_at < 30.0
    assert after.cold
    assert crashed.pid != after.pid


def test_a_process_that_died_between_invocations_is_replaced(environment: LambdaEnvironment) -> None:
    """AWS takes environments away without a word."""
    first = environment.begin({"do": "nothing"}).result()
    environment.kill()
    after = environment.begin({"do": "nothing"}).result()

    assert after.cold
    assert first.pid != after.pid


def test_a_duplicate_is_the_same_event_under_the_same_request_id(environment: LambdaEnvironment) -> None:
    """As AWS delivers it when it is not sure about the first time."""
    first = environment.begin({"do": "nothing"})
    first.outcome()
    again = environment.begin({"do": "nothing"}, request_id=first.request_id).result()

    assert [first.request_id] * 2 == again.value["calls"]


@pytest.mark.parametrize("do", ["nothing", "hang"])
def test_nothing_is_left_of_a_closed_environment(tmp_path: Path, do: str) -> None:
    """Neither a process that waits nor one that is in the middle of its work."""
    with LambdaEnvironment("tests.aws.runtime.plain.handler", {}, tmp_path) as environment:
        environment.begin({"do": do})
        eventually(lambda: environment.metrics, timeout=30.0)
        pid = environment.pid

    assert pid
    assert environment.pid is None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)

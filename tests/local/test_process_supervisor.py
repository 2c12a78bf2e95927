"""Real children, and a clock that is moved: when others take their places."""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Final

import pytest

from lowkiq_lambda.local.overrides import Overrides
from lowkiq_lambda.local.processes.child_process import ChildProcess
from lowkiq_lambda.local.processes.memory import EARLY, LOOK_INTERVAL, MemoryWatch, new_watch
from lowkiq_lambda.local.processes.messages import Order
from lowkiq_lambda.local.processes.supervisor import STEADY, TIME_TO_START, ProcessSupervisor
from lowkiq_lambda.local.thread_supervisor import LONGEST_PAUSE
from lowkiq_lambda.testing import ManualClock
from tests.kit.stage import Stage
from tests.kit.waiting import eventually
from tests.local.conftest import APP

_TIMEOUT: Final = 30.0


class Old:
    """A child that has run for long."""

    number = 3
    pid = 7
    ran_at: float | None = -EARLY


class Family:
    """One child under a supervisor, and those that replaced it."""

    def __init__(self, stage: Stage, monkeypatch: pytest.MonkeyPatch, megabytes: int | None = None) -> None:
        for name, value in stage.variables_with(poll_interval=0.1, lease_ttl=1).items():
            monkeypatch.setenv(name, value)
        self.stage = stage
        self.clock = ManualClock()
        self.children: list[ChildProcess] = []
        self.watch = None if megabytes is None else new_watch(megabytes, self.clock)
        self.supervisor = ProcessSupervisor(1, self._start, 10.0, self.clock, self.watch)
        self._order = Order(
            app=APP,
            number=0,
            processes=1,
            nonce_prefix="0" * 16,
            folder=str(stage.folder),
            overrides=Overrides(threads=2),
            log_level="info",
            log_format="text",
        )

    def _start(self, _number: int) -> ChildProcess:
        self.children.append(ChildProcess(self._order, self.clock, lambda: None))
        return self.children[-1]

    def await_run(self, times: int) -> ChildProcess:
        """Wait until so many children have been started, and the last one runs."""
        eventually(
            lambda: (self.supervisor.tend(), len(self.children) == times and self.children[-1].ran_at)[1], _TIMEOUT
        )
        self.supervisor.tend()
        return self.children[-1]

    def pause_after_death(self) -> float:
        """Kill the child that runs; seconds until the next one is started, which is awaited."""
        os.kill(self.children[-1].pid, signal.SIGKILL)
        pause = self.pause_after_end()
        self.await_run(len(self.children))
        return pause

    def pause_after_end(self) -> float:
        """Wait until the child has ended; seconds until the next one is started."""
        eventually(lambda: self.children[-1].returned, _TIMEOUT)
        before, started = self.clock.monotonic(), len(self.children)
        pause = self.supervisor.tend()
        if len(self.children) == started:
            self.clock.advance(pause)
            self.supervisor.tend()
        assert started + 1 == len(self.children)
        return self.clock.monotonic() - before

    def await_end(self, child: ChildProcess) -> None:
        """Wait until it has ended, and the supervisor knows."""
        eventually(lambda: (self.supervisor.tend(), child.returned is not None)[1], _TIMEOUT)
        self.supervisor.tend()

    def close(self) -> None:
        """End the children."""
        self.supervisor.stop()
        self.supervisor.hurry()
        for child in self.children:
            child.kill()
        eventually(lambda: all(child.returned is not None for child in self.children))


@pytest.fixture
def family(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Iterator[Family]:
    """A child without a limit."""
    made = Family(stage, monkeypatch)
    yield made
    made.close()


@pytest.fixture
def limited(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Iterator[Family]:
    """A child that may have 90 MiB."""
    made = Family(stage, monkeypatch, megabytes=90)
    yield made
    made.close()


def test_a7_the_first_death_is_made_good_at_once_and_later_ones_with_a_pause(family: Family) -> None:
    """A-7: as for threads; a child that has lived for long enough dies its first death again."""
    family.await_run(1)
    pauses = [family.pause_after_death() for _ in range(3)]
    family.clock.advance(STEADY)

    assert [0.0, 1.0, 2.0, 0.0] == [*pauses, family.pause_after_death()]


def test_children_that_die_while_they_start_are_no_busy_loop(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the system has no memory for the app: each next one is awaited for longer, and none is given up."""
    monkeypatch.setenv("STAGE_DIES_AT_BOOT", "1")
    family.supervisor.tend()
    pauses = [family.pause_after_end() for _ in range(4)]
    monkeypatch.delenv("STAGE_DIES_AT_BOOT")
    pauses.append(family.pause_after_end())
    family.await_run(6)

    assert [0.0, 1.0, 2.0, 4.0, 8.0] == pauses


def test_a_child_over_the_limit_is_replaced_under_load_and_no_job_suffers(limited: Family) -> None:
    """Its replacement runs before it stops; what it performs comes to its end, and the other takes what comes then."""
    stage = limited.stage
    first = limited.await_run(1)
    limited.clock.advance(EARLY)
    stage.push(["big"], "grow")
    stage.await_told("end", id="big")
    stage.push(["slow"], "wait")
    stage.await_told("begin", id="slow")
    limited.clock.advance(LOOK_INTERVAL)
    second = limited.await_run(2)
    stage.await_told("on_quiet", pid=first.pid)
    stage.push(["next"])
    is_working = first.returned is None
    stage.release("slow")
    eventually(lambda: (limited.supervisor.tend(), first.returned is not None)[1], _TIMEOUT)
    stage.await_told("end", id="next")

    assert is_working
    assert 0 == first.returned
    assert [first.pid] == [one["pid"] for one in stage.told("begin", id="slow")]
    assert [second.pid] == [one["pid"] for one in stage.told("begin", id="next")]
    assert [] == stage.told("overlap")
    limited.clock.advance(LOOK_INTERVAL)
    limited.supervisor.tend()
    assert 2 == len(limited.children)


def test_a_limit_that_a_young_child_reaches_is_ignored(limited: Family, caplog: pytest.LogCaptureFixture) -> None:
    """It would be replaced for ever, and work would stand still: an error says so, and nobody is replaced any more."""
    limited.await_run(1)
    limited.stage.push(["big"], "grow")
    limited.stage.await_told("end", id="big")
    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            limited.clock.advance(LOOK_INTERVAL)
            limited.supervisor.tend()
    limited.clock.advance(EARLY)
    limited.supervisor.tend()

    assert ["a young child is near --max-memory already: the limit is too low, and is ignored from now on"] == [
        record.message for record in caplog.records if record.levelno == logging.ERROR
    ]
    assert 1 == len(limited.children)


def test_a_replacement_that_hangs_is_killed_and_the_next_one_takes_the_place(
    limited: Family, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The limit holds on: each that does not start in time is reported, and followed by another one."""
    first = limited.await_run(1)
    limited.clock.advance(EARLY)
    limited.stage.push(["big"], "grow")
    limited.stage.await_told("end", id="big")
    monkeypatch.setenv("STAGE_HANGS_AT_BOOT", "1")
    limited.clock.advance(LOOK_INTERVAL)
    assert TIME_TO_START == limited.supervisor.tend()
    for number in (2, 3):
        assert number == len(limited.children)
        assert TIME_TO_START == limited.supervisor.tend()
        limited.clock.advance(TIME_TO_START)
        limited.await_end(limited.children[-1])
    monkeypatch.delenv("STAGE_HANGS_AT_BOOT")
    limited.clock.advance(LOOK_INTERVAL)
    limited.await_run(4)
    limited.await_end(first)

    assert 0 == first.returned
    told = [record for record in caplog.records if record.levelno == logging.ERROR]
    texts = ["a replacement does not start in time and is killed", "a replacement did not start"]
    assert [*texts, *texts] == [record.message for record in told]
    assert [0.0, 1.0] == [vars(record)["replaced_in"] for record in told[1::2]]


def test_a_replacement_that_hangs_when_the_child_dies_is_killed_too(
    limited: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the child now, and does not drain: a third one takes the place of both."""
    first = limited.await_run(1)
    limited.clock.advance(EARLY)
    limited.stage.push(["big"], "grow")
    limited.stage.await_told("end", id="big")
    monkeypatch.setenv("STAGE_HANGS_AT_BOOT", "1")
    limited.clock.advance(LOOK_INTERVAL)
    limited.supervisor.tend()
    assert 2 == len(limited.children)
    first.kill()
    limited.await_end(first)
    monkeypatch.delenv("STAGE_HANGS_AT_BOOT")
    limited.clock.advance(TIME_TO_START)
    limited.await_end(limited.children[1])
    limited.clock.advance(LONGEST_PAUSE)

    assert limited.await_run(3).returned is None


def test_a_child_that_ends_before_its_memory_is_read_is_passed_over() -> None:
    """Whether it is still in the table of processes or not; the next one is looked at all the same."""

    class Large(Old):
        pid = os.getpid()

    class Unreaped(Old):
        pid: int

    class Gone(Old):
        pid = 2**22 + 1  # beyond all that Linux gives

    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        Unreaped.pid = child.pid
        clock, large = ManualClock(), Large()
        watch = MemoryWatch(1, clock)
        clock.advance(LOOK_INTERVAL)

        assert large is watch.over_limit([Unreaped(), Gone(), large])


def test_memory_is_looked_at_now_and_then() -> None:
    """Reading it is not free for a large process, so it is not done whenever something happens."""
    clock = ManualClock()
    looks: list[int] = []

    def note(pid: int) -> int:
        looks.append(pid)
        return 11

    watch = MemoryWatch(10, clock, note)
    old = Old()
    assert watch.over_limit([old]) is None
    clock.advance(LOOK_INTERVAL)
    assert old is watch.over_limit([old])
    assert watch.over_limit([old]) is None
    assert [7] == looks
    assert clock.monotonic() + LOOK_INTERVAL == watch.looks_at

"""Threads that die, and when others take their places."""

import threading

import pytest

from lowkiq_lambda.local.thread_supervisor import LONGEST_PAUSE, ThreadSupervisor
from lowkiq_lambda.testing import ManualClock
from tests.kit.waiting import eventually


class DyingRun:
    """A runnable that dies at each run, but for those whose numbers are given."""

    def __init__(self, *works_in: int) -> None:
        self.has_worked = False
        self.runs = 0
        self._works_in = works_in

    def run(self) -> None:
        """Get something done in some of the runs; die in all."""
        self.runs += 1
        self.has_worked = self.runs in self._works_in
        raise ValueError(f"run {self.runs}")


class Setting:
    """A supervisor of one thread, and what is known of it."""

    def __init__(self, runnable: DyingRun) -> None:
        self.clock = ManualClock()
        self.died = threading.Event()
        self.words: list[str] = []
        self.supervisor = ThreadSupervisor(
            [("one", runnable)],
            pause=1.0,
            clock=self.clock,
            notify=self.died.set,
            last_words=lambda error: self.words.append(str(error)),
        )

    def pause_after_death(self) -> float:
        """Wait for the next death; seconds until its replacement, which is made."""
        assert self.died.wait(10)
        self.died.clear()
        eventually(lambda: not self.supervisor.running())
        before = self.clock.monotonic()
        pause = self.supervisor.tend()
        if pause > LONGEST_PAUSE:
            # Replaced already: nobody is waited for.
            return 0.0
        self.clock.advance(pause)
        self.supervisor.tend()
        return self.clock.monotonic() - before


def test_a7_the_first_death_is_made_good_at_once_and_later_ones_with_a_pause() -> None:
    """A-7: one accident costs nothing; what dies again and again waits longer each time, up to a bound."""
    setting = Setting(DyingRun())
    setting.supervisor.start()

    assert [0, 1, 2, 4, 8, 16, 30, 30] == pytest.approx([setting.pause_after_death() for _ in range(8)])
    assert ["run 1", "run 2"] == setting.words[:2]


def test_a7_work_between_deaths_makes_the_next_the_first() -> None:
    """A-7: only deaths in a row count."""
    setting = Setting(DyingRun(3))
    setting.supervisor.start()

    assert [0, 1, 0, 1] == pytest.approx([setting.pause_after_death() for _ in range(4)])


def test_a7_nobody_is_replaced_while_the_crew_is_only_reported_on() -> None:
    """A-7: where the daemon stops the dead are told of, and stay dead."""
    runnable = DyingRun()
    setting = Setting(runnable)
    setting.supervisor.start()
    assert setting.died.wait(10)
    eventually(lambda: not setting.supervisor.running())
    setting.supervisor.report()
    setting.clock.advance(1_000)
    setting.supervisor.report()

    assert 1 == runnable.runs
    assert ["run 1"] == setting.words

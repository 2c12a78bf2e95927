"""How many calls run side by side: the rule alone, by times that are given."""

from random import Random
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowkiq_lambda.engine.calls_tuner import DAY, HOUR, REST, CallsTuner
from lowkiq_lambda.engine.settled import FEWEST, Settled

SECOND: Final = 1.0


class Settlings:
    """Settlings of one queue, a second apart, whose calls each take `took`."""

    def __init__(self, most: int = 10, least: int = 1) -> None:
        self.tuner = CallsTuner(least, most)
        self.at = 1_000.0
        self.told = 0

    def full(self, took: float, *, computing: float = 0.1, is_short: bool = True, spread: float = 0.0) -> int:
        """All slots are full of such calls until there is enough to judge by; the calls at once then."""
        random, count = Random(1), max(FEWEST, 2 * self.tuner.calls)
        each = [took * random.uniform(1 - spread, 1 + spread) for _ in range(count)]
        for one in each:
            self.tuner.note(1, one)
        busy = sum(each)
        return self.settle(busy, busy, ended=count, is_short=is_short, computing=computing)

    def settle(  # noqa: PLR0913 - what a settling tells
        self,
        busy: float,
        room: float,
        *,
        ended: int,
        failed: int = 0,
        is_short: bool = True,
        computing: float = 0.1,
    ) -> int:
        """A settling; the calls at once then."""
        self.at += SECOND
        settled = Settled(
            at=self.at, busy=busy, room=room, ended=ended, failed=failed, is_short=is_short, computing=computing
        )
        self.told += self.tuner.settled(settled)
        return self.tuner.calls


def test_full_slots_rise_one_by_one_up_to_the_bound() -> None:
    """As long as calls take as long as before and more is due; at the bound that is told once a day."""
    queue = Settlings(most=4)

    assert [2, 3, 4, 4, 4] == [queue.full(0.05) for _ in range(5)]
    assert 1 == queue.told
    queue.at += DAY
    queue.full(0.05)
    assert 2 == queue.told


@pytest.mark.parametrize("fields", [{"is_short": False}, {"computing": 0.6}])
def test_slots_do_not_rise_for_nothing(fields: dict[str, bool | float]) -> None:
    """Where no more is due, and where calls compute."""
    queue = Settlings()

    assert 1 == max(queue.full(0.05, **fields) for _ in range(20))  # type: ignore[arg-type]  # of two keywords


def test_slots_that_are_not_full_do_not_rise() -> None:
    """Free slots would only become more."""
    queue = Settlings()
    for _ in range(20):
        queue.tuner.note(1, 0.05)
        queue.settle(0.05, 0.1, ended=1)

    assert 1 == queue.tuner.calls


def test_a_rise_that_makes_calls_slower_is_taken_back_for_a_minute() -> None:
    """A tenth is within what loads change, and more is not."""
    queue = Settlings()
    queue.full(0.05)
    assert 3 == queue.full(0.053)
    assert 2 == queue.full(0.065)
    assert 2 == queue.full(0.05)
    queue.at += REST
    assert 3 == queue.full(0.05)


def test_most_of_it_failing_halves_once_a_minute() -> None:
    """What fails is behind all of them, and more calls would not make it better."""
    queue = Settlings()
    for _ in range(7):
        queue.full(0.05)
    assert 8 == queue.tuner.calls
    assert 4 == queue.settle(0.4, 0.4, ended=8, failed=8)
    assert 4 == queue.settle(0.4, 0.4, ended=8, failed=8)
    queue.at += REST
    assert 2 == queue.settle(0.4, 0.4, ended=8, failed=8)


def test_an_outage_halves_although_a_rise_was_just_taken_back() -> None:
    """That rest is for rises."""
    queue = Settlings()
    for _ in range(3):
        queue.full(0.05)
    fallen = queue.full(0.07)

    assert 3 == fallen
    assert 1 == queue.settle(0.4, 0.4, ended=8, failed=8)


def test_some_failures_halve_nothing() -> None:
    """Single jobs fail everywhere."""
    queue = Settlings()
    queue.full(0.05)

    assert 2 == queue.settle(0.4, 0.4, ended=8, failed=4)


def test_a_service_that_becomes_slow_halves() -> None:
    """Against the least that calls took in the last hour; after that hour it is as slow as usual."""
    queue = Settlings()
    for _ in range(3):
        queue.full(0.05)
    assert 2 == queue.full(0.08)
    queue.at += 2 * HOUR
    queue.full(0.08)
    assert 4 == queue.full(0.08)


def test_calls_of_other_sizes_are_not_compared() -> None:
    """More ids in a call take longer, and no service is slow."""
    queue = Settlings()
    queue.full(0.05)
    for _ in range(FEWEST):
        queue.tuner.note(50, 1.0)

    assert 3 == queue.settle(8.0, 8.0, ended=400)


def test_a_minute_with_idle_slots_takes_one_away() -> None:
    """Half of them are enough then."""
    queue = Settlings()
    for _ in range(4):
        queue.full(0.05)
    queue.at += REST
    queue.settle(0.0, 1.0, ended=0)
    before = queue.tuner.calls
    for _ in range(int(REST) + 1):
        queue.tuner.note(1, 0.05)
        queue.settle(0.05, 5.0, ended=1)

    assert before - 1 == queue.tuner.calls


def test_chance_alone_seldom_halves() -> None:
    """Calls that vary by a half rise to the bound all the same."""
    queue = Settlings(most=10)
    for _ in range(200):
        queue.full(0.05, spread=0.8)

    assert 10 == queue.tuner.calls


@given(
    st.lists(st.tuples(st.floats(0, 10), st.floats(0, 20), st.integers(0, 50), st.integers(0, 50), st.floats(0.1, 120)))
)
def test_it_stays_within_its_bounds_and_rises_one_at_a_time(
    settlings: list[tuple[float, float, int, int, float]],
) -> None:
    """Whatever is settled, and whenever."""
    queue = Settlings(least=2, most=7)
    for busy, room, ended, failed, seconds in settlings:
        queue.at += seconds
        for _ in range(ended):
            queue.tuner.note(1, busy / ended)
        before = queue.tuner.calls
        after = queue.settle(busy, room, ended=ended + failed, failed=failed)

        assert 2 <= after <= 7
        assert after <= before + 1


def test_a_holder_goes_on_from_what_another_came_to() -> None:
    """Within its own bounds."""
    tuner = CallsTuner(2, 8)
    numbers = []
    for calls in (0, 5, 100):
        tuner.resume(calls)
        numbers.append(tuner.calls)

    assert [2, 5, 8] == numbers

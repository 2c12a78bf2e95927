"""How many ids a call has: the fit and the rule alone."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowkiq_lambda.engine.ids_tuner import HURT_FOR, LOOK, Fit, IdsTuner
from lowkiq_lambda.engine.settled import Settled
from lowkiq_lambda.jobs.auto import Auto

AUTO: Final = Auto(1, 100)


def calls(tuner: IdsTuner, fixed: float, each: float, *, at: float = 0.0, failed: int = 0) -> int:
    """So many calls that a look comes, each full; the ids of a call then."""
    ids = tuner.ids
    for number in range(LOOK):
        size = max(1, ids - number % 2)
        tuner.note(size, fixed + each * size)
    settled = Settled(at=at, busy=1.0, room=1.0, ended=LOOK, failed=failed, is_short=True)
    tuner.settled(settled)
    return tuner.ids


def test_the_line_through_calls_tells_what_is_fixed() -> None:
    """Seconds of a call, and of an id; of one size nothing is told."""
    fit = Fit.of([(1, 0.011), (5, 0.015), (10, 0.02)])

    assert fit is not None
    assert (fit.fixed, fit.each) == pytest.approx((0.01, 0.001))
    assert None is Fit.of([(3, 0.1)] * 9)
    assert None is Fit.of([])


def test_calls_grow_until_their_fixed_time_is_little() -> None:
    """10 ms of a call beside 1 ms of an id: with 100 ids it is a tenth."""
    tuner = IdsTuner(AUTO, lease=30.0)

    assert [2, 4, 8, 16, 32, 64, 100] == [calls(tuner, 0.01, 0.001) for _ in range(7)]
    assert 100 == calls(tuner, 0.01, 0.001)


def test_calls_without_fixed_time_stay_small() -> None:
    """What takes as long for each id gains nothing."""
    tuner = IdsTuner(AUTO, lease=30.0)
    for _ in range(5):
        calls(tuner, 0.0, 0.01)

    assert tuner.ids <= 2


@pytest.mark.parametrize(("lag", "lease", "ids"), [(100.0, 100.0, 100), (5.0, 30.0, 50), (100.0, 3.0, 30)])
def test_a_call_is_no_longer_than_the_lag_and_the_lease_allow(lag: float, lease: float, ids: int) -> None:
    """A tenth of each, and a second."""
    assert ids == Fit(1.0, 0.01).ids(min(1.0, lag / 10, lease / 10), 1_000)


def test_calls_do_not_grow_within_an_hour_of_a_death_or_a_group_failure() -> None:
    """The larger a call, the more ids become suspects."""
    dead, failing = IdsTuner(AUTO, lease=30.0), IdsTuner(AUTO, lease=30.0)
    dead.hurt(100.0)
    calls(failing, 0.01, 0.001, at=100.0, failed=LOOK)

    assert [1, 1] == [calls(tuner, 0.01, 0.001, at=200.0) for tuner in (dead, failing)]
    assert [2, 2] == [calls(tuner, 0.01, 0.001, at=101.0 + HURT_FOR) for tuner in (dead, failing)]


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 1), st.booleans())))
def test_ids_stay_within_bounds_and_double_at_most(loads: list[tuple[float, float, bool]]) -> None:
    """Whatever calls take."""
    tuner = IdsTuner(Auto(3, 40), lease=30.0)
    for fixed, each, is_late in loads:
        before = tuner.ids
        after = calls(tuner, fixed, each, failed=LOOK if is_late else 0)

        assert 3 <= after <= 40
        assert after <= 2 * before


def test_a_rise_beyond_the_bounds_is_cut() -> None:
    """What another holder came to with other bounds."""
    tuner = IdsTuner(Auto(3, 40), lease=30.0)
    tuner.resume(500)

    assert 40 == tuner.ids

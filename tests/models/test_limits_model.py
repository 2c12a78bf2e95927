"""X-30: limits in every order of steps of two visits, within bounds; and each of these guards is needed."""

from typing import Final

import pytest

from tests.kit.examples import mostly_nightly
from tests.models.catalog import LIMITS, PERMITS, RATE, limits_explored
from tests.models.limits import LimitBounds

SHORT: Final = LimitBounds(end=1, visits=2, permits=1, rate=1, want=1, stays=0)
SOUND: Final = {"permits": PERMITS, "permits, shortly": PERMITS._replace(end=2), "rate": RATE}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", mostly_nightly(SOUND, "permits, shortly"))
def test_x30_no_order_of_steps_exceeds_a_limit(name: str) -> None:
    """Deaths, calls that are late, doubled or lost, and a clock ahead."""
    found = limits_explored(SOUND[name])

    assert (None, ()) == (found.fault, found.trace)


@pytest.mark.nightly("three visits have many orders of steps, and each check has two")
@pytest.mark.timeout(300)
def test_x30_a_late_call_of_a_visit_takes_no_permit_of_another_one() -> None:
    """Its copies name the visit, so that the permit of the next one stays."""
    _, bounds = LIMITS.guards["nonce"]
    found = bounds.explored(None)

    assert (None, False) == (found.fault, found.whole)


def test_all_that_may_happen_to_limits_happens_in_the_model() -> None:
    """Each action is taken in some order."""
    assert [] == LIMITS.never_done(limits_explored(SHORT).labels)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("guard", LIMITS.guards)
def test_x30_without_any_of_its_guards_a_limit_is_exceeded(guard: str) -> None:
    """The model finds what each guard prevents, and tells the steps that lead there."""
    limit, bounds = LIMITS.guards[guard]
    found = bounds.explored(guard)

    assert limit == found.fault
    assert found.trace

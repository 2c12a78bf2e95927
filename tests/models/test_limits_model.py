"""X-30: limits in every order of steps of two visits, within bounds; and each of these guards is needed."""

from functools import partial
from typing import Final

import pytest

from tests.kit.examples import mostly_nightly
from tests.models.explorer import Explored, explore
from tests.models.limits import Guard, LimitBounds, LimitsWorld, fault, forget, steps

PERMITS: Final = LimitBounds(end=3, visits=2, permits=1, rate=0, want=0, stays=0)
RATE: Final = LimitBounds(end=3, visits=2, permits=2, rate=1, want=1, stays=0)
SHORT: Final = LimitBounds(end=1, visits=2, permits=1, rate=1, want=1, stays=0)
SOUND: Final = {"permits": PERMITS, "rate": RATE}
ACTIONS: Final = {
    *("A enters", "B enters", " +1", "begins an id", "leaves", "time goes by"),
    *("arrives, its answer is lost", "is answered None", "is answered 1"),
}


def explored(bounds: LimitBounds, without: Guard | None = None) -> Explored:
    """All orders of steps."""
    bounded = partial(steps, bounds=bounds, without=without)
    return explore(LimitsWorld(), bounded, lambda world: fault(world, bounds), lambda _: None, forget)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", mostly_nightly(SOUND, "permits"))
def test_x30_no_order_of_steps_exceeds_a_limit(name: str) -> None:
    """Deaths, calls that are late, doubled or lost, and a clock ahead."""
    found = explored(SOUND[name])

    assert (None, ()) == (found.fault, found.trace)


def test_all_that_may_happen_to_limits_happens_in_the_model() -> None:
    """Each action is taken in some order."""
    seen = explored(SHORT).labels

    assert set() == {action for action in ACTIONS if not any(action in label for label in seen)}


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("guard", "bounds", "limit"),
    [
        ("permits", PERMITS, "permits"),
        ("margin", PERMITS, "permits"),
        ("trust from the sending", PERMITS, "permits"),
        ("rate", RATE, "rate"),
        ("slack", RATE, "rate"),
    ],
)
def test_x30_without_any_of_its_guards_a_limit_is_exceeded(guard: Guard, bounds: LimitBounds, limit: str) -> None:
    """The model finds what each guard prevents, and tells the steps that lead there."""
    found = explored(bounds, without=guard)

    assert limit == found.fault
    assert found.trace

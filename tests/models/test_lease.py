"""P1, P2, P3: a lease in every order of steps, within bounds; and each of its guards is needed."""

from functools import cache, partial
from typing import Final

import pytest

from tests.kit.examples import mostly_nightly
from tests.models.explorer import Explored, explore
from tests.models.lease import Guard, LeaseWorld, fault, fault_of_end
from tests.models.lease_steps import steps

ACTIONS: Final = {
    *("a push", "time goes by", "the key is evicted"),
    *("acquires", "settles", "gives up", "dies", "stands still", "goes on", "trusts no longer", "'s handler ends"),
    *("arrives, its answer is lost", "ahead of time", "is answered None", "is answered ()", "is answered (1,)"),
}
"""What may happen in the model: one that never does a thing proves nothing of it."""

# Two tests look at what was found in the same bounds.
pytestmark = pytest.mark.xdist_group("lease_model")


@cache
def explored(end: int, payloads: int, without: Guard | None = None) -> Explored:
    """All orders of steps, with one session of each of the two processes."""
    bounded = partial(steps, end=end, payloads=payloads, sessions=1, without=without)
    return explore(LeaseWorld(), bounded, fault, fault_of_end)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("end", "payloads"), mostly_nightly([(0, 3), (1, 2), (2, 1)], (2, 1)))
def test_p1_p2_p3_no_order_of_steps_of_a_lease_breaks_a_promise(end: int, payloads: int) -> None:
    """Deaths, freezes, calls and answers that are late, doubled or lost, slow clocks, evicted keys, a clock ahead."""
    found = explored(end=end, payloads=payloads)

    assert (None, ()) == (found.fault, found.trace)
    assert found.ends > 0


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("guard", "end", "payloads", "promise"),
    mostly_nightly(
        [
            ("lease", 4, 1, "P1"),
            ("until", 4, 1, "P1"),
            ("key", 4, 1, "P1"),
            ("nonce and token", 2, 2, "P2"),
            ("token", 0, 3, "P2"),
            ("call number", 2, 2, "P2"),
            ("recovery", 2, 2, "P2"),
            ("recovery in order", 2, 2, "P3"),
            ("margin", 4, 1, "P1"),
            ("trust from the sending", 4, 1, "P1"),
        ],
        # Each promise, and each number of ends.
        ("lease", 4, 1, "P1"),
        ("until", 4, 1, "P1"),
        ("key", 4, 1, "P1"),
        ("recovery", 2, 2, "P2"),
        ("recovery in order", 2, 2, "P3"),
    ),
)
def test_p1_p2_p3_without_any_of_its_guards_a_lease_breaks_a_promise(
    guard: Guard, end: int, payloads: int, promise: str
) -> None:
    """The model finds what each guard prevents, and tells the steps that lead there."""
    found = explored(end, payloads, without=guard)

    assert promise == found.fault
    assert found.trace


def test_all_that_may_happen_to_a_lease_happens_in_the_model() -> None:
    """Each action is taken in some order."""
    seen = explored(end=2, payloads=1).labels

    assert set() == {action for action in ACTIONS if not any(action in label for label in seen)}

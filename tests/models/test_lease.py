"""P1, P2, P3: a lease in every order of steps, within bounds; and each of its guards is needed."""

from functools import cache
from typing import Final

import pytest

from tests.kit.examples import mostly_nightly
from tests.models.catalog import LEASE, lease_explored

ACTIONS: Final = {
    *("a push", "time goes by", "the key is evicted"),
    *("acquires", "settles", "gives up", "dies", "stands still", "goes on", "trusts no longer", "'s handler ends"),
    *("arrives, its answer is lost", "ahead of time", "is answered None", "is answered ()", "is answered (1,)"),
}
"""What may happen in the model: one that never does a thing proves nothing of it."""

# Two tests look at what was found in the same bounds.
pytestmark = pytest.mark.xdist_group("lease_model")


explored = cache(lease_explored)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("end", "payloads"), mostly_nightly([(0, 3), (1, 2), (2, 1)], (2, 1)))
def test_p1_p2_p3_no_order_of_steps_of_a_lease_breaks_a_promise(end: int, payloads: int) -> None:
    """Deaths, freezes, calls and answers that are late, doubled or lost, slow clocks, evicted keys, a clock ahead."""
    found = explored(end=end, payloads=payloads)

    assert (None, ()) == (found.fault, found.trace)
    assert found.ends > 0


@pytest.mark.timeout(120)
# Each promise, and each number of ends.
@pytest.mark.parametrize(
    "guard", mostly_nightly(LEASE.guards, "lease", "until", "key", "recovery", "recovery in order")
)
def test_p1_p2_p3_without_any_of_its_guards_a_lease_breaks_a_promise(guard: str) -> None:
    """The model finds what each guard prevents, and tells the steps that lead there."""
    promise, bounds = LEASE.guards[guard]
    found = bounds.explored(guard)

    assert promise == found.fault
    assert found.trace


def test_all_that_may_happen_to_a_lease_happens_in_the_model() -> None:
    """Each action is taken in some order."""
    seen = explored(end=2, payloads=1).labels

    assert set() == {action for action in ACTIONS if not any(action in label for label in seen)}

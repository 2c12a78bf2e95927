"""P1, P2, P3: a lease in every order of steps, within bounds; and each of its guards is needed."""

from functools import cache, partial

import pytest

from tests.kit.examples import mostly_nightly
from tests.models.catalog import LEASE, lease_explored
from tests.models.explorer import explore
from tests.models.lease import LeaseWorld, fault, symmetric
from tests.models.lease_steps import steps

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
    found = explored(end=2, payloads=1)

    assert [] == LEASE.never_done(found.labels)
    assert found.whole


def test_worlds_that_differ_in_names_alone_are_one() -> None:
    """Half of the states, but for those in which both processes do the same."""
    bounded = partial(steps, end=0, payloads=1, sessions=1)
    everything = explore(LeaseWorld(), bounded, fault, fault)
    halved = explore(LeaseWorld(), bounded, fault, fault, symmetry=symmetric)

    assert (None, None) == (everything.fault, halved.fault)
    assert everything.states / 2 <= halved.states < everything.states * 0.55
    assert everything.depth == halved.depth

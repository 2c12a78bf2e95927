"""X-30, B-12: the wait list of a limited queue, and the rate of a tenant, in every order of steps within bounds."""

from typing import Final

import pytest

from tests.kit.examples import mostly_nightly
from tests.models.catalog import TENANTS, WAITS, ModelCase

CASES: Final = (WAITS, TENANTS)
BOUNDS: Final = {bounds.words: bounds for case in CASES for bounds in case.quick}
SHORT: Final = [words for words in BOUNDS if words != WAITS.quick[0].words]
"""The others are of a second; each of the guards has these bounds too."""
GUARDS: Final = [(case, guard) for case in CASES for guard in case.guards]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("words", mostly_nightly(BOUNDS, *SHORT))
def test_x30_no_order_of_steps_breaks_a_promise(words: str) -> None:
    """Nobody is passed over, an offer holds, a free permit is used, and no more ids of a tenant begin than may."""
    explored = BOUNDS[words].explored(None)

    assert (None, (), True) == (explored.fault, explored.trace, explored.whole)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_all_that_may_happen_happens_in_the_model(case: ModelCase) -> None:
    """Each action is taken in some order."""
    assert [] == case.never_done(case.quick[-1].explored(None).labels)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("case", "guard"), GUARDS, ids=[f"{case.name}: {guard}" for case, guard in GUARDS])
def test_x30_without_any_of_its_guards_a_promise_is_broken(case: ModelCase, guard: str) -> None:
    """The model finds what each guard prevents, and tells the steps that lead there."""
    promise, bounds = case.guards[guard]
    explored = bounds.explored(guard)

    assert promise == explored.fault
    assert explored.trace

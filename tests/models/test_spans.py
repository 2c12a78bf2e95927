"""P3: arrival numbers in every order of pushes, drains and moves, within bounds."""

import pytest

from tests.models.catalog import SPANS, ModelBounds


@pytest.mark.parametrize("bounds", SPANS.quick, ids=lambda bounds: bounds.words)
def test_p3_no_order_of_moves_mixes_up_numbers(bounds: ModelBounds) -> None:
    """None is given twice, later ones are larger, and each move takes up as much room as the one before."""
    found = bounds.explored(None)

    assert (None, ()) == (found.fault, found.trace)
    assert found.ends > 0
    assert [] == SPANS.never_done(found.labels)


@pytest.mark.parametrize("guard", SPANS.guards)
def test_p3_without_a_guard_numbers_are_mixed_up_or_run_out(guard: str) -> None:
    """The model finds what each guard prevents, and tells the steps that lead there."""
    broken, bounds = SPANS.guards[guard]
    found = bounds.explored(guard)

    assert broken == found.fault
    assert found.trace

"""A-39: completion is right in every order of the steps, and each of its guards is needed."""

import pytest

from tests.tasks.model import MANY_ITEMS, MUCH_PUT_BACK, Bounds, Guard, violation


@pytest.mark.parametrize("bounds", [MANY_ITEMS, MUCH_PUT_BACK])
def test_a39_no_order_of_steps_completes_a_task_with_an_open_item(bounds: Bounds) -> None:
    """Whatever runs, pushes, dies and is put back between the reads of a reader."""
    assert None is violation(bounds)


@pytest.mark.parametrize("guard", ["second wave", "version", "revived"])
def test_a39_without_any_of_its_guards_a_reader_is_wrong(guard: Guard) -> None:
    """Two waves, the record's version, and how often a dead item was put back: the model finds what each prevents."""
    assert any(violation(bounds, without=guard) for bounds in (MUCH_PUT_BACK, MANY_ITEMS))

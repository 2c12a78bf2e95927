"""A-39: callbacks of nested tasks are right in every order of the steps, and each guard is needed."""

from typing import get_args

import pytest

from tests.kit.examples import mostly_nightly
from tests.tasks.nested_model import CallbackModel, Guard

SMALL = ((False, 0), (True, 0))
"""Whether there is an `on_success`, and how often dead items are put back."""


@pytest.mark.parametrize(("has_success", "put_back"), mostly_nightly([*SMALL, (False, 1), (True, 1)], *SMALL))
def test_a39_no_order_of_steps_tells_a_callback_wrongly_twice_or_never(*, has_success: bool, put_back: int) -> None:
    """Whatever runs, dies, is put back and makes a task, between the steps of two looks that may die."""
    assert CallbackModel(has_success=has_success, put_back=put_back).violation() is None


@pytest.mark.parametrize("guard", get_args(Guard))
def test_a39_without_any_of_their_guards_callbacks_are_wrong(guard: Guard) -> None:
    """The model finds what each prevents."""
    # A task that may succeed is looked at for longer, so that one guard is needed by others alone.
    assert CallbackModel(without=guard, has_success=guard != "one count").violation() is not None

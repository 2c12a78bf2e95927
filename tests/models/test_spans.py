"""P3: arrival numbers in every order of pushes, drains and moves, within bounds."""

from functools import partial

import pytest

from lowkiq_lambda.store.shard.moving import MARGIN, SLOT
from tests.models.explorer import Explored, explore
from tests.models.spans import IDS, Guard, SpanWorld, fault, room_taken, steps

A_MOVE = MARGIN + SLOT
"""What a move may take up at most, besides what is carried."""


def explored(moves: int, pushes: int, without: Guard | None = None) -> Explored:
    """All orders of steps."""

    def found(world: SpanWorld) -> str | None:
        if room_taken(world) > world.moves * A_MOVE + IDS * pushes:
            return "moves take up more and more room"
        return fault(world)

    return explore(SpanWorld(), partial(steps, moves=moves, pushes=pushes, without=without), found, lambda _: None)


@pytest.mark.parametrize(("moves", "pushes"), [(8, 1), (3, 2)])
def test_p3_no_order_of_moves_mixes_up_numbers(moves: int, pushes: int) -> None:
    """None is given twice, later ones are larger, and each move takes up as much room as the one before."""
    found = explored(moves, pushes)

    assert (None, ()) == (found.fault, found.trace)
    assert found.ends > 0


@pytest.mark.parametrize(
    ("guard", "broken"),
    [("bases", "a number is given twice"), ("kin", "moves take up more and more room")],
)
def test_p3_without_a_guard_numbers_are_mixed_up_or_run_out(guard: Guard, broken: str) -> None:
    """The model finds what each guard prevents, and tells the steps that lead there."""
    found = explored(8, 1, without=guard)

    assert broken == found.fault
    assert found.trace

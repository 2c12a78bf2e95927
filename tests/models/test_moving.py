"""P1, P2, P3: a group of shards moves, and walks back, in every order of steps; and each guard is needed."""

from functools import partial
from typing import Final

import pytest

from tests.kit.examples import mostly_nightly
from tests.models.explorer import Explored, explore
from tests.models.moving import Guard, Mover, at_first, fault, fault_of_end
from tests.models.moving_steps import steps

FORTH: Final = (Mover(1), Mover(1))
TURNED: Final = (*FORTH, Mover(2, "turn"))
"""Movers of the second epoch turn the move round while those of the first may still stall somewhere."""
TURNED_TWICE: Final = (*TURNED, Mover(2, "turn"))
FORTH_AGAIN: Final = (Mover(1), Mover(2, "turn"), Mover(3, "again"))


def explored(movers: tuple[Mover, ...], without: Guard | None = None) -> Explored:
    """All orders of steps with these movers."""
    return explore(at_first(movers), partial(steps, without=without), fault, fault_of_end)


OTHERS = [
    pytest.param(movers, marks=pytest.mark.nightly("one mover in each check")) for movers in (TURNED_TWICE, FORTH_AGAIN)
]


@pytest.mark.parametrize("movers", [FORTH, *OTHERS])
def test_p1_p2_p3_no_order_of_steps_of_a_move_breaks_a_promise(movers: tuple[Mover, ...]) -> None:
    """Whoever stalls or dies, and however late a push arrives: one holder, nothing lost or repeated, order kept."""
    found = explored(movers)

    assert (None, ()) == (found.fault, found.trace)
    assert found.ends > 0


@pytest.mark.parametrize(
    ("guard", "movers", "promise"),
    mostly_nightly(
        [
            ("token before role", FORTH, "P3"),
            ("receiving rests", FORTH, "P3"),
            ("seal waits", FORTH, "P1"),
            ("receive fenced", FORTH, "P3"),
            ("open waits", FORTH, "P3"),
            ("drop fenced", TURNED, "P3"),
            ("epochs", FORTH_AGAIN, "P2"),
            ("late pushes", FORTH_AGAIN, "P3"),
            ("reopening noted", FORTH_AGAIN, "P2"),
        ],
        # Each promise, and each kind of movers.
        ("token before role", FORTH, "P3"),
        ("seal waits", FORTH, "P1"),
        ("drop fenced", TURNED, "P3"),
        ("epochs", FORTH_AGAIN, "P2"),
    ),
)
def test_p1_p2_p3_without_any_of_its_guards_a_move_breaks_a_promise(
    guard: Guard, movers: tuple[Mover, ...], promise: str
) -> None:
    """The model finds what each guard prevents, and tells the steps that lead there."""
    found = explored(movers, without=guard)

    assert promise == found.fault
    assert found.trace


def test_a_world_that_breaks_a_promise_is_told_with_its_fewest_steps() -> None:
    """What the models say rests on the search: a fault that can be reached is found, by the shortest way."""
    found = explore(0, lambda at: ((f"+{step}", at + step) for step in (1, 3) if at < 9), _is_seven, _is_odd)

    assert ("seven", ("+1", "+3", "+3")) == (found.fault, found.trace)


def _is_seven(at: int) -> str | None:
    return "seven" if at == 7 else None


def _is_odd(at: int) -> str | None:
    return "odd" if at % 2 else None


def test_an_end_that_breaks_a_promise_is_told() -> None:
    """A state that nothing leads on from is judged as an end."""
    found = explore(4, lambda at: ((f"-{step}", at - step) for step in (3,) if at > 0), _is_seven, _is_negative)

    assert ("negative", ("-3", "-3")) == (found.fault, found.trace)


def _is_negative(at: int) -> str | None:
    return "negative" if at < 0 else None

"""P1, P2, P3: a group of shards moves, and walks back, in every order of steps; and each guard is needed."""

import pytest

from tests.kit.examples import mostly_nightly
from tests.models.catalog import FORTH, FORTH_AGAIN, MOVING, TURNED_TWICE, moving_explored
from tests.models.explorer import explore
from tests.models.moving import Mover

OTHERS = [
    pytest.param(movers, marks=pytest.mark.nightly("one mover in each check")) for movers in (TURNED_TWICE, FORTH_AGAIN)
]


@pytest.mark.parametrize("movers", [FORTH, *OTHERS])
def test_p1_p2_p3_no_order_of_steps_of_a_move_breaks_a_promise(movers: tuple[Mover, ...]) -> None:
    """Whoever stalls or dies, and however late a push arrives: one holder, nothing lost or repeated, order kept."""
    found = moving_explored(movers)

    assert (None, ()) == (found.fault, found.trace)
    assert found.ends > 0


def test_all_that_may_happen_to_a_move_happens_in_the_model() -> None:
    """Each action is taken in some order."""
    assert [] == MOVING.never_done(moving_explored(FORTH).labels)


# Each promise, and each kind of movers.
@pytest.mark.parametrize(
    "guard", mostly_nightly(MOVING.guards, "token before role", "seal waits", "drop fenced", "epochs")
)
def test_p1_p2_p3_without_any_of_its_guards_a_move_breaks_a_promise(guard: str) -> None:
    """The model finds what each guard prevents, and tells the steps that lead there."""
    promise, bounds = MOVING.guards[guard]
    found = bounds.explored(guard)

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


def test_what_needs_too_many_steps_is_left_out_and_that_is_told() -> None:
    """So a search that was cut short says so; one that was not had all states within the bound."""

    def found(deepest: int | None) -> tuple[int, int, bool]:
        one = explore(0, lambda at: [("+1", at + 1)] if at < 9 else [], lambda _: None, lambda _: None, deepest=deepest)
        return one.states, one.depth, one.whole

    assert [(4, 3, False), (10, 9, True), (10, 9, True)] == [found(3), found(9), found(None)]


def _is_negative(at: int) -> str | None:
    return "negative" if at < 0 else None

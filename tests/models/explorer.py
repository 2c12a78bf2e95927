"""Every order of steps of a model is gone through, the shortest first."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple, TypeAlias, TypeVar

State = TypeVar("State", bound=Hashable)
Steps: TypeAlias = Callable[[State], Iterable[tuple[str, State]]]
"""The steps that are possible in a state: what is done, and the state that it leads to."""
Fault: TypeAlias = Callable[[State], str | None]
"""The promise that a state breaks, or None."""


class Explored(NamedTuple):
    """What was found."""

    states: int
    ends: int
    """How many states have no next one."""
    fault: str | None
    """The first promise that was broken; the search stops there."""
    trace: tuple[str, ...]
    """The fewest steps that lead to the fault."""
    depth: int
    """The most steps that any state needs which was looked at."""
    labels: frozenset[str]
    """What was done in any order."""
    whole: bool = True
    """Whether all that can be reached was looked at: not if states were left out because they need more steps."""


def explore(  # noqa: PLR0913 - the last three by keyword, few of them at a time
    first: State,
    steps: Steps[State],
    fault: Fault[State],
    fault_of_end: Fault[State],
    *,
    forget: Callable[[State], State] = lambda state: state,
    symmetry: Callable[[State], State] = lambda state: state,
    deepest: int | None = None,
) -> Explored:
    """Look at all states that can be reached. Those from which nothing leads on must please `fault_of_end`, too.

    `forget` takes from a state all that makes no difference any more, so that equal ones are looked at once. `symmetry`
    chooses one of the states that differ in names alone; in a trace names may change from step to step then. With
    `deepest` states that need more steps are left out.
    """
    came_by: dict[State, tuple[State, str] | None] = {first: None}
    todo, later, depth = deque([first]), deque[State](), 0
    ends, labels, state = 0, set[str](), first
    while todo or (later and depth != deepest):
        if not todo:
            todo, later, depth = later, todo, depth + 1
        state = todo.popleft()
        is_end = True
        broken = fault(state)
        for label, after in steps(state):
            is_end = False
            labels.add(label)
            after = symmetry(forget(after))  # noqa: PLW2901 - the same state, without what does not count
            if after not in came_by:
                came_by[after] = (state, label)
                later.append(after)
        if is_end:
            ends += 1
            broken = broken or fault_of_end(state)
        if broken:
            trace = _trace(came_by, state)
            return Explored(len(came_by), ends, broken, trace, depth, frozenset(labels), whole=False)
    return Explored(len(came_by) - len(later), ends, None, (), depth, frozenset(labels), whole=not later)


def _trace(came_by: dict[State, tuple[State, str] | None], state: State) -> tuple[str, ...]:
    labels = []
    while step := came_by[state]:
        state, label = step
        labels.append(label)
    return tuple(reversed(labels))

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
    labels: frozenset[str]
    """What was done in any order."""


def explore(first: State, steps: Steps[State], fault: Fault[State], fault_of_end: Fault[State]) -> Explored:
    """Look at all states that can be reached. Those from which nothing leads on must please `fault_of_end`, too."""
    came_by: dict[State, tuple[State, str] | None] = {first: None}
    todo, ends, labels = deque([first]), 0, set[str]()
    while todo:
        state = todo.popleft()
        is_end = True
        broken = fault(state)
        for label, after in steps(state):
            is_end = False
            labels.add(label)
            if after not in came_by:
                came_by[after] = (state, label)
                todo.append(after)
        if is_end:
            ends += 1
            broken = broken or fault_of_end(state)
        if broken:
            return Explored(len(came_by), ends, broken, _trace(came_by, state), frozenset(labels))
    return Explored(len(came_by), ends, None, (), frozenset(labels))


def _trace(came_by: dict[State, tuple[State, str] | None], state: State) -> tuple[str, ...]:
    labels = []
    while step := came_by[state]:
        state, label = step
        labels.append(label)
    return tuple(reversed(labels))

"""Loops that are interrupted, as the engine does it: the cursor goes through JSON, and a new loop goes on after it."""

import json
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, TypeVar

T = TypeVar("T")


def in_one_go(loop: Callable[[Any], Iterable[tuple[T, Any]]]) -> list[T]:
    """The items of a loop that nothing interrupts."""
    return [item for item, _ in loop(None)]


def interrupted(loop: Callable[[Any], Iterable[tuple[T, Any]]], every: int) -> list[T]:
    """The items of all runs of a loop that is left after each `every` items, and begun anew after the last one."""
    items: list[T] = []
    cursor = None
    while run := list(islice(loop(cursor), every)):
        items += [item for item, _ in run]
        cursor = json.loads(json.dumps(run[-1][1]))
    return items

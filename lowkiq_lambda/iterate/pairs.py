"""The iterator that the functions of this room return: pairs, and how many of them there are."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Generic, TypeVar

T = TypeVar("T")
C = TypeVar("C")


class Pairs(Iterator[tuple[T, C]], Generic[T, C]):
    """An iterator of (item, cursor) pairs; `job.follow` tells people how far it is.

    `position` counts items: those before its first one, where they can be counted, and those that it has given.
    """

    def __init__(
        self,
        pairs: Iterator[tuple[T, C]],
        count: Callable[[], int | None] = lambda: None,
        *,
        position: int = 0,
        measure: Callable[[], float | None] = lambda: None,
    ) -> None:
        self._pairs = pairs
        self._count = count
        self._measure = measure
        self.position = position

    @cached_property
    def total(self) -> int | None:
        """The position at its end, None if it cannot be counted. Asked for the first time, a query runs a COUNT."""
        return self._count()

    @property
    def fraction(self) -> float | None:
        """The part of its data that it has read, from 0 to 1; None if it has another size than a number of items."""
        return self._measure()

    def __next__(self) -> tuple[T, C]:
        pair = next(self._pairs)
        self.position += 1
        return pair

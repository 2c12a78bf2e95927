"""Waiting for something to become true, with a deadline instead of a fixed rest."""

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

_FIRST_REST = 0.001
_LONGEST_REST = 0.02


def eventually(predicate: Callable[[], Found], timeout: float = 10.0, what: str | None = None) -> Found:
    """The first truthy value of `predicate`; AssertionError when `timeout` seconds brought none."""
    deadline = time.monotonic() + timeout
    rest = _FIRST_REST
    while True:
        started_at = time.monotonic()
        found = predicate()
        if found:
            return found
        # The last look begins after the deadline, so that a stopped machine is no failure of what is tested.
        if started_at >= deadline:
            raise AssertionError(f"{what or predicate} did not become true in {timeout} s (last: {found!r})")
        time.sleep(rest)
        rest = min(2 * rest, _LONGEST_REST)

"""Few requests at once read whole lists, so that no visitor keeps Redis from pushes and drains."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import Final

from lowkiq_lambda.base.errors import BackendUnavailable

AT_ONCE: Final = 2
"""In one process."""
PATIENCE: Final = 2.0
"""Seconds that a request waits for its turn."""
_room: Final = BoundedSemaphore(AT_ONCE)


@contextmanager
def scanning(*, is_scan: bool = True) -> Iterator[None]:
    """A list is read whole inside the block. Raises BackendUnavailable if others still do so after a while."""
    if not is_scan:
        yield
        return
    if not _room.acquire(timeout=PATIENCE):
        raise BackendUnavailable("Other requests search the lists right now. Try again in a moment.")
    try:
        yield
    finally:
        _room.release()


def for_seconds(seconds: float) -> Callable[[], bool]:
    """A check that is true until the seconds are over."""
    ends_at = time.monotonic() + seconds
    return lambda: time.monotonic() < ends_at

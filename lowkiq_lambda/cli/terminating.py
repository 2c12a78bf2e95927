"""TERM ends a command as Ctrl-C does: cron, systemd and containers send it, and nobody at a terminal."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Final

_ONE_REQUEST: Final = 0.1
"""Seconds in which TERM that comes again is the same request: `timeout`, for one, tells the process and its group."""


class Terminated(KeyboardInterrupt):
    """TERM came: all that makes way for Ctrl-C makes way for it."""


@contextmanager
def heeding_term() -> Iterator[None]:
    """TERM raises Terminated in the block. Outside of the main thread nothing is caught, and the block just runs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    first: list[float] = []

    def raise_terminated(_number: int, _frame: object) -> None:
        first.append(monotonic())
        if len(first) == 1 or first[-1] - first[0] > _ONE_REQUEST:
            raise Terminated

    before = signal.signal(signal.SIGTERM, raise_terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

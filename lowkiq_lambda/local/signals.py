"""Signals as values that the main thread reads one after the other, in code that may do anything.

What a handler of a signal may touch is next to nothing, so the handlers here do nothing, and the interpreter
writes each signal's number to a pipe.
"""

import os
import select
import signal
from collections.abc import Iterable
from threading import Lock
from time import monotonic
from types import FrameType, TracebackType
from typing import Any, Final, Self

from lowkiq_lambda.base.clock import LONGEST_WAIT, at_most

_WOKEN: Final = b"\0"


class Signals:
    """Catches the signals inside its block. Only the main thread of a process may enter it (E-99)."""

    def __init__(self, signals: Iterable[signal.Signals]) -> None:
        self._caught = list(signals)
        self._before: list[Any] = []
        self._read_end, self._write_end = -1, -1
        self._wakeup_before = -1
        self._open = Lock()

    def next(self, timeout: float | None = None) -> signal.Signals | None:
        """The next signal that came; None after `timeout` seconds without one, or when woken."""
        ends_at = None if timeout is None else monotonic() + timeout
        while True:
            left = None if ends_at is None else ends_at - monotonic()
            readable, _, _ = select.select([self._read_end], [], [], at_most(left))
            if not readable:
                if left is not None and left <= LONGEST_WAIT:
                    return None
                continue
            number = os.read(self._read_end, 1)
            if number == _WOKEN:
                return None
            # The pipe gets every signal that has a handler, also those of other code.
            if number[0] in self._caught:
                return signal.Signals(number[0])

    def wake(self) -> None:
        """Let `next` return; for other threads. Behind the block it does nothing."""
        self._write(_WOKEN)

    def send(self, caught: signal.Signals) -> None:
        """Let `next` return that, as if the signal had come; for other threads. Behind the block it does nothing."""
        self._write(bytes([caught]))

    def _write(self, number: bytes) -> None:
        with self._open:
            if self._write_end >= 0:
                os.write(self._write_end, number)

    def __enter__(self) -> Self:
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)
        self._wakeup_before = signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        self._before = [signal.signal(caught, _nothing) for caught in self._caught]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for caught, before in zip(self._caught, self._before, strict=True):
            signal.signal(caught, before)
        signal.set_wakeup_fd(self._wakeup_before)
        # A thread that wakes too late must not write to what has the number by then.
        with self._open:
            os.close(self._read_end)
            os.close(self._write_end)
            self._read_end = self._write_end = -1


def _nothing(_number: int, _frame: FrameType | None) -> None:
    """Catches a signal; the pipe reports it."""

"""A terminal that somebody answers questions at."""

import io
import os
import pty
from collections.abc import Iterator
from contextlib import contextmanager

NO_MORE = "\x04"
"""Typed at the beginning of a line it ends the input."""


class Terminal(io.StringIO):
    """The standard input of this process, with what is typed."""

    def isatty(self) -> bool:
        """It is one."""
        return True


@contextmanager
def terminal(typed: str) -> Iterator[int]:
    """The standard input of another process: a file descriptor, open inside the block."""
    ours, theirs = pty.openpty()
    try:
        os.write(ours, (typed or NO_MORE).encode())
        yield theirs
    finally:
        os.close(theirs)
        os.close(ours)

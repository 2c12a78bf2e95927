"""A command in a terminal of its own: what stands on its screen, and keys for it."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

PATIENCE: Final = 60.0
"""Seconds that a screen may take to show something."""
_MOVES: Final = re.compile(r"\x1b\[[0-9;]*[Hf]")
_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|[()][A-Z0-9]|[=>78])")


class Screen:
    """The terminal of a process."""

    def __init__(self, ours: int, process: "subprocess.Popen[bytes]") -> None:
        self._ours = ours
        self._process = process
        self.raw = ""
        """All that the process has written since the last `press`."""

    @property
    def text(self) -> str:
        """The same without the escape sequences of terminals."""
        return _ESCAPES.sub("", _MOVES.sub("\n", self.raw))

    def press(self, keys: str) -> None:
        """Type these; what was written before is forgotten."""
        self.raw = ""
        os.write(self._ours, keys.encode())

    def until(self, pattern: str) -> str:
        """What is written until it matches. Fails if that takes too long, or the process ends before."""
        ends_at = time.monotonic() + PATIENCE
        while not re.search(pattern, self.text, re.DOTALL):
            assert time.monotonic() < ends_at, f"{pattern!r} is not on the screen: {self.text[-2_000:]!r}"
            assert self._read(), f"the process ended without {pattern!r}: {self.text[-2_000:]!r}"
        return self.text

    def ended(self) -> int:
        """The exit code, once the process has ended."""
        while self._read():
            pass
        return self._process.wait(PATIENCE)

    def _read(self) -> bool:
        """Take what is written within a moment; whether the process may write more."""
        if not select.select([self._ours], [], [], PATIENCE)[0]:
            return False
        try:
            part = os.read(self._ours, 65_536)
        except OSError:
            # So Linux tells that the last one who had the terminal is gone.
            return False
        self.raw += part.decode(errors="replace")
        return bool(part)


@contextmanager
def terminal_of(
    command: Sequence[str], env: Mapping[str, str], *, columns: int = 80, lines: int = 30
) -> Iterator[Screen]:
    """The command with a terminal of that size; it is killed at the end of the block if it has not ended."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    # COLUMNS and LINES say another size than the terminal has.
    own = {name: value for name, value in env.items() if name not in {"COLUMNS", "LINES"}}
    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={"TERM": "xterm-256color", **own},
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Screen(ours, process)
    finally:
        process.kill()
        process.wait(PATIENCE)
        os.close(ours)

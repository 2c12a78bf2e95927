"""A child's end of the connection to its parent: words come in, a status goes out each second."""

import logging
import os
import select
import socket
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, Thread
from time import monotonic
from typing import Final

import msgspec

from lowkiq_lambda.local.processes.messages import WORDS, Order, Status, Word

logger = logging.getLogger(__name__)

STATUS_INTERVAL: Final = 1.0
_BOOT_INTERVAL: Final = 0.02
"""Seconds between two looks whether the daemon runs by now: the parent is to hear of that at once."""
_MOST: Final = 65_536


class ParentLink:
    """Read by a thread of its own, so that a child is told to stop even while it imports its app."""

    def __init__(self, descriptor: int) -> None:
        # What handlers start must not keep the connection open.
        os.set_inheritable(descriptor, False)  # noqa: FBT003 - the function takes no keywords
        self._socket = socket.socket(fileno=descriptor)
        self._rest = b""
        self._obey: Callable[[Word], None] | None = None
        self._status: Callable[[], Status] | None = None
        self._wants_quiet = False
        self._beginning = Lock()

    def order(self) -> Order:
        """What the child is to do, which the parent says first; a thread waits for more from then on."""
        while not (lines := self._read()):
            pass
        if lines[0] is None:
            os._exit(0)
        Thread(target=self._run, args=(lines[1:],), name="lowkiq-parent", daemon=True).start()
        return msgspec.json.decode(lines[0], type=Order)

    def begin(self, obey: Callable[[Word], None], status: Callable[[], Status]) -> None:
        """The daemon is about to start: from now on it stops in good order, and the parent hears how it is."""
        with self._beginning:
            self._obey, self._status = obey, status
            if self._wants_quiet:
                obey("quiet")

    def _run(self, lines: list[bytes | None]) -> None:
        tells_at = monotonic()
        while True:
            for line in lines:
                self._hear(line)
                if line is None:
                    return
            if monotonic() >= tells_at:
                tells_at = monotonic() + (STATUS_INTERVAL if self._tell() else _BOOT_INTERVAL)
            readable, _, _ = select.select([self._socket], [], [], max(0.0, tells_at - monotonic()))
            lines = self._read() if readable else []

    def _read(self) -> list[bytes | None]:
        """The lines that have come; the last is None where the parent is gone."""
        part = b""
        with suppress(OSError):
            part = self._socket.recv(_MOST)
        *lines, self._rest = (self._rest + part).split(b"\n")
        return [*lines, *(() if part else (None,))]

    def _tell(self) -> bool:
        """Tell how the daemon is; False where it does not run yet."""
        status = self._status() if self._status else None
        if status is None or status.state == "starting":
            return False
        with suppress(OSError):
            self._socket.sendall(msgspec.json.encode(status) + b"\n")
        return True

    def _hear(self, line: bytes | None) -> None:
        word = "stop" if line is None else line.decode()
        with self._beginning:
            if self._obey is None:
                self._hear_at_boot(word)
                return
            if line is None:
                logger.error("the parent is gone: this process stops")
            for known in WORDS & {word}:
                self._obey(known)

    def _hear_at_boot(self, word: str) -> None:
        if word in {"stop", "now"}:
            # It has nothing yet: no lease, no job.
            os._exit(0)
        self._wants_quiet = self._wants_quiet or word == "quiet"

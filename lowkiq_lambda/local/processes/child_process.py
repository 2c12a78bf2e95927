"""A child as its parent sees it: its start, its orders, and its reports."""

import logging
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Thread

import msgspec

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.local.processes.child import FROM_TERMINAL
from lowkiq_lambda.local.processes.messages import Order, Status, Word

logger = logging.getLogger(__name__)


class ChildProcess:
    """Spawned, not forked: no lock, thread or connection of the parent is in it."""

    def __init__(self, order: Order, clock: Clock, drains: Callable[[], None]) -> None:
        """`drains` is called when the child's daemon has started, by another thread."""
        self.number = order.number
        self.nonce_prefix = order.nonce_prefix
        """What the nonces of its leases begin with, and those of no other process."""
        self.status: Status | None = None
        """Its last report."""
        self.ran_at: float | None = None
        """When its daemon had started, monotonic; None if it has not."""
        self._clock = clock
        self._drains = drains
        self._socket, theirs = socket.socketpair()
        with theirs:
            words = ["-m", "lowkiq_lambda.local.processes", order.app, str(theirs.fileno())]
            # A Ctrl-C in the first moments, when Python starts, would end it with a traceback.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, FROM_TERMINAL)
            try:
                self._process = subprocess.Popen([sys.executable, *words], pass_fds=[theirs.fileno()])
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._say(msgspec.json.encode(order))
        Thread(target=self._listen, name=f"lowkiq-child-{self.number}", daemon=True).start()

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    @property
    def returned(self) -> int | None:
        """Its exit code, or below 0 the signal that killed it; None if it still runs."""
        return self._process.poll()

    def fields(self) -> dict[str, object]:
        """The fields of a log line about it; `megabytes` (MiB) of memory."""
        fields: dict[str, object] = {"child": self.number, "pid": self.pid}
        returned = self.returned
        if returned is not None:
            fields |= {"signal": signal.Signals(-returned).name} if returned < 0 else {"code": returned}
        if self.status is not None:
            fields |= {"state": self.status.state, "megabytes": self.status.memory >> 20, "visits": self.status.visits}
        return fields

    def tell(self, word: Word) -> None:
        """Tell it to do something; a child that has ended ignores it."""
        self._say(word.encode())

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    def _say(self, line: bytes) -> None:
        with suppress(OSError):
            self._socket.sendall(line + b"\n")

    def _listen(self) -> None:
        with suppress(OSError, msgspec.DecodeError), self._socket, self._socket.makefile("rb") as lines:
            for line in lines:
                self.status = msgspec.json.decode(line, type=Status)
                if self.ran_at is None:
                    self.ran_at = self._clock.monotonic()
                    logger.info("a child drains", extra=self.fields())
                    self._drains()

"""A child process as a test handles it: wait until it stands at a point, then kill, freeze or release it."""

import multiprocessing
import os
import queue
import signal
import threading
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

import msgspec

from tests.chaos import child
from tests.chaos.child import ChildLine, Orders
from tests.chaos.scenario import Ended
from tests.kit.process_states import state_of
from tests.kit.waiting import eventually

TIMEOUT: Final = 30.0
_FORKS: Final = multiprocessing.get_context("forkserver")
# Imported once, by the server that forks: by the hundred the imports would take longer than the tests.
_FORKS.set_forkserver_preload(["pytest", child.__name__])


class Child:
    """Runs from the start of the block; killed at its end, if it still runs then."""

    def __init__(self, orders: Orders) -> None:
        self._wire, childs_end = _FORKS.Pipe()
        self._process = _FORKS.Process(target=child.main, args=(msgspec.json.encode(orders), childs_end), daemon=True)
        self._process.start()
        childs_end.close()
        self._told: queue.SimpleQueue[ChildLine] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process.pid is not None
        return self._process.pid

    def wait_at(self, point: str) -> None:
        """Return when it stands at the point."""
        told = self._told.get(timeout=TIMEOUT)
        assert point == told.at, f"the child did not come to {point!r}: {told}"

    def go_on(self) -> None:
        """Release it from the point where it stands."""
        self._wire.send_bytes(b"")

    def ended(self) -> Ended:
        """How its work ended."""
        told = self._told.get(timeout=TIMEOUT)
        assert told.ended is not None, f"the child stopped at {told.at!r}"
        return told.ended

    def code(self) -> int:
        """The exit code, once it has ended by itself."""
        self._process.join(TIMEOUT)
        assert self._process.exitcode is not None, f"the child has not ended in {TIMEOUT} s"
        return self._process.exitcode

    def kill(self) -> None:
        """SIGKILL; returns when the process is gone."""
        self._process.kill()
        self._process.join(TIMEOUT)

    def freeze(self) -> None:
        """SIGSTOP; returns when it stands still."""
        os.kill(self.pid, signal.SIGSTOP)
        eventually(lambda: state_of(self.pid) == "T", what="the process's standing still")

    def thaw(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._reader.join(TIMEOUT)
        self._wire.close()
        self._process.close()

    def _read(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                self._told.put(msgspec.json.decode(self._wire.recv_bytes(), type=ChildLine))

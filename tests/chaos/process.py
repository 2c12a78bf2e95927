"""A child process as a test handles it: wait until it stands at a point, then kill, freeze or release it."""

import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from tests.chaos.child import ChildLine, Orders
from tests.chaos.scenario import Ended

ROOT = Path(__file__).parents[2]
TIMEOUT = 30.0


class Child:
    """Runs from the start of the block; killed at its end, if it still runs then."""

    def __init__(self, orders: Orders) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.child", msgspec.json.encode(orders).decode()],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._told: queue.SimpleQueue[ChildLine] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def wait_at(self, point: str) -> None:
        """Return when it stands at the point."""
        told = self._told.get(timeout=TIMEOUT)
        assert point == told.at, f"the child did not come to {point!r}: {told}"

    def go_on(self) -> None:
        """Release it from the point where it stands."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def ended(self) -> Ended:
        """How its work ended."""
        told = self._told.get(timeout=TIMEOUT)
        assert told.ended is not None, f"the child stopped at {told.at!r}"
        return told.ended

    def code(self) -> int:
        """The exit code, once it has ended by itself."""
        return self._process.wait(TIMEOUT)

    def kill(self) -> None:
        """SIGKILL; returns when the process is gone."""
        self._process.kill()
        self._process.wait(TIMEOUT)

    def freeze(self) -> None:
        """SIGSTOP; returns when it stands still."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)

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
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._told.put(msgspec.json.decode(line, type=ChildLine))

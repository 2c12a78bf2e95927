"""What slots ask of the coordinator of their visit."""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue


class Inbox:
    """Calls that other threads have posted. One that is interrupted stays first, and is made again."""

    def __init__(self) -> None:
        self._calls: deque[Callable[[], object]] = deque()
        self._bell: SimpleQueue[None] = SimpleQueue()

    def post(self, call: Callable[[], object]) -> None:
        """From another thread."""
        self._calls.append(call)
        self._bell.put(None)

    def wait(self, seconds: float) -> bool:
        """Wait for a call, at most so long; whether there is one. An interruption of it (Ctrl-C) loses none."""
        if not self._calls:
            with suppress(Empty):
                self._bell.get(timeout=seconds)
                while True:
                    self._bell.get_nowait()
        return bool(self._calls)

    def make_calls(self) -> None:
        """Make those that were posted until now, in order; what one raises is raised.

        Those that come meanwhile wait: slots that post again and again keep the coordinator from nothing else.
        """
        for _ in range(len(self._calls)):
            self._calls[0]()
            self._calls.popleft()

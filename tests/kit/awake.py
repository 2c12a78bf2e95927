"""Time that counts only while this machine moves: a machine that stands still is late for nothing."""

import threading
from time import monotonic
from typing import Final

_STEP: Final = 0.05
"""Seconds that are slept at a time: a sleep that takes longer was none of the measured program's doing."""


class AwakeTimer(threading.Timer):
    """A timer that stops while its process is not run: the time of what it ends was not used either."""

    def run(self) -> None:
        """Sleep in steps, each of which counts as twice its length at most."""
        left = self.interval
        while left > 0:
            step = min(_STEP, left)
            began = monotonic()
            if self.finished.wait(step):
                return
            left -= min(monotonic() - began, 2 * step)
        self.function(*self.args, **self.kwargs)
        self.finished.set()

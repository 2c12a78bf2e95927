"""An app with a daemon beside the test, in real time."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.local.daemon import Daemon
from lowkiq_lambda.settings.protocols import SettledEvent
from lowkiq_lambda.testing.assertions import Assertions
from lowkiq_lambda.testing.crashes import Crashes
from lowkiq_lambda.testing.server import OwnServer
from lowkiq_lambda.testing.watching import Drained, Watcher

_POLL: Final = 0.05
_SHUTDOWN: Final = 10.0
_CLOCK_ERROR: Final = 0.25
"""Seconds by which two measurements of the server's clock may differ on a busy machine."""


class AppWithDaemon(Assertions):
    """What the fixture `lowkiq_daemon` is: what is pushed is performed meanwhile, by other threads."""

    def __init__(self, app: Lowkiq, watcher: Watcher, settled: threading.Event) -> None:
        super().__init__(app)
        self._watcher = watcher
        self._settled = settled

    def wait(self, timeout: float = 10.0, *, raises: bool = True) -> Drained:
        """Wait until nothing is due or in flight, callbacks of tasks too; what was performed since the fixture began.

        What becomes due in the next quarter of a second is waited for too.
        With `raises` what a handler raised first is raised again, as by `drain`. Raises AssertionError when `timeout`
        (seconds) are over.
        """
        give_up_at = time.monotonic() + timeout
        while self._is_busy():
            if time.monotonic() > give_up_at:
                raise AssertionError(f"expected all done within {timeout:g} s, found {self._told()}")
            self._settled.wait(_POLL)
        if raises and self._watcher.failed:
            raise self._watcher.failure(self.app)
        return self._watcher.drained

    def _is_busy(self) -> bool:
        self._settled.clear()
        drainer = self.app.core.drains.drainer
        if drainer.running:
            return True
        for name, metrics in self.app.operate.metrics().items():
            if metrics.in_flight or metrics.lag > 0 or (metrics.length and self._is_due_soon(name)):
                return True
        # What Redis has learned the watcher may not have: it is told before the visit ends. And a visit that came and
        # went behind the metrics may have pushed the callback of a task.
        return drainer.running > 0 or self._settled.is_set()

    def _is_due_soon(self, queue_name: str) -> bool:
        """A push may have measured the clock ahead of this look: what it says is due now lies in the future here."""
        shards = self.app.operate(self.app.core.queues[queue_name].worker).shards()
        return any(shard.due_at and abs(shard.due_at - shard.at) <= _CLOCK_ERROR for shard in shards)

    def _told(self) -> str:
        return ", ".join(
            f"{name}: {metrics.length} wait, {metrics.in_flight} in flight"
            for name, metrics in self.app.operate.metrics().items()
        )


class _Settled:
    """An observer that wakes the waiting thread."""

    def __init__(self, event: threading.Event) -> None:
        self._event = event

    def settled(self, _event: SettledEvent) -> None:
        """Something is done."""
        self._event.set()


@contextmanager
def app_with_daemon(app: Lowkiq, server: OwnServer) -> Iterator[AppWithDaemon]:
    """The app on that server, which is emptied before, drained by a daemon in this process until the block ends."""
    server.clear()
    config = server.settings_for(app.config).evolve(number_of_nodes=1, node_number=0, shutdown_timeout=_SHUTDOWN)
    watcher, settled = Watcher(Crashes()), threading.Event()
    waking = _Settled(settled)
    with app.core.rebound(config), watcher.watching(app):
        app.observers.append(waking)
        try:
            with Daemon(app):
                yield AppWithDaemon(app, watcher, settled)
        finally:
            app.observers.remove(waking)

"""The leases that children leave when they end: released by the parent, as it alone knows that the process is gone."""

import logging
from threading import Thread
from time import monotonic
from typing import Final

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.local.processes.child_process import ChildProcess
from lowkiq_lambda.store.shard.dead_holders import release_dead

logger = logging.getLogger(__name__)

LAST_WAIT: Final = 1.0
"""Seconds for which the parent's end waits for leases to be released; what is not by then ends by itself."""


class DeadLeases:
    """Releases leases in threads of its own: while Redis is away, children are supervised all the same."""

    def __init__(self, app: Lowkiq) -> None:
        self._app = app
        self._threads: list[Thread] = []

    def release(self, child: ChildProcess) -> None:
        """Begin to release what the child held, which has ended. What another process holds by now is left alone."""
        thread = Thread(target=self._release, args=(child,), name=f"lowkiq-leases-{child.number}", daemon=True)
        thread.start()
        self._threads = [*(one for one in self._threads if one.is_alive()), thread]

    def wait(self) -> None:
        """Wait until all are released that could be."""
        ends_at = monotonic() + LAST_WAIT
        for thread in self._threads:
            thread.join(max(0.0, ends_at - monotonic()))

    def _release(self, child: ChildProcess) -> None:
        app = self._app
        try:
            # Later it would be of no use: the leases have ended by themselves.
            freed = release_dead(app.core.backend, app.core.drainer.shards(), child.nonce_prefix, app.config.lease_ttl)
        except LowkiqError as error:
            logger.warning("the leases that a child left end by themselves: %s", error)
            return
        if freed:
            named = [f"{shard.queue_name} {shard.number}" for shard in freed]
            logger.info("the leases that a child left are released", extra={"child": child.number, "shards": named})

"""Holders that live, though they could not settle: what they were about to be blamed for is taken back.

The next holder takes the one of a lone suspect for dead, and counts a crash of that id. See docs/lease.md.
"""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

from lowkiq_lambda.base.errors import LowkiqError, is_of_move
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.session import LeaseSession

logger = logging.getLogger(__name__)

CRASHED: Final = "crashed: the process died each time this job ran alone"


class Survivors:
    """The holders of this process that have to say that they live; safe to use from several threads at once."""

    def __init__(self) -> None:
        self._unheard: dict[ShardRef, list[LeaseSession]] = {}
        self._lock = Lock()

    @contextmanager
    def watch(self, session: LeaseSession) -> Iterator[None]:
        """Around a visit; raises BackendError before it if ends of other visits could not be reported.

        So a visit never mistakes a holder of its own process, whose visit has ended, for a dead one.
        """
        self._tell(session.shard)
        try:
            yield
        finally:
            self._note(session)
        # The end of the visit shows that Redis can be reached.
        self.tell([session.shard])

    def tell(self, shards: Iterable[ShardRef]) -> list[ShardRef]:
        """Let those of the shards be heard, which just answered; the shards that are free now, as one was.

        If that fails, it is tried again another time.
        """
        if not self._unheard:
            return []
        shards_told: list[ShardRef] = []
        with self._lock:
            unheard = self._unheard.keys() & set(shards)
        for shard in unheard:
            try:
                self._tell(shard)
            except LowkiqError as error:
                if is_of_move(error):
                    # Its jobs are in another shard: there the blame was not set, or it is too late.
                    with self._lock:
                        self._unheard.pop(shard, None)
                    continue
                logger.warning("a holder that lives could not say so: %s", error)
            else:
                shards_told.append(shard)
        return shards_told

    def _note(self, session: LeaseSession) -> None:
        if session.at_risk is not None:
            with self._lock:
                self._unheard[session.shard] = [*self._unheard.get(session.shard, ()), session]

    def _tell(self, shard: ShardRef) -> None:
        with self._lock:
            unheard = self._unheard.get(shard, ())
        for session in unheard:
            # Two threads may do so for one holder: to say it twice is harmless, and no thread waits for another's call.
            session.survive(retry_for=0.0)
            with self._lock:
                left = [other for other in self._unheard.get(shard, ()) if other is not session]
                if left:
                    self._unheard[shard] = left
                else:
                    self._unheard.pop(shard, None)

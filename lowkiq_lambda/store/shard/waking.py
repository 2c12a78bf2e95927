"""Wakes: notes in shards that a drain is about to be started there, so that no second one is.

Every starter of drains asks here first: a push into an idle shard, a tick, a drain that leaves work behind.
"""

import logging
import secrets
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from lowkiq_lambda.base.errors import LowkiqError, is_of_move
from lowkiq_lambda.settings.protocols import StartDrain
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ask_each
from lowkiq_lambda.store.shard.scripts import Reply, StatusReply

logger = logging.getLogger(__name__)

WINDOW: Final = 10.0
"""Seconds for which a shard that was woken waits for its drain, before another push may wake it again."""
_WOKEN: Final = b"WOKEN"


class Woken(NamedTuple):
    """The shards whose drains the caller must start now, in the order of the call; and the errors of the others.

    `moving`: shards without a drain for now, because the queue is being resharded.
    """

    nonce: str
    shards: list[ShardRef]
    errors: dict[ShardRef, LowkiqError]
    moving: Collection[ShardRef] = ()


def wake(backend: Backend, shards: Sequence[ShardRef], window: float, retry_for: float) -> Woken:
    """Ask each shard whether it needs a drain, and note the wake if it does: one round trip for each node.

    A shard needs one if a job is due or was left by a dead holder, the shard is neither held nor paused, and no earlier
    wake counts. A wake counts for `window` seconds, but ends when the lease is acquired.
    """
    nonce = secrets.token_hex(12)
    replies = ask_each(backend, "wake", shards, [nonce, window], retry_for)
    moving = {shard for shard, reply in replies.items() if is_of_move(reply)}
    errors = {shard: reply for shard, reply in replies.items() if isinstance(reply, LowkiqError)}
    woken = [shard for shard in shards if _status(replies[shard]) == _WOKEN]
    return Woken(nonce, woken, {shard: errors[shard] for shard in errors.keys() - moving}, moving)


def unwake(backend: Backend, nonce: str, shards: Sequence[ShardRef], retry_for: float) -> dict[ShardRef, LowkiqError]:
    """Remove the wakes of these shards, as no drain was started. Returns the errors by shard."""
    replies = ask_each(backend, "unwake", shards, [nonce], retry_for)
    return {shard: reply for shard, reply in replies.items() if isinstance(reply, LowkiqError)}


class Waker:
    """Starts drains for shards that jobs are pushed to. An error is logged and retried; it fails no push."""

    def __init__(self, backend: Backend, start_drain: StartDrain, window: float) -> None:
        self._backend = backend
        self._start_drain = start_drain
        self._window = window
        self._quiet_until: dict[ShardRef, float] = {}

    def pushed(self, shards: Iterable[ShardRef], sooner: Collection[ShardRef]) -> None:
        """Jobs were pushed to these shards; in those in `sooner`, one is due before all others.

        In any other shard work was waiting already, and its wake was asked for. That shard is asked once in a window,
        as its drain may have died, or have left work.
        """
        now = self._backend.clock.monotonic()
        to_wake = [shard for shard in shards if shard in sooner or self._quiet_until.get(shard, now) <= now]
        if not to_wake:
            return
        woken = wake(self._backend, to_wake, self._window, retry_for=0.0)
        refused = {*woken.errors, *woken.moving}
        self._quiet_until |= {shard: now + self._window for shard in to_wake if shard not in refused}
        for shard, error in woken.errors.items():
            logger.warning("Shard %s of %s was not woken: %s", shard.index, shard.queue_name, error)
        for shard in woken.shards:
            self._start(shard, woken.nonce)

    def _start(self, shard: ShardRef, nonce: str) -> None:
        try:
            self._start_drain(shard.queue_name, shard.index)
        except Exception as error:  # noqa: BLE001 - the jobs are written, whatever the plug raises
            logger.warning("Shard %s of %s was not woken: %s", shard.index, shard.queue_name, error)
            self._quiet_until.pop(shard, None)
            unwake(self._backend, nonce, [shard], retry_for=0.0)


def _status(reply: Reply | LowkiqError) -> bytes | None:
    return None if isinstance(reply, LowkiqError) else StatusReply.of(reply).status

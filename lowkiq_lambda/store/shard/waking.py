"""Wakes: notes in shards that somebody is about to start a drain there, so that nobody else does too.

Whoever starts drains asks here first: a push into an idle shard, the dispatcher, a drain that leaves work behind.
"""

import logging
import secrets
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from lowkiq_lambda.errors import BackendUnavailable, LowkiqError
from lowkiq_lambda.protocols import StartDrain
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.scripts import Argument, Reply

logger = logging.getLogger(__name__)

_WOKEN: Final = b"WOKEN"


class Woken(NamedTuple):
    """The shards whose drains the caller is now to start, in the order asked; and those that could not be asked."""

    nonce: str
    shards: list[ShardRef]
    errors: dict[ShardRef, LowkiqError]


def wake(backend: Backend, shards: Sequence[ShardRef], window: float, retry_for: float) -> Woken:
    """Ask for each shard whether a drain is to be started, in one round trip for each node; noted where it is.

    That is where something is due or left by a dead holder, nobody holds the shard or pauses it, and no earlier wake
    still counts: one does for `window` seconds, at most until somebody takes the lease.
    """
    nonce = secrets.token_hex(12)
    replies = _answers(backend, "wake", shards, [nonce, window], retry_for)
    errors = {shard: reply for shard, reply in replies.items() if isinstance(reply, LowkiqError)}
    woken = [shard for shard in shards if shard not in errors and _first(replies[shard]) == _WOKEN]
    return Woken(nonce, woken, errors)


def unwake(backend: Backend, nonce: str, shards: Sequence[ShardRef], retry_for: float) -> dict[ShardRef, LowkiqError]:
    """Take back the wakes of these shards: no drain was started. The errors of those where that failed."""
    replies = _answers(backend, "unwake", shards, [nonce], retry_for)
    return {shard: reply for shard, reply in replies.items() if isinstance(reply, LowkiqError)}


class Waker:
    """Starts drains for shards that are pushed to. What fails here fails no push: it is logged, and tried again."""

    def __init__(self, backend: Backend, start_drain: StartDrain, window: float) -> None:
        self._backend = backend
        self._start_drain = start_drain
        self._window = window
        self._quiet_until: dict[ShardRef, float] = {}

    def pushed(self, shards: Iterable[ShardRef], sooner: Collection[ShardRef]) -> None:
        """Something was pushed to these shards, and to those in `sooner` what is due before all else.

        Where work was waiting already somebody was woken for it, so there it is asked once in a window: the drain may
        have died, or have left some over.
        """
        now = self._backend.clock.monotonic()
        to_wake = [shard for shard in shards if shard in sooner or self._quiet_until.get(shard, now) <= now]
        if not to_wake:
            return
        woken = wake(self._backend, to_wake, self._window, retry_for=0.0)
        self._quiet_until |= {shard: now + self._window for shard in to_wake if shard not in woken.errors}
        for shard, error in woken.errors.items():
            logger.warning("Shard %s of %s was not woken: %s", shard.index, shard.queue_name, error)
        for shard in woken.shards:
            self._start(shard, woken.nonce)

    def _start(self, shard: ShardRef, nonce: str) -> None:
        try:
            self._start_drain(shard.queue_name, shard.index)
        except Exception as error:  # noqa: BLE001 - what was pushed is written, whatever the plug raises
            logger.warning("Shard %s of %s was not woken: %s", shard.index, shard.queue_name, error)
            self._quiet_until.pop(shard, None)
            unwake(self._backend, nonce, [shard], retry_for=0.0)


def _answers(
    backend: Backend, name: str, shards: Sequence[ShardRef], args: Sequence[Argument], retry_for: float
) -> dict[ShardRef, Reply | LowkiqError]:
    """The answer or the error of each; asked again where the server cannot serve, for `retry_for` seconds."""
    retry_until, attempt = backend.clock.monotonic() + retry_for, 0
    answers: dict[ShardRef, Reply | LowkiqError] = {}
    left = list(shards)
    while left:
        answers |= zip(left, backend.run_each([(name, shard, args) for shard in left]), strict=True)
        left = [shard for shard in left if isinstance(answers[shard], BackendUnavailable)]
        seconds_left = retry_until - backend.clock.monotonic()
        if seconds_left <= 0:
            break
        if left:
            backend.pause(attempt, most=seconds_left)
            attempt += 1
    return answers


def _first(reply: Reply | LowkiqError) -> bytes | None:
    return None if isinstance(reply, LowkiqError) else reply[0]

"""Waits until a replica of each node has what was written, so that a failover does not lose it."""

from collections.abc import Iterable
from typing import Any, Final

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.store.server.faults import REDIS_ERRORS, translated
from lowkiq_lambda.store.server.pipelines import Words, send_each
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import ShardRef

_LOOK: Final[Words] = ("INFO", "replication")
_NONE: Final = b"connected_slaves:0"
_AT_ONCE: Final = 500
"""Milliseconds of one wait: shorter than any call may take."""
_TRIES: Final = 20


class NotReplicated(LowkiqError):
    """No replica has what was written, or the server does not tell."""


class Replicas:
    """The replicas behind a backend's nodes. Those that are not connected to their primary are not waited for.

    `tries`: how often half a second is waited for one.
    """

    def __init__(self, backend: Backend, tries: int = _TRIES) -> None:
        self._backend = backend
        self._tries = tries

    def have(self, shards: Iterable[ShardRef]) -> None:
        """Return once a replica of each shard's node has all that was written there by now.

        Raises NotReplicated if none has in time, or the server does not tell; BackendError.
        """
        with translated():
            nodes = self._backend.nodes.with_a_key(shards)
        for key in nodes.values():
            if not any(not self._has_replicas(key) or self._acknowledged(key) for _ in range(self._tries)):
                raise NotReplicated(
                    f"No replica has what was moved, {self._tries * _AT_ONCE / 1_000:g} s after it was written: do the "
                    "same again when it follows its primary, or do not wait for it (--unreplicated)."
                )

    def _has_replicas(self, key: str) -> bool:
        # Asked each time: one may come back while ids move.
        (answer,) = self._asked(key, _LOOK)
        return _NONE not in bytes(answer).split()

    def _acknowledged(self, key: str) -> bool:
        # WAIT counts what its own connection has written: this message, which comes after all that was written before.
        mark = ("PUBLISH", f"{self._backend.prefix}:replicated", "")
        _, number = self._asked(key, mark, ("WAIT", 1, _AT_ONCE))
        return int(number) > 0

    def _asked(self, key: str, *commands: Words) -> list[Any]:
        """The answers, by one connection."""
        answers = send_each(self._backend.client, [(key, command) for command in commands])
        for answer in answers:
            if isinstance(answer, REDIS_ERRORS):
                raise NotReplicated(
                    f"The server does not tell whether a replica has what was moved ({answer}): move without waiting "
                    "for replicas (--unreplicated)."
                ) from answer
        return answers

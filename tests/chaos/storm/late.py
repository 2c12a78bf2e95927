"""Calls of a session that come twice: copies are held back, and arrive behind another session."""

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Final

from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.scripts import Script
from tests.kit.servers import FaultProxy
from tests.kit.servers.fault_proxy import commands_in
from tests.kit.waiting import eventually

TRIES: Final = 8
PATIENCE: Final = 0.5
"""Seconds within which a call comes that is waited for."""
_TAKEN: Final = b"$2\r\nOK\r\n"


class LateCalls:
    """Holds back copies of the call by which some session begins, and of its first settling.

    `pile_up` makes many jobs wait, so that some were due before the copies were made. `visited`: another session has
    had the shard, and nobody takes it in the block.
    """

    name = "calls that come once more behind another session"

    def __init__(
        self,
        proxy: FaultProxy,
        shards: list[ShardRef],
        script: Callable[[str], Script],
        pile_up: Callable[[], object],
        visited: Callable[[ShardRef], AbstractContextManager[None]],
    ) -> None:
        self._proxy = proxy
        self._shards = shards
        self._script = script
        self._pile_up = pile_up
        self._visited = visited

    def happen(self) -> bool:
        """Whether the copies have taken the shard behind another session; so often until they have.

        On a busy machine they may be too late: they are refused a second after what the shard has seen.
        """
        return any(self._come_late() for _ in range(TRIES))

    def _come_late(self) -> bool:
        self._pile_up()
        self._proxy.hold_copy(self._sha("acquire"))
        if not self._is_held(1):
            return False
        shard, nonce = self._session(self._proxy.held[0])
        self._proxy.hold_copy(self._sha("settle"), nonce)
        if not self._is_held(2):
            return False
        with self._visited(shard):
            return self._proxy.deliver().count(_TAKEN) > 0

    def _sha(self, name: str) -> bytes:
        return self._script(name).sha.encode()

    def _is_held(self, count: int) -> bool:
        with suppress(AssertionError):
            return bool(eventually(lambda: len(self._proxy.held) >= count, timeout=PATIENCE))
        self._proxy.heal()
        return False

    def _session(self, request: bytes) -> tuple[ShardRef, bytes]:
        """The shard that the call is for, and the session's nonce, which is behind version, time and `measured`."""
        words = (commands_in(request) or [[]])[-1]
        keys = int(words[2])
        shard = next(shard for shard in self._shards if shard.key("meta").encode() in words)
        return shard, words[3 + keys + 3]

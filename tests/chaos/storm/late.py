"""Calls of a session that come twice: copies are held back, and arrive behind another session."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.scripts import Script
from tests.kit.servers import FaultProxy, Server
from tests.kit.servers.fault_proxy import commands_in
from tests.kit.waiting import eventually

TRIES: Final = 8
PATIENCE: Final = 0.3
"""Seconds within which a call comes that is waited for."""
LONGEST: Final = 0.9
"""Seconds after which a copy may be refused, as its time lies behind what the shard has seen."""
_TAKEN: Final = b"$2\r\nOK\r\n"


class HeldSession(NamedTuple):
    """Of a call that is held back: the shard, the session's nonce, and the time of the call."""

    shard: ShardRef
    nonce: bytes
    now: bytes


class LateCalls:
    """Holds back copies of the call by which some session begins, and of its first settling.

    `pile_up` makes jobs wait: only what was due before the copies were made can be taken by them.
    """

    name = "calls that come once more behind another session"

    def __init__(
        self,
        proxy: FaultProxy,
        server: Server,
        shards: list[ShardRef],
        script: Callable[[str], Script],
        pile_up: Callable[[], object],
    ) -> None:
        self._proxy = proxy
        self._server = server
        self._shards = shards
        self._script = script
        self._pile_up = pile_up

    def happen(self) -> bool:
        """Whether the copies have taken the shard behind another session; so often until they have."""
        return any(self._come_late() for _ in range(TRIES))

    def _come_late(self) -> bool:
        self._pile_up()
        self._proxy.hold_copy(self._sha("acquire"))
        if not self._is_held(1):
            return False
        began_at, session = time.monotonic(), self._session(self._proxy.held[0])
        self._proxy.hold_copy(self._sha("settle"), session.nonce)
        if not self._is_held(2):
            return False
        # The moment between two sessions is short: nothing rests here.
        while time.monotonic() < began_at + LONGEST and not self._is_open_to(session):
            pass
        # If there was no other session, the copies are late all the same.
        return self._proxy.deliver().count(_TAKEN) > 0

    def _sha(self, name: str) -> bytes:
        return self._script(name).sha.encode()

    def _is_held(self, count: int) -> bool:
        if self._comes(lambda: len(self._proxy.held) >= count, PATIENCE):
            return True
        self._proxy.heal()
        return False

    def _comes(self, what: Callable[[], object], seconds: float) -> bool:
        with suppress(AssertionError):
            return bool(eventually(what, timeout=max(seconds, 0.0)))
        return False

    def _session(self, request: bytes) -> "HeldSession":
        words = (commands_in(request) or [[]])[-1]
        _version, now, _measured, nonce = words[3 + int(words[2]) :][:4]
        return HeldSession(next(shard for shard in self._shards if shard.key("meta").encode() in words), nonce, now)

    def _is_open_to(self, session: "HeldSession") -> bool:
        """Whether another session has had the shard since, and has let it go with jobs that were due before."""
        shard, look = session.shard, self._server.admin.pipeline(transaction=False)
        look.hget(shard.key("meta"), "nonce")
        look.exists(shard.key("lease"))
        look.zcount(shard.key("due"), "-inf", session.now.decode())
        nonce, is_held, due = look.execute()
        return nonce != session.nonce and not is_held and due > 0

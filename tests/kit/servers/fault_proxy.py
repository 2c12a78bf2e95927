"""A proxy that loses requests and replies on command.

It understands nothing of what it forwards: a request is told by a marker, bytes that occur in no other.
"""

import asyncio
import threading
from dataclasses import dataclass
from enum import Enum
from weakref import WeakKeyDictionary

from tests.kit.servers.proxy import HasAddress, Link, Proxy

_CHUNK = 65_536


class _Loss(Enum):
    REQUEST = "the request never reaches the target"
    REPLY = "the target has answered, the connection ends instead of the answer"
    SILENCE = "the target has answered, the client waits for ever"


@dataclass
class _Rule:
    marker: bytes
    loss: _Loss
    times: int


@dataclass
class _Mute:
    loss: _Loss
    has_answered: asyncio.Event


class FaultProxy(Proxy):
    """Loses what it is told to, once each time unless told otherwise; else it forwards.

    The rules see a client that sends one request at a time, as redis-py's clients do on a connection: of what
    is pipelined before the marked request, the replies that are still under way are lost with its own.
    """

    def __init__(self, target: HasAddress | tuple[str, int]) -> None:
        super().__init__(target)
        self._rules: list[_Rule] = []
        self._muted: WeakKeyDictionary[Link, _Mute] = WeakKeyDictionary()
        self._lost = threading.Semaphore(0)
        self._delay = 0.0

    def drop_reply_after(self, marker: bytes, times: int = 1) -> None:
        """The next request with the marker is performed; its connection is closed in place of the reply."""
        self._add(_Rule(marker, _Loss.REPLY, times))

    def hang_reply_after(self, marker: bytes, times: int = 1) -> None:
        """The next request with the marker is performed; the client never hears of it on that connection."""
        self._add(_Rule(marker, _Loss.SILENCE, times))

    def drop_request(self, marker: bytes, times: int = 1) -> None:
        """The connection is closed in place of the next request with the marker; it is not performed.

        Of a request that is longer than one read of a socket the target has seen the beginning, which changes
        nothing there.
        """
        self._add(_Rule(marker, _Loss.REQUEST, times))

    def wait_dropped(self, timeout: float = 10.0) -> None:
        """Return when one more loss has happened: by then the target has performed what it was to perform."""
        assert self._lost.acquire(timeout=timeout), f"nothing was dropped in {timeout} s"

    def delay(self, seconds: float) -> None:
        """Hold back each chunk of requests for so long; 0 ends that."""
        self._delay = seconds

    def refuse(self) -> None:
        """Refuse new connections; those that are open go on."""
        self._call(self._stop_listening())

    def accept(self) -> None:
        """Accept connections again."""
        self._call(self._listen())

    def heal(self) -> None:
        """Forget all rules, and accept; what was lost stays lost, and what hangs is cut."""
        self._delay = 0.0
        self._call(self._forget())
        self.accept()

    async def upstream(self, link: Link) -> None:
        """Forward requests, watching for those to lose."""
        before = b""
        while chunk := await link.client_reader.read(_CHUNK):
            if self._delay:
                await asyncio.sleep(self._delay)
            # A marker may begin in one chunk and end in the next.
            before, rule = self._look(before + chunk)
            if rule is not None and rule.loss is _Loss.REQUEST:
                self._lost.release()
                return
            if rule is not None:
                self._muted[link] = _Mute(rule.loss, asyncio.Event())
            link.target_writer.write(chunk)
            await link.target_writer.drain()
        if mute := self._muted.get(link):
            # A client that waits no longer cuts the link: not before the target has performed what was asked of it.
            await mute.has_answered.wait()

    async def downstream(self, link: Link) -> None:
        """Forward replies, but for those to lose."""
        while chunk := await link.target_reader.read(_CHUNK):
            mute = self._muted.get(link)
            if mute is None:
                link.client_writer.write(chunk)
                await link.client_writer.drain()
                continue
            if not mute.has_answered.is_set():
                mute.has_answered.set()
                self._lost.release()
            if mute.loss is _Loss.REPLY:
                return

    def _add(self, rule: _Rule) -> None:
        assert rule.marker, "an empty marker is in every request"
        self._call(self._append(rule))

    async def _append(self, rule: _Rule) -> None:
        self._rules.append(rule)

    async def _forget(self) -> None:
        self._rules.clear()
        for link in [*self._muted]:
            link.cut()

    def _look(self, text: bytes) -> tuple[bytes, _Rule | None]:
        """What to look at again with the next chunk, and the rule that was met."""
        for rule in self._rules:
            if rule.marker in text:
                rule.times -= 1
                if not rule.times:
                    self._rules.remove(rule)
                return b"", rule
        kept = max((len(rule.marker) - 1 for rule in self._rules), default=0)
        return text[-kept:] if kept else b"", None

"""A proxy that loses requests and replies on command, and delivers copies of requests late.

It understands no more of what it forwards than where a request ends: a request is told by its marks, bytes that
together occur in no other.
"""

import asyncio
import threading
from dataclasses import dataclass
from enum import Enum
from weakref import WeakKeyDictionary

from tests.kit.servers.proxy import HasAddress, Link, Proxy

_CHUNK = 65_536
_END = b"\r\n"
_PING, _PONG = b"*1\r\n$4\r\nPING\r\n", b"+PONG\r\n"


class _Loss(Enum):
    REQUEST = "the request never reaches the target"
    REPLY = "the target has answered, the connection ends instead of the answer"
    SILENCE = "the target has answered, the client waits for ever"
    NONE = "nothing is lost, and a copy of the request is under way still"


@dataclass
class _Rule:
    marks: tuple[bytes, ...]
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
        self._held: list[bytes] = []

    def drop_reply_after(self, marker: bytes, times: int = 1) -> None:
        """The next request with the marker is performed; its connection is closed in place of the reply."""
        self._add(_Rule((marker,), _Loss.REPLY, times))

    def hang_reply_after(self, marker: bytes, times: int = 1) -> None:
        """The next request with the marker is performed; the client never hears of it on that connection."""
        self._add(_Rule((marker,), _Loss.SILENCE, times))

    def drop_request(self, marker: bytes, times: int = 1) -> None:
        """The connection is closed in place of the next request with the marker; it is not performed.

        Of a request that is longer than one read of a socket the target has seen the beginning, which changes
        nothing there.
        """
        self._add(_Rule((marker,), _Loss.REQUEST, times))

    def hold_copy(self, *marks: bytes) -> None:
        """Hold back a copy of the next request with all marks, as if its client had sent it twice.

        The request itself is performed, and answered.
        """
        self._add(_Rule(marks, _Loss.NONE, 1))

    @property
    def held(self) -> list[bytes]:
        """The copies that are held back, oldest first."""
        return [*self._held]

    def deliver(self) -> bytes:
        """Send what is held back, on a connection of its own; what the target answers to all of it."""
        return self._call(self._deliver())

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
        """Forget all rules, and what is held back, and accept; what was lost stays lost, and what hangs is cut."""
        self._delay = 0.0
        self._call(self._forget())
        self.accept()

    async def upstream(self, link: Link) -> None:
        """Forward requests, watching for those to lose."""
        before = b""
        while chunk := await link.client_reader.read(_CHUNK):
            if self._delay:
                await asyncio.sleep(self._delay)
            if any(rule.loss is _Loss.NONE for rule in self._rules):
                chunk = await _whole(chunk, link.client_reader)
            # A marker may begin in one chunk and end in the next.
            before, rule = self._look(before + chunk)
            if rule is not None and rule.loss is _Loss.REQUEST:
                self._lost.release()
                return
            if rule is not None and rule.loss is _Loss.NONE:
                self._held.append(chunk)
            elif rule is not None:
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
        assert all(rule.marks), "an empty mark is in every request"
        self._call(self._append(rule))

    async def _append(self, rule: _Rule) -> None:
        self._rules.append(rule)

    async def _forget(self) -> None:
        self._rules.clear()
        self._held.clear()
        for link in [*self._muted]:
            link.cut()

    def _look(self, text: bytes) -> tuple[bytes, _Rule | None]:
        """What to look at again with the next chunk, and the rule that was met."""
        for rule in self._rules:
            if all(mark in text for mark in rule.marks):
                rule.times -= 1
                if not rule.times:
                    self._rules.remove(rule)
                return b"", rule
        kept = max((len(mark) - 1 for rule in self._rules for mark in rule.marks), default=0)
        return text[-kept:] if kept else b"", None

    async def _deliver(self) -> bytes:
        reader, writer = await asyncio.open_connection(*self.target)
        writer.write(b"".join([*self._held, _PING]))
        self._held.clear()
        answers = b""
        while not answers.endswith(_PONG) and (chunk := await reader.read(_CHUNK)):
            answers += chunk
        writer.close()
        await writer.wait_closed()
        return answers.removesuffix(_PONG)


def commands_in(text: bytes) -> list[list[bytes]] | None:
    """The commands that a request is made of; None if it ends within one."""
    commands: list[list[bytes]] = []
    at = 0
    while at < len(text):
        count, at = _number(text, at)
        words: list[bytes] = []
        for _ in range(count):
            length, at = _number(text, at)
            words.append(text[at : at + length])
            at += length + len(_END)
        commands.append(words)
    return commands if at == len(text) else None


def _number(text: bytes, at: int) -> tuple[int, int]:
    """The number on the line there, and where the next line begins: behind the end, if the line has none."""
    end = text.find(_END, at)
    return (int(text[at + 1 : end]), end + len(_END)) if end >= 0 else (0, len(text) + 1)


async def _whole(text: bytes, reader: asyncio.StreamReader) -> bytes:
    """With what follows until the last command in it has come to its end, or the client has."""
    while commands_in(text) is None and (chunk := await reader.read(_CHUNK)):
        text += chunk
    return text

"""What a server was asked, as it tells it itself: each command with its arguments, those inside scripts too."""

import re
import socket
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Final, Self
from uuid import uuid4

from tests.kit.servers.server import Server

_TIMEOUT: Final = 30.0
_ARGUMENT: Final = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_HEAD: Final = re.compile(rb'\+[\d.]+ \[(\d+) ([^\]]*)\] "((?:[^"\\]|\\.)*)"(?: "((?:[^"\\]|\\.)*)")?')
_ESCAPED: Final = re.compile(rb"\\(?:x([0-9a-f]{2})|(.))")
_LETTERS: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b"}


@dataclass(frozen=True)
class Asked:
    """A command. `by_script`: by the script that was last asked for."""

    name: str
    first: bytes
    """Its first argument, which is the key where it has one."""
    size: int
    """How many words it has: its name and all arguments."""
    database: int
    by_script: bool
    line: bytes

    @cached_property
    def words(self) -> tuple[bytes, ...]:
        """The name as it was written, and the arguments."""
        return tuple(_unescaped(word) for word in _ARGUMENT.findall(self.line, self.line.index(b'] "')))


class Monitor:
    """Listens inside a `with`; `heard` ends it and tells all that was asked until then, AUTH and such aside."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._socket = socket.create_connection(server.address, _TIMEOUT)
        self._lines = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        self._socket.sendall(b"MONITOR\r\n")
        assert self._lines.readline() == b"+OK\r\n"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.close()
        self._socket.close()

    def heard(self) -> list[Asked]:
        """Everything so far, in order."""
        last = uuid4().hex.encode()
        self._server.admin.echo(last)
        found: list[Asked] = []
        for line in self._lines:
            asked = _asked(line)
            if asked.first == last:
                return found
            found.append(asked)
        raise AssertionError("the server ended the monitor's connection")


def _asked(line: bytes) -> Asked:
    head = _HEAD.match(line)
    assert head is not None, line[:200]
    return Asked(
        name=head[3].decode().lower(),
        first=_unescaped(head[4] or b""),
        # Within an argument, quotes are escaped.
        size=line.count(b'" "') + 1,
        database=int(head[1]),
        by_script=head[2] == b"lua",
        line=line,
    )


def _unescaped(word: bytes) -> bytes:
    return _ESCAPED.sub(_letter, word) if b"\\" in word else word


def _letter(escaped: re.Match[bytes]) -> bytes:
    if escaped[1]:
        return bytes.fromhex(escaped[1].decode())
    return _LETTERS.get(escaped[2], escaped[2])

"""What a server holds as lines of JSON, and back by plain commands, so that any version of any server takes it."""

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
import redis

_ZEROS: Final = re.compile(rb"(\0{16,})")
"""What charts are full of: a line has their number instead."""
_ROUND: Final = 3_600.0
"""Seconds to which times to live are rounded up: they run by the server's clock, not by the one that is moved."""


def lines_of(client: redis.Redis) -> Iterator[str]:
    """A line for each key: its name, type, time to live, and what it holds; bytes are letters of Latin-1.

    Left out are leases: they end by the server's clock, and all that it takes to expire one is not to be there.
    """
    keys: list[bytes] = sorted(client.keys("*"))  # type: ignore[arg-type]  # the client decodes nothing
    for key in keys:
        kind = client.execute_command("TYPE", key).decode()
        if not key.endswith(b":lease"):
            left = client.pttl(key)
            ttl = math.ceil(left / 1_000 / _ROUND) * int(_ROUND) if left > 0 else None
            yield json.dumps({"key": _text(key), "type": kind, "ttl": ttl, "holds": _READ[kind](client, key)})


def restore(client: redis.Redis, lines: list[str]) -> None:
    """Write what `lines_of` has read."""
    pipe = client.pipeline(transaction=False)
    for line in map(json.loads, lines):
        key = _bytes(line["key"])
        _WRITE[line["type"]](pipe, key, line["holds"])
        if line["ttl"]:
            pipe.expire(key, line["ttl"])
    pipe.execute()


def unordered(line: str) -> Any:
    """A line with its MessagePack decoded: the order of fields, and of ids of a set, is up to the server's Lua."""
    return _decoded(json.loads(line))


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _decoded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [*map(_decoded, value)]
    if isinstance(value, str):
        try:
            packed = msgspec.msgpack.decode(_bytes(value))
        except ValueError:
            # A map with bytes that are no text: at least they are the same bytes.
            return "".join(sorted(value)) if "\x80" <= value[:1] <= "\x8f" else value
        return _sorted(packed) if isinstance(packed, dict | list) else value
    return value


def _sorted(packed: Any) -> Any:
    if isinstance(packed, dict):
        return {name: _sorted(each) for name, each in packed.items()}
    if isinstance(packed, list):
        return sorted(map(_sorted, packed), key=repr)
    return packed


def _text(raw: bytes) -> str:
    return raw.decode("latin-1")


def _bytes(text: str) -> bytes:
    return text.encode("latin-1")


def _pairs(of: dict[bytes, bytes]) -> dict[str, str]:
    return {_text(name): _text(value) for name, value in sorted(of.items())}


def _number(score: float) -> str:
    return repr(score)


def _write_stream(pipe: Any, key: bytes, holds: Any) -> None:
    for at, fields in holds:
        pipe.xadd(key, {_bytes(name): _bytes(value) for name, value in fields.items()}, id=at)


_READ: Final[dict[str, Callable[[Any, bytes], Any]]] = {
    "string": lambda client, key: [
        _text(part) if part.strip(b"\0") else len(part) for part in _ZEROS.split(client.get(key)) if part
    ],
    "hash": lambda client, key: _pairs(client.hgetall(key)),
    "list": lambda client, key: [*map(_text, client.lrange(key, 0, -1))],
    "zset": lambda client, key: [
        [_text(member), _number(at)] for member, at in client.zrange(key, 0, -1, withscores=True)
    ],
    "stream": lambda client, key: [[at.decode(), _pairs(fields)] for at, fields in client.xrange(key)],
}
_WRITE: Final[dict[str, Callable[[Any, bytes, Any], Any]]] = {
    "string": lambda pipe, key, holds: pipe.set(
        key, b"".join(bytes(part) if isinstance(part, int) else _bytes(part) for part in holds)
    ),
    "hash": lambda pipe, key, holds: pipe.hset(
        key, mapping={_bytes(name): _bytes(each) for name, each in holds.items()}
    ),
    "list": lambda pipe, key, holds: pipe.rpush(key, *map(_bytes, holds)),
    "zset": lambda pipe, key, holds: pipe.execute_command(
        "ZADD", key, *(part for member, at in holds for part in (at, _bytes(member)))
    ),
    "stream": _write_stream,
}

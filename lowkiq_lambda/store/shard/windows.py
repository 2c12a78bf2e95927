"""What a claim put into flight, as include/claim.lua tells it: read once, and strictly, as anything may lie there."""

import math
import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from lowkiq_lambda.job import PLACE, Delivery
from lowkiq_lambda.store.shard.scripts import Reply, ReplyShape

_HEAD: Final = struct.Struct(">dd")
_KIND: Final = 16
_SINGLE: Final = ord("s")
_SEVERAL: Final = ord("m")
_SHORTEST: Final = _KIND + 1 + PLACE
"""Bytes of a record with one payload, which may be empty."""


class Window(msgspec.Struct, frozen=True):
    """What a claim put into flight. `charge`: not to be run; its ids fail with this error of their group.

    It is empty where all of it had to be set aside.
    """

    deliveries: Sequence[Delivery]
    lone_suspect: bool = False
    charge: bytes | None = None


class WindowReply(ReplyShape, frozen=True):
    """What claim.lua tells of a window: lists of ids, each with what it has behind it."""

    kind: bytes
    # Any: a list of a thousand records is not copied to be checked.
    records: Any
    errors: Any
    troubles: Any
    charge: bytes


class _Trouble(msgspec.Struct, frozen=True):
    """What a delivery needs of an id's troubles; include/trouble.lua says what they are."""

    blamed: bool = False
    group: str | None = None
    abandoned: bool = False
    exit_count: float | None = None


_NO_TROUBLE: Final = _Trouble()
_read_trouble: Final = msgspec.msgpack.Decoder(_Trouble).decode


def read_window(reply: Reply | bytes) -> Window | None:
    """The window, if there is one. Raises what reading raises where a record is none."""
    if isinstance(reply, bytes):
        return None
    window = WindowReply.of(reply)
    error_of = dict(pairs(window.errors))
    trouble_of = {id_: _read_trouble(packed) for id_, packed in pairs(window.troubles)}
    deliveries, numbers = [], 0.0
    for id_, record in pairs(window.records):
        perform_in, retry_count = _HEAD.unpack_from(record)
        numbers += perform_in + retry_count
        trouble = trouble_of.get(id_, _NO_TROUBLE) if trouble_of else _NO_TROUBLE
        deliveries.append(
            Delivery(
                id_.decode(),
                _entries(record),
                perform_in,
                retry_count,
                error_of.get(id_) if error_of else None,
                trouble.blamed,
                trouble.group is not None or trouble.abandoned,
                None if trouble.exit_count is None else int(trouble.exit_count),
            )
        )
    if not math.isfinite(numbers):
        raise ValueError(numbers)
    # A window told again comes out of a hash, so the order has to be made anew.
    deliveries.sort(key=lambda delivery: delivery.perform_in)
    return Window(deliveries, window.kind == b"LONE", window.charge if window.kind == b"CHARGE" else None)


def pairs(flat: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Two after two, as scripts answer."""
    return zip(flat[::2], flat[1::2], strict=True)


def _entries(record: bytes) -> list[bytes]:
    kind = record[_KIND]
    if kind == _SINGLE:
        if len(record) < _SHORTEST:
            raise ValueError(record)
        return [record[_KIND + 1 :]]
    entries, at = [], _KIND + 1
    while at < len(record):
        size = int.from_bytes(record[at : at + 4])
        entries.append(record[at + 4 : at + 4 + size])
        at += 4 + size
    if kind != _SEVERAL or at > len(record) or not entries or min(map(len, entries)) < PLACE:
        raise ValueError(record)
    return entries

"""The form of kept runs: an entry of a shard's stream `runs` has the runs of one settling, as columns.

A column is an array of unsigned numbers, one for each batch or each run; one that is empty has the same value
throughout: batches that began at `base`, of one id, outcome `done`, one payload, no error.
"""

import re
import zlib
from array import array
from hashlib import sha1
from typing import Annotated, Final

import msgspec

VERSION: Final = 1
TICKS: Final = 10_000
"""Of a second: the unit of times in columns."""
LONGEST: Final = 2**32 - 1
_COMPRESSED_FROM: Final = 200
"""Bytes."""
_ZLIB: Final = b"\x78"
"""The first byte of what zlib has made, which that of an array in MessagePack never is."""
_LONGEST_ID: Final = 200
_ID_KEPT: Final = 150
_PART_OF_CHARACTER: Final = re.compile(rb"[\xc0-\xff]?[\x80-\xbf]*\Z")


class RunColumns(msgspec.Struct, frozen=True, array_like=True):
    """The runs that one settling has ended, and that `release` of the user's code ran in the process of `owner`.

    `began` (ticks after `base`, Unix seconds) and `took` (ticks) are those of batches, as are `sizes`, how many of
    their ids are here, and `batches`, how many ids they had. `outcomes` are positions in `words`, and `failed` in
    `errors`, from 1: 0 stands for `done`, and for no error. An error is its fingerprint and its text as it is stored.
    `payloads`: score and payload of each that was handed over, if they are kept.
    """

    version: Annotated[int, msgspec.Meta(ge=VERSION, le=VERSION)]
    owner: str
    release: str
    token: int
    base: float
    ids: list[str]
    took: bytes
    digests: bytes
    began: bytes = b""
    sizes: bytes = b""
    batches: bytes = b""
    words: list[str] = []
    outcomes: bytes = b""
    counts: bytes = b""
    errors: list[tuple[bytes, bytes]] = []
    failed: bytes = b""
    payloads: list[bytes] = []

    def packed(self) -> bytes:
        """The bytes of the entry."""
        fields = [*msgspec.structs.astuple(self)]
        # A job that is settled by itself has an entry of its own: empty fields at the end would be a fifth of it.
        while not fields[-1]:
            fields.pop()
        body = msgspec.msgpack.encode(fields)
        return zlib.compress(body, 1) if len(body) > _COMPRESSED_FROM else body


_read = msgspec.msgpack.Decoder(RunColumns).decode


def unpacked(stored: bytes) -> RunColumns:
    """The runs of an entry. Raises ValueError for bytes that no such version has written."""
    try:
        return _read(zlib.decompress(stored) if stored.startswith(_ZLIB) else stored)
    except zlib.error as error:
        raise ValueError(str(error)) from error


def short_id(job_id: str) -> str:
    """The id as runs have it: of one above 200 bytes its beginning and its SHA-1.

    >>> short_id("order-7"), short_id("é" * 200)[70:90], len(short_id("é" * 200))
    ('order-7', 'éééé41f11f3d6e8d2ed7', 114)
    """
    stored = job_id.encode()
    if len(stored) <= _LONGEST_ID:
        return job_id
    beginning = _PART_OF_CHARACTER.sub(b"", stored[:_ID_KEPT])
    return beginning.decode() + sha1(stored, usedforsecurity=False).hexdigest()


def column(numbers: "array[int]", usual: int) -> bytes:
    """The bytes of a column, which is empty if all its numbers are the usual one."""
    return b"" if numbers.count(usual) == len(numbers) else _little(numbers).tobytes()


def numbers_of(stored: bytes, code: str, count: int, usual: int) -> "array[int]":
    """The numbers of a column that has so many. Raises ValueError if it has not."""
    if not stored:
        return array(code, [usual]) * count
    numbers = array(code)
    numbers.frombytes(stored)
    if len(numbers) != count:
        raise ValueError(f"a column has {len(numbers)} numbers instead of {count}")
    return _little(numbers)


def _little(numbers: "array[int]") -> "array[int]":
    """With the byte order of little-endian machines, there and back."""
    if _IS_BIG:
        numbers = numbers[:]
        numbers.byteswap()
    return numbers


_IS_BIG: Final = array("H", [1]).tobytes() == b"\x00\x01"

"""Rows of CSV files, by the byte at which they begin."""

import codecs
import csv
import os
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Final

from lowkiq_lambda.iterate.cursors import is_count, strange
from lowkiq_lambda.iterate.pairs import Pairs

_ASCII: Final = bytes(range(128))
_COMPARED: Final = 64
"""Bytes before the cursor that a file must have as they were, besides its header."""


def csv_rows(
    file: BinaryIO,
    after: Sequence[int] | None = None,
    *,
    encoding: str = "utf-8",
    fieldnames: Sequence[str] | None = None,
    **csv_format: Any,  # noqa: ANN401 - as csv.DictReader has them
) -> Pairs[dict[str | Any, str | Any], list[int]]:
    r"""The rows of a CSV file as `csv.DictReader` has them; the cursor is [row, byte after it, checksum].

    A resume reads the header anew and seeks to the row, so it takes no longer in a large file. `file` is open in binary
    mode and can seek. Without `fieldnames` the first row is the header. Other arguments, such as `delimiter`, are those
    of the `csv` module. A byte order mark of UTF-8 is skipped. The loop has no `total`: its `fraction` is that of the
    bytes.

    Raises TypeError for a file in text mode, ValueError for an encoding in which ASCII is not ASCII, such as UTF-16,
    and CursorError if no line ends at the cursor's byte, or the header or the 64 bytes before that place are
    others; csv.Error and UnicodeDecodeError come as they are.

    Examples:
        >>> from io import BytesIO
        >>> file = BytesIO(b"sku,price\nA,1\nB,2\n")
        >>> (_, cursor), _ = csv_rows(file)
        >>> [row for row, _ in csv_rows(file, after=cursor)]
        [{'sku': 'B', 'price': '2'}]
    """
    _check_encoding(encoding)
    number, start, check = _position(after)
    lines = _Lines(file, "utf-8" if codecs.lookup(encoding).name == "utf-8-sig" else encoding)
    reader = csv.DictReader(lines, fieldnames, **csv_format)
    # Asked for its names, the reader takes the header.
    header = reader.fieldnames
    lines.end_header()
    if after is not None:
        lines.go_on(start, check, after)
    rows = enumerate(reader if header else (), start=number + 1)
    pairs = ((row, [count, lines.offset, lines.check]) for count, row in rows)
    return Pairs(pairs, position=number, measure=lines.fraction)


class _Lines:
    """The lines of a file, and how many bytes of it they were."""

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        if not isinstance(file.read(0), bytes):
            raise TypeError('csv_rows takes a file that is open in binary mode: open(path, "rb")')
        self._file = file
        self._encoding = encoding
        file.seek(0)
        self.offset = len(codecs.BOM_UTF8) if file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8 else 0
        file.seek(self.offset)
        self._header = 0
        self._tail = b""
        self._size = 0

    @property
    def check(self) -> int:
        """The checksum of the header and of the bytes before this place."""
        return zlib.crc32(self._tail, self._header)

    def __iter__(self) -> Iterator[str]:
        while line := self._file.readline():
            self.offset += len(line)
            self._tail = (self._tail + line)[-_COMPARED:]
            yield line.decode(self._encoding)

    def fraction(self) -> float | None:
        """The part of the file that was read; its size is asked for once."""
        if not self._size:
            place = self._file.tell()
            self._size = self._file.seek(0, os.SEEK_END)
            self._file.seek(place)
        return min(1.0, self.offset / self._size) if self._size else None

    def end_header(self) -> None:
        """Mark the lines that were read so far as the header."""
        self._file.seek(0)
        self._header = zlib.crc32(self._file.read(self.offset))
        self._tail = b""

    def go_on(self, start: int, check: int, cursor: object) -> None:
        """Seek to where a row ended."""
        size = self._file.seek(0, os.SEEK_END)
        if start > size:
            raise strange("csv_rows", cursor, f"the file has only {size} bytes")
        if start <= self.offset:
            raise strange("csv_rows", cursor, f"the first row begins at byte {self.offset}")
        length = min(start - self.offset, _COMPARED)
        self._file.seek(start - length)
        self._tail = self._file.read(length)
        if not self._tail.endswith(b"\n") and start < size:
            raise strange("csv_rows", cursor, f"no line ends at byte {start}, so the file has changed")
        if self.check != check:
            raise strange("csv_rows", cursor, f"the header, or what comes before byte {start}, is not as it was")
        self.offset = start


def _check_encoding(encoding: str) -> None:
    try:
        compatible = _ASCII.decode(encoding) == _ASCII.decode("ascii")
    except UnicodeError:
        compatible = False
    if not compatible:
        raise ValueError(
            f"csv_rows cannot read {encoding}: it finds lines by their bytes, so ASCII must be ASCII in the encoding, "
            "as in UTF-8 and Latin-1; convert the file first"
        )


def _position(cursor: Sequence[int] | None) -> tuple[int, int, int]:
    if cursor is None:
        return 0, 0, 0
    if (
        not isinstance(cursor, list | tuple)
        or len(cursor) != len(("row", "byte", "checksum"))
        or not all(map(is_count, cursor))
    ):
        raise strange("csv_rows", cursor, "it must be [row, byte after it, checksum]")
    number, start, check = cursor
    return number, start, check

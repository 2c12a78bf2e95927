"""Headers of jobs: facts about a push for its handler. Imported only if a job has some."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from lowkiq_lambda.base.errors import JobError

Headers: TypeAlias = Mapping[str, str]
MOST_BYTES: Final = 1_024
"""Of the headers of one job, packed."""

pack: Final = msgspec.msgpack.Encoder().encode
_unpack: Final = msgspec.msgpack.Decoder(dict[str, str]).decode


def checked(headers: object) -> bytes:
    """The headers of a job, packed. Raises JobError."""
    if not isinstance(headers, Mapping) or not all(type(part) is str for pair in headers.items() for part in pair):
        raise JobError("must be a mapping of str to str", field="headers")
    try:
        packed = pack({**headers})
    except UnicodeEncodeError:
        raise JobError("hold a lone surrogate, which cannot be stored", field="headers") from None
    if len(packed) > MOST_BYTES:
        raise JobError(f"have {len(packed):,} bytes: give {MOST_BYTES:,} at most", field="headers")
    return packed


def read(stored: Sequence[bytes]) -> list[Headers]:
    """The headers of entries, as include/headers.lua keeps them. Unreadable ones are left out."""
    headers: list[Headers] = []
    for value in stored:
        at = 2
        while at + 2 <= len(value):
            start, at = at + 2, at + 2 + int.from_bytes(value[at : at + 2])
            try:
                headers.append(_unpack(value[start:at]))
            except ValueError:
                continue
    return headers


def pushes_of(stored: Sequence[bytes]) -> int:
    """How many pushed jobs with headers the entries are of: more than there are headers, if some had no room."""
    return sum(int.from_bytes(value[:2]) for value in stored)

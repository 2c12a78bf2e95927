"""Pages of a bounded size, and what programs ask for again and again."""

from collections.abc import Iterable
from hashlib import sha256
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta

LARGEST_PAGE: Final = 2 * 1024 * 1024
"""Bytes of JSON. API Gateway's limit is 6 MB, and each quotation mark counts twice."""

Serialized = TypeVar("Serialized", bound=msgspec.Struct)

_DIGITS: Final = 16


def fitting(jobs: Iterable[Serialized]) -> list[Serialized]:
    """The first jobs that fit into one response, at least one."""
    fit: list[Serialized] = []
    size = 0
    for job in jobs:
        size += len(msgspec.json.encode(job))
        if size > LARGEST_PAGE and fit:
            break
        fit.append(job)
    return fit


class Polled(msgspec.Struct, frozen=True, kw_only=True):
    """What a program polls."""

    version: Annotated[
        str, Meta(description="Another text whenever anything but `next_poll` has changed. The `ETag` has it, too.")
    ]
    next_poll: Annotated[
        float | None,
        Meta(description="In how many seconds it is worth asking again; null where nothing will change any more."),
    ]


def version_of(*parts: object) -> str:
    """A text that another content does not have."""
    return sha256(msgspec.json.encode(parts)).hexdigest()[:_DIGITS]

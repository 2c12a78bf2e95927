"""Pages of a bounded size."""

from collections.abc import Iterable
from typing import Final, TypeVar

import msgspec

LARGEST_PAGE: Final = 2 * 1024 * 1024
"""Bytes of JSON. API Gateway's limit is 6 MB, and each quotation mark counts twice."""

Serialized = TypeVar("Serialized", bound=msgspec.Struct)


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

"""What the helpers say of a cursor that they cannot go on from."""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias, TypeVar

from lowkiq_lambda.base.errors import CursorError

T = TypeVar("T")

Cursor: TypeAlias = Any
"""Any JSON but null, which begins."""
Level: TypeAlias = Callable[..., Iterable[tuple[T, Cursor]]]
"""A function that takes `after` as its last argument and gives pairs."""

_SHOWN: Final = 200
"""Characters of a cursor in an error."""


def strange(helper: str, cursor: object, why: str) -> CursorError:
    """The error for a cursor that the helper did not make, or no longer understands."""
    text = repr(cursor)
    return CursorError(f"The cursor {text[:_SHOWN]}{'…' * (len(text) > _SHOWN)} is not one of {helper}: {why}.")


def is_count(value: object) -> bool:
    """Whether it is a whole number from 0; True and False are none."""
    return type(value) is int and value >= 0

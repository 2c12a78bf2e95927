"""The leaves in which one payload differs from another."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

MOST_LINES: Final = 50
"""Lines that a page has room for."""
_LONGEST: Final = 200
"""Characters of a path or a value."""
_DEEPEST: Final = 40
_ABSENT: Final = object()
_PLAIN_KEY: Final = re.compile(r"[\w-]+")
Kind: TypeAlias = Literal["added", "removed", "changed"]


class ChangedLeaf(msgspec.Struct, frozen=True, kw_only=True):
    """A value that was added, removed or changed. `old` and `new` are JSON; empty if there is none."""

    path: str
    kind: Kind
    old: str = ""
    new: str = ""


class ChangedLeaves(NamedTuple):
    """The first leaves that differ. `is_all`: no other differs."""

    lines: Sequence[ChangedLeaf]
    is_all: bool


def changes_of_texts(old: str, new: str) -> ChangedLeaves | None:
    """The leaves in which two JSON texts differ; None if one of them is not JSON."""
    try:
        return changed_leaves(json.loads(old), json.loads(new))
    except (ValueError, RecursionError):
        return None


def changed_leaves(old: object, new: object, most: int = MOST_LINES) -> ChangedLeaves:
    """The leaves of JSON values that differ, in the order of the first value, at most so many.

    Elements of a list are compared by their position. Values that are nested too deeply count as leaves.
    """
    lines = [*islice(_changes("", old, new, 0), most + 1)]
    return ChangedLeaves(lines[:most], is_all=len(lines) <= most)


def _changes(path: str, old: object, new: object, depth: int) -> Iterator[ChangedLeaf]:
    if depth < _DEEPEST:
        # All leaves of a branch that was added or removed as a whole.
        if old is _ABSENT and isinstance(new, dict | list) and new:
            old = type(new)()
        elif new is _ABSENT and isinstance(old, dict | list) and old:
            new = type(old)()
        if isinstance(old, dict) and isinstance(new, dict):
            for key in [*old, *(key for key in new if key not in old)]:
                yield from _changes(_below(path, key), old.get(key, _ABSENT), new.get(key, _ABSENT), depth + 1)
            return
        if isinstance(old, list) and isinstance(new, list):
            for index, (before, after) in enumerate(zip_longest(old, new, fillvalue=_ABSENT)):
                yield from _changes(f"{path}[{index}]", before, after, depth + 1)
            return
    old_json, new_json = _json(old), _json(new)
    # Compared as JSON: True equals 1 in Python, and NaN equals nothing.
    if old_json != new_json:
        kind: Kind = "added" if old is _ABSENT else "removed" if new is _ABSENT else "changed"
        yield ChangedLeaf(path=_cut(path), kind=kind, old=_cut(old_json), new=_cut(new_json))


def _below(path: str, key: str) -> str:
    if not _PLAIN_KEY.fullmatch(key):
        return f"{path}[{_json(key)}]"
    return f"{path}.{key}" if path else key


def _json(value: object) -> str:
    return "" if value is _ABSENT else json.dumps(value, ensure_ascii=False)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"

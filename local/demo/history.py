"""A history of files as the demo replays it: changes in order, and what must be left after the last one.

Git's paths are bytes, ids are text. `path_id` turns one into the other without loss: UTF-8 stays as it is;
`%` and each byte that is not UTF-8 become `%XX`, so that no two paths share an id.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import unquote_to_bytes

from lowkiq_lambda.base.errors import LowkiqError

Files: TypeAlias = Mapping[str, str]
"""The files of one commit: path id to the content's object id."""

_ESCAPES = {ord("%"): "%25"} | {0xDC00 + byte: f"%{byte:02X}" for byte in range(0x80, 0x100)}


class HistoryError(LowkiqError):
    """The history cannot be read: name a git repository that has a commit."""


@dataclass(frozen=True, slots=True)
class Change:
    """What one commit did to one file."""

    seq: int
    """The commit's number on the main line; the oldest has 1."""
    path: str
    """The file, as a path id."""
    blob: str | None
    """The new content's object id; None where the commit deleted the file."""


@dataclass(frozen=True, slots=True)
class History:
    """The changes of a main line, oldest first, between two known states."""

    origin: str
    """Where it was read, for people."""
    commit: str
    """The object id of the last commit."""
    changes: Sequence[Change]
    final: Files
    """What the last commit holds, by its own tree: never computed from the changes."""
    base: Files = field(default_factory=dict)
    """What was there before the first change; empty where the history is whole."""
    base_seq: int = 0
    """The number of the commit that `base` shows; 0 where the history is whole."""

    @property
    def paths(self) -> int:
        """How many different files the changes are of."""
        return len({change.path for change in self.changes})


def path_id(path: bytes) -> str:
    """The text that stands for `path` as a job's id."""
    return path.decode("utf-8", "surrogateescape").translate(_ESCAPES)


def path_bytes(path: str) -> bytes:
    """The path as git has it, from its id."""
    return unquote_to_bytes(path)

"""The history that is replayed, and what its handlers note down in a way that survives SIGKILL."""

import fcntl
import gzip
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import msgspec

SHARDS = 6
DATA = Path(__file__).parents[1] / "data"


class Change(msgspec.Struct, frozen=True):
    """A file's new content (None: it was removed) by the commit with this number."""

    seq: int
    path: str
    blob: str | None
    commit: str

    def job(self) -> dict[str, Any]:
        """The file is the entity, its changes come in order of the commits."""
        return {"id": self.path, "payload": {"blob": self.blob, "commit": self.commit}, "score": self.seq}


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line about a file.

    begin: the first and last change of a delivery, and how many. apply: one of them. end, fail: of the delivery.
    overlap: another delivery of the file was under way.
    """

    event: Literal["begin", "apply", "end", "fail", "overlap"]
    seq: int = 0
    blob: str | None = None
    last: int = 0
    count: int = 0
    token: int = 0


class Delivery(msgspec.Struct):
    """What one execution was given, what it applied, and how it ended; "killed" where it did not come to its end."""

    given: Note
    applied: list[int]
    ended: Literal["end", "fail", "killed"] = "killed"


def read_history() -> list[Change]:
    """All changes, oldest first."""
    with gzip.open(DATA / "file-history.jsonl.gz") as lines:
        return [msgspec.json.decode(line, type=Change) for line in lines]


def read_final() -> dict[str, str]:
    """The content of each file that is there in the end."""
    return msgspec.json.decode((DATA / "file-history-final.json").read_bytes(), type=dict[str, str])


@contextmanager
def alone(folder: Path, path: str) -> Iterator[Callable[[Note], object]]:
    """Gives what notes something about the file, and notes itself where the file is in other hands too.

    The lock ends with its process, however that ends, and a line is there or is not: it is one short write.
    """
    with (folder / quote(path, safe="")).open("ab", buffering=0) as file:

        def note(line: Note) -> None:
            file.write(msgspec.json.encode(line) + b"\n")

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note(Note("overlap"))
        yield note


def notes_of(folder: Path, path: str) -> list[Note]:
    """All that was noted about the file, in order."""
    page = folder / quote(path, safe="")
    lines = page.read_bytes().splitlines() if page.exists() else []
    return [msgspec.json.decode(line, type=Note) for line in lines]


def deliveries_of(notes: Sequence[Note]) -> list[Delivery]:
    """The executions of a file, in order."""
    found: list[Delivery] = []
    for note in notes:
        if note.event == "begin":
            found.append(Delivery(note, []))
        elif note.event == "apply":
            found[-1].applied.append(note.seq)
        elif note.event != "overlap":
            found[-1].ended = note.event
    return found

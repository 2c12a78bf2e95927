"""What pushers, handlers and the storm itself write down while it lasts."""

import os
import time
from pathlib import Path

import msgspec


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that happened, at `at` (seconds of the machine's monotonic clock, which all processes share).

    `what` is: pushing and pushed (payloads are scores too), begin, done, failed and stale (the handler outlived its
    lease), or a fault: killed, frozen, thawed (of `pid`), cut (of all connections).
    """

    at: float
    what: str
    pid: int
    id: str = ""
    payloads: list[int] = []


class Notebook:
    """A file that any number of processes append to, each note in one write."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("ab", buffering=0)

    def write(
        self,
        what: str,
        job_id: str = "",
        payloads: list[int] | None = None,
        pid: int | None = None,
        at: float | None = None,
    ) -> None:
        """The note is in the file when this returns, even if the process dies right after. `at`: now, by default."""
        at = time.monotonic() if at is None else at
        note = Note(at, what, os.getpid() if pid is None else pid, job_id, payloads or [])
        self._file.write(msgspec.json.encode(note) + b"\n")

    def read(self) -> list[Note]:
        """All notes, in the order of their times."""
        # The last one may be half written yet.
        lines = self._path.read_bytes().rpartition(b"\n")[0].splitlines()
        return sorted((msgspec.json.decode(line, type=Note) for line in lines), key=lambda note: note.at)

    def close(self) -> None:
        """Write no more."""
        self._file.close()

"""What the processes of a race write down."""

import os
import time
from pathlib import Path

import msgspec


class RaceNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that happened, at `at` (seconds of the machine's monotonic clock, which all processes share).

    `what` is: pushing and pushed (numbers are payloads and scores); begin; done, failed, left (the handler exited, was
    cancelled, or made way); settled (Redis has acknowledged that it is done); killing (of `pid`); evicting (of `token`,
    in the shard of the id). `stopping`: the handler was told to stop when it ended.
    """

    at: float
    what: str
    pid: int
    id: str = ""
    numbers: list[int] = []
    token: int = 0
    stopping: bool = False


class RaceNotes:
    """A file that any number of threads and processes append to, each note in one write."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, note: RaceNote) -> None:
        """It is in the file when this returns, even if the process dies right after."""
        os.write(self._file, msgspec.json.encode(note) + b"\n")

    def tell(
        self, what: str, *, pid: int = 0, job_id: str = "", numbers: list[int] | None = None, token: int = 0
    ) -> None:
        """Note that it happens now."""
        self.write(RaceNote(time.monotonic(), what, pid or os.getpid(), job_id, numbers or [], token))

    def read(self) -> list[RaceNote]:
        """All notes, in the order of their times."""
        lines = self._path.read_bytes().splitlines()
        return sorted((msgspec.json.decode(line, type=RaceNote) for line in lines), key=lambda note: note.at)

    def close(self) -> None:
        """Write no more."""
        os.close(self._file)

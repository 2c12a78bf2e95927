"""One line of a history, and the file that lines are appended to."""

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

What: TypeAlias = Literal[
    "push-begin",
    "push-end",
    "begin",
    "end",
    "holds",
    "settled",
    "write",
    "died",
    "frozen",
    "thawed",
    "evicted",
    "fault",
    "left",
    "item-begin",
    "item-end",
    "completed",
    "planned",
    "fired",
]


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that happened, at `at`: the package's docstring says what each kind means."""

    at: float
    what: What
    process: int = 0
    id: str = ""
    numbers: list[int] = []
    token: int = 0
    scope: str = ""
    outcome: str = ""
    repeated: bool | None = None
    due: float | None = None
    expires: float | None = None


class Recorder:
    """A history that any number of threads and processes append to."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(
        self, what: What, job_id: str = "", numbers: Iterable[int] = (), *, at: float | None = None, **fields: Any
    ) -> None:
        """The event is in the file when this returns, even if the process dies right after.

        `at` is now, and `process` this one, unless told otherwise.
        """
        # First the time: what happens behind it says nothing of what was before.
        at = time.monotonic() if at is None else at
        event = Event(at, what, fields.pop("process", os.getpid()), job_id, [*numbers], **fields)
        os.write(self._file, msgspec.json.encode(event) + b"\n")

    def read(self) -> list[Event]:
        """All events, in the order of their times."""
        # The last one may be half written yet.
        lines = self._path.read_bytes().rpartition(b"\n")[0].splitlines()
        return sorted((_DECODER.decode(line) for line in lines), key=lambda event: event.at)

    def close(self) -> None:
        """Write no more."""
        os.close(self._file)


_DECODER = msgspec.json.Decoder(Event)

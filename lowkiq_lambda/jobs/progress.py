"""How far a job with a cursor has come, as it is kept between its runs."""

from hashlib import sha256

import msgspec


class JobProgress(msgspec.Struct, array_like=True):
    """The cursor of a job, and what is counted over all of its runs."""

    cursor: bytes | None = None
    """The last yielded cursor, as JSON; None before the first time."""
    version: int = 1
    """The worker's `cursor_version` when it was yielded."""
    items: int = 0
    """How often the cursor changed."""
    noted: bytes = b""
    """A digest of the cursor when its movement was last taken note of: by a failure, or by a run that goes on later."""
    failures: int = 0
    interruptions: int = 0
    """How often the job was stopped, or stopped itself, before its end."""
    seconds: float = 0.0
    """How long it ran, up to its last save or the end of a run."""
    started_at: float = 0.0
    """When its first run began; Unix seconds."""
    due_at: float = 0.0
    """When its first run was due; Unix seconds."""
    total: int | None = None
    """How many items it expects."""
    reason: str = ""
    """Why it was last stopped."""
    measured: float | None = None
    """The part of its data that it has read, from 0 to 1, if that is not a number of items."""

    @property
    def fraction(self) -> float | None:
        """How much is done, from 0 to 1: of the items that it expects, else of its data; None if neither is known."""
        return min(1.0, self.items / self.total) if self.total else self.measured

    @property
    def has_moved(self) -> bool:
        """Whether the cursor is another one than when that was last taken note of, however often it changed."""
        return self.noted != self._digest()

    def note(self) -> None:
        """Take note of the cursor."""
        self.noted = self._digest()

    def dump(self) -> bytes:
        """As it is kept."""
        if self.measured is not None:
            return msgspec.msgpack.encode(self)
        return msgspec.msgpack.encode(msgspec.structs.astuple(self)[:-1])

    def _digest(self) -> bytes:
        return b"" if self.cursor is None else sha256(self.cursor).digest()[:8]


_decoder = msgspec.msgpack.Decoder(JobProgress)


def load_progress(data: bytes) -> JobProgress:
    """As it was kept; a new one for nothing. Raises msgspec.DecodeError if the record is broken."""
    return _decoder.decode(data) if data else JobProgress()

"""The stack of each thread right now, to find out why a process does not move (L-73)."""

import os
import stat
import sys
import threading
import traceback
from pathlib import Path
from typing import Final

TRACE_FILE: Final = "lowkiq_ttin.txt"


def thread_traces() -> str:
    """The stacks of all threads of this process, the innermost call last."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    stacks = sys._current_frames()  # noqa: SLF001 - it is documented for exactly this
    parts = [
        f"Thread {names.get(ident, 'unknown')} ({ident}):\n{''.join(traceback.format_stack(frame))}"
        for ident, frame in stacks.items()
    ]
    return "\n".join(parts)


def write_traces(path: Path, traces: str) -> None:
    """Write them into that file, over those of the last time. Raises OSError."""
    # Everybody may write to a folder for temporary files: follow no link that somebody laid there, wait for no reader
    # of a pipe, and write into no file of theirs, nor into one of ours that they gave this name.
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    with os.fdopen(os.open(path, flags, 0o600), "w") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_nlink != 1:
            raise PermissionError(f"{path} is not a file of this user, or has other names")
        file.truncate()
        file.write(f"Process {os.getpid()}\n\n{traces}")

"""Ends what a killed process left behind.

A small process reads from a pipe which servers and folders are in use. The pipe ends with the process that uses them,
however that ends, SIGKILL included; what is still in use then is killed and removed.
"""

import atexit
import subprocess
import sys
from functools import cache
from pathlib import Path

_PROGRAM = """
import os, shutil, signal, sys

in_use = {}
for line in sys.stdin:
    verb, kind, what = line.rstrip("\\n").split(" ", 2)
    if verb == "watch":
        in_use[kind, what] = True
    else:
        in_use.pop((kind, what), None)
for kind, what in in_use:
    if kind == "pid":
        try:
            os.kill(int(what), signal.SIGKILL)
        except ProcessLookupError:
            pass
for kind, what in in_use:
    if kind == "folder":
        shutil.rmtree(what, ignore_errors=True)
"""


def watch_process(pid: int) -> None:
    """The process, or the group of the process -pid, is killed when this one ends, unless it is forgotten before."""
    _tell(f"watch pid {pid}")


def forget_process(pid: int) -> None:
    """The process has been waited for, and its pid may be another's soon."""
    _tell(f"forget pid {pid}")


def watch_folder(path: Path) -> None:
    """The folder is removed when this process ends."""
    _tell(f"watch folder {path}")


def forget_folder(path: Path) -> None:
    """The folder has been removed."""
    _tell(f"forget folder {path}")


def _tell(line: str) -> None:
    if pipe := _reaper().stdin:
        pipe.write(f"{line}\n".encode())


@cache
def _reaper() -> "subprocess.Popen[bytes]":
    # A session of its own, so that Ctrl-C leaves it to its work; isolated, so that it starts in milliseconds.
    reaper = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _PROGRAM], stdin=subprocess.PIPE, bufsize=0, start_new_session=True
    )
    atexit.register(reaper.communicate)
    return reaper

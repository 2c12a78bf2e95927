"""Processes as the system shows them, also those that are no children of the test."""

from pathlib import Path


def state_of(pid: int) -> str:
    """The letter of a process, or of a thread: R, S, T for stopped, Z for one that waits to be reaped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def lives(pid: int) -> bool:
    """Whether that process has not ended; one that waits to be reaped has."""
    try:
        return state_of(pid) != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False

"""The exit codes of children, and of the parent, which has the worst of them."""

from typing import Final

FAILED: Final = 1
"""A job was given back unfinished, a child was killed, or Redis refused something."""
MISUSED: Final = 2
"""The settings or the app cannot work."""


def worse(code: int, returned: int) -> int:
    """The worse of an exit code and of what a process returned, where a signal is below 0."""
    return max(code, FAILED if returned < 0 else returned)

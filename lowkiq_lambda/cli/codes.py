"""The exit codes of all commands."""

from typing import Final

DONE: Final = 0
"""The command did what was asked for."""
FAILED: Final = 1
"""It was not done: something was refused or not found, died, or was given back unfinished."""
DIFFERENT: Final = 1
"""Two things that were compared are not the same, as `diff` says it too."""
NOT_APPLIED: Final = 1
"""Something could be changed, and was not: a dry run, or the answer was not yes."""
MISUSED: Final = 2
"""The command line, the settings or the app cannot work: the same command would fail again."""
AWAY: Final = 3
"""The server cannot be reached, or cannot serve now: the same command may work a little later."""
INTERRUPTED: Final = 130
"""Ctrl-C, before the command had come to its end."""
TERMINATED: Final = 143
"""TERM, before the command had come to its end."""

"""The exit codes of all commands."""

from typing import Final

DONE: Final = 0
"""The command did what was asked for."""
FAILED: Final = 1
"""It did not work: something is out of reach, was refused, or was given back unfinished."""
DIFFERENT: Final = 1
"""Two things that were compared are not the same, as `diff` says it too."""
MISUSED: Final = 2
"""The command line, the settings or the app cannot work."""
NOT_APPLIED: Final = 3
"""Something could be changed, and was not: a dry run, or the answer was not yes."""
INTERRUPTED: Final = 130
"""Ctrl-C, before the command had come to its end."""

"""Asks before something is done that cannot be undone, or that others notice."""

import sys
from typing import Final

from lowkiq_lambda.base.errors import ConfigError

NOTHING: Final = "Nothing was changed."
"""What is said where the answer is not yes."""


def agreed(question: str) -> bool:
    """Ask; whether the answer is the word yes. Raises ConfigError where nobody is there to be asked."""
    if not sys.stdin.isatty():
        raise ConfigError(f"{question} There is no terminal to ask at: give --yes.")
    sys.stdout.write(f"{question} Only 'yes' will do: ")
    sys.stdout.flush()
    return sys.stdin.readline().strip() == "yes"

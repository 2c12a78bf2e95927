"""Asks before something is done that cannot be undone."""

import sys


def agreed(question: str) -> bool:
    """Ask; whether the next line of the standard input is the word yes."""
    sys.stdout.write(f"{question} Only 'yes' will do: ")
    sys.stdout.flush()
    return sys.stdin.readline().strip() == "yes"

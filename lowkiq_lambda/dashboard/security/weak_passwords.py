"""Passwords that are long, and still among the first that anybody tries."""

from itertools import pairwise
from typing import Final

_FEWEST: Final = 5
"""Different characters of a password."""
_ROWS: Final = ("1234567890", "abcdefghijklmnopqrstuvwxyz", "qwertyuiop", "asdfghjkl", "zxcvbnm")
_MOST_BREAKS: Final = 2
"""Of a sequence; `abcdef123456` has one."""


def weakness(password: str) -> str | None:
    """Why others could guess the password; None if it does not repeat itself, and is no sequence."""
    text = password.strip().lower()
    if len({*text}) < _FEWEST:
        return f"has fewer than {_FEWEST} different characters"
    if text in (text + text)[1:-1]:
        return "repeats itself"
    if sum(not _are_neighbours(*pair) for pair in pairwise(text)) <= _MOST_BREAKS:
        return "is a sequence of the alphabet, the digits or the keyboard"
    return None


def _are_neighbours(one: str, other: str) -> bool:
    """Whether they follow each other in a row, in either direction, from its end to its beginning too."""
    if one == other:
        return True
    return any(
        abs(row.index(one) - row.index(other)) in {1, len(row) - 1} for row in _ROWS if one in row and other in row
    )

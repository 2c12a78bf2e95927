"""Durations as people type them."""

import re
from typing import Final

_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_LONGEST: Final = 100 * 365 * 86_400
_PART: Final = re.compile(
    r"(\d{1,9}(?:\.\d{1,3})?) ?(s(?:ec(?:onds?)?)?|m(?:in(?:utes?)?)?|h(?:ours?)?|d(?:ays?)?)", re.ASCII
)
_PARTS: Final = re.compile(rf"{_PART.pattern}(?:,? ?(?:and )?{_PART.pattern})*", re.ASCII)


def seconds_of(text: str) -> float | None:
    """The seconds; None for "until resumed". Raises ValueError, with a sentence, for any other text.

    >>> [seconds_of(text) for text in ("90 s", "15 min", "2 h 30 min", "1d12h", "until resumed")]
    [90.0, 900.0, 9000.0, 129600.0, None]
    """
    plain = " ".join(text.lower().split())
    if plain in {"until resumed", "until it is resumed"}:
        return None
    if not _PARTS.fullmatch(plain):
        raise ValueError(f"“{text.strip()[:40]}” is not a duration. Examples: 90 s, 15 min, 2 h 30 min.")
    seconds = sum(float(number) * _UNITS[unit[0]] for number, unit in _PART.findall(plain))
    if not 0 < seconds <= _LONGEST:
        raise ValueError("The duration must be above 0 and at most 100 years.")
    return seconds

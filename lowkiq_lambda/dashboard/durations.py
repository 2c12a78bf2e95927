"""Durations as people type them, and how long a pause lasts, as forms ask it and get it."""

import re
from collections.abc import Mapping
from typing import Any, Final

from lowkiq_lambda.store.shard.nodes import FOREVER
from lowkiq_lambda.views.activity import LONGEST_REASON

_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_LONGEST: Final = 100 * 365 * 86_400
_PART: Final = re.compile(
    r"(\d{1,9}(?:\.\d{1,3})?) ?(s(?:ec(?:onds?)?)?|m(?:in(?:utes?)?)?|h(?:ours?)?|d(?:ays?)?)", re.ASCII
)
_PARTS: Final = re.compile(rf"{_PART.pattern}(?:,? ?(?:and )?{_PART.pattern})*", re.ASCII)

WRONG_SECONDS: Final = "The duration must be in seconds above 0. Without one the pause has no end."
_OTHER: Final = "other"
_SPANS: Final = {
    "": "until it is resumed",
    "300": "for 5 minutes",
    "900": "for 15 minutes",
    "3600": "for an hour",
    "28800": "for 8 hours",
    _OTHER: "for another duration",
}
_LONGEST_SHOWN: Final = 100
"""Characters of a rejected duration that the form shows again."""


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


def asked(query: Mapping[str, str]) -> dict[str, Any]:
    """What the template of the form needs, from the query of its page."""
    fields = {name: query.get(name, "") for name in ("seconds", "length", "reason")}
    return {**fields, "wrong": wrong_length(query), "spans": _SPANS}


def again(form: Mapping[str, str]) -> dict[str, str]:
    """The query of the page that shows a rejected duration again."""
    reason = form.get("reason", "")[:LONGEST_REASON]
    fields = {"seconds": _OTHER, "length": form.get("length", "")[:_LONGEST_SHOWN]}
    return {**fields, "reason": reason} if reason else fields


def wrong_length(fields: Mapping[str, str]) -> str:
    """The reason why the typed duration is invalid; empty if it is valid, or none was typed."""
    if fields.get("seconds") != _OTHER:
        return ""
    try:
        seconds_of(fields.get("length", ""))
    except ValueError as error:
        return str(error)
    return ""


def pause_seconds(form: Mapping[str, str]) -> float | None:
    """None: until it is resumed. Raises ValueError for a text that is not a duration."""
    choice = form.get("seconds", "").strip()
    seconds = seconds_of(form.get("length", "")) if choice == _OTHER else float(choice) if choice else None
    if seconds is not None and not 0 < seconds <= FOREVER:
        raise ValueError(choice)
    return seconds


def in_words(seconds: float | None) -> str:
    """The duration of a pause for the activity log."""
    return "until it is resumed" if seconds is None else f"for {seconds:g} seconds"

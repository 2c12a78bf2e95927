"""What is wrong with a request, in sentences for people: msgspec's own are for programmers."""

import re
from collections.abc import Callable
from typing import Final

_AT: Final = r"(?: - at `(?:key in )?\$\.?(?P<at>.*?)`)?"
_LIMITS: Final = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_KINDS: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def sentence(error: str) -> str:
    """Of a message of msgspec.

    >>> sentence("Expected `int` <= 1000 - at `$.limit`")
    '`limit` must be at most 1000.'
    >>> sentence("Expected `float | null`, got `str` - at `$.filter.seconds`")
    '`filter.seconds` must be a number or null, not a text.'
    >>> sentence("Expected `array` of length >= 1 - at `$.ids`")
    '`ids` must have at least 1 entry.'
    """
    for pattern, words in _FORMS:
        if match := pattern.fullmatch(error):
            return words(match)
    return f"{error}."


def _field(match: re.Match[str]) -> str:
    return f"`{match['at']}`" if match["at"] else "the whole of it"


def _length(match: re.Match[str], one: str, many: str) -> str:
    counted = one if match["bound"] == "1" else many
    return f"{_field(match)} must have {_LIMITS[match['sign']]} {match['bound']} {counted}."


def _kinds(names: str) -> str:
    return " or ".join(_KINDS.get(name, f"`{name}`") for name in names.split(" | "))


def _form(
    pattern: str, words: Callable[[re.Match[str]], str]
) -> tuple[re.Pattern[str], Callable[[re.Match[str]], str]]:
    return re.compile(pattern + _AT, re.DOTALL), words


_FORMS: Final = (
    _form(r"Object missing required field `(?P<name>.+?)`", lambda match: f"`{match['name']}` is missing."),
    _form(r"Object contains unknown field `(?P<name>.+?)`", lambda match: f"There is no field `{match['name']}`."),
    _form(r"Invalid enum value (?P<value>.+?)", lambda match: f"{_field(match)} cannot be {match['value']}."),
    _form(
        r"Expected `(?:int|float|number)` (?P<sign>[<>]=?) (?P<bound>\S+)",
        lambda match: f"{_field(match)} must be {_LIMITS[match['sign']]} {match['bound']}.",
    ),
    _form(
        r"Expected `str` of length (?P<sign>[<>]=?) (?P<bound>\d+)",
        lambda match: _length(match, "character", "characters"),
    ),
    _form(
        r"Expected `array` of length (?P<sign>[<>]=?) (?P<bound>\d+)",
        lambda match: _length(match, "entry", "entries"),
    ),
    _form(
        r"Expected `(?P<wanted>[^`]+)`, got `(?P<given>[^`]+)`",
        lambda match: f"{_field(match)} must be {_kinds(match['wanted'])}, not {_kinds(match['given'])}.",
    ),
    _form(r"Expected `(?P<wanted>[^`]+)`", lambda match: f"{_field(match)} must be {_kinds(match['wanted'])}."),
)

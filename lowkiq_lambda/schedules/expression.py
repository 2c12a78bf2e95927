"""The form of cron expressions, checked without the library that evaluates them."""

import re
from typing import Final

from lowkiq_lambda.base.error_text import cut, shown
from lowkiq_lambda.base.errors import DeclarationError

ALIASES: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
FIELDS: Final = ("second", "minute", "hour", "day-of-month", "month", "day-of-week")
"""Their names, as cronsim has them too."""

_RANGES: Final = {
    "second": "0 to 59",
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day-of-month": "1 to 31, L and LW",
    "month": "1 to 12, JAN to DEC",
    "day-of-week": "0 to 7, SUN to SAT, 5L, MON#1",
}
_COUNTS: Final = {"second": 60, "minute": 60, "hour": 24, "day-of-month": 31, "month": 12, "day-of-week": 7}
"""How many numbers a field has: a longer step would fire once in the next larger unit, which is a mistake."""
_LONGEST_STEP: Final = 4
_STEP: Final = re.compile(r"/(\d+)")
_NUMBERS: Final = re.compile(r"[0-9*][0-9*,/-]*")
_FORMS: Final = {
    "day-of-month": re.compile(r"[0-9*][0-9*,/L-]*|LW?"),
    "month": re.compile(r"[0-9A-Z*][0-9A-Z*,/-]*"),
    "day-of-week": re.compile(r"[0-9A-Z*][0-9A-Z*,/#-]*"),
}
_FIRST: Final = re.compile(r"[0-9*][^ ]*")
_INLINE_ZONE: Final = re.compile(r"[A-Za-z]+(/[A-Za-z][\w+-]*)+|UTC|GMT|(CRON_)?TZ=.*")
_EXPECTED: Final = "five fields, such as '0 4 * * MON-FRI', or six with seconds first"


def fields_of(text: object) -> list[str]:
    """The five or six fields of an expression in upper case; an alias gives those that it stands for.

    Raises DeclarationError for what cannot be an expression, whatever its numbers are.

    >>> fields_of("0 9 * * mon-fri")
    ['0', '9', '*', '*', 'MON-FRI']
    """
    if not isinstance(text, str):
        raise DeclarationError(f"cron must be a text of {_EXPECTED}, not {shown(text)}.")
    words = text.split()
    if text.lstrip().startswith("@"):
        return _fields_of_alias(text.strip())
    for word in words:
        if _INLINE_ZONE.fullmatch(word):
            raise DeclarationError(f"cron {shown(text)} names a zone: give it as tz instead, not as {shown(word)}.")
    if len(words) not in {5, 6} or not _FIRST.fullmatch(words[0]):
        raise DeclarationError(f"cron {shown(text)} is not an expression: it must have {_EXPECTED}.")
    fields = [word.upper() for word in words]
    for name, field in zip(FIELDS[-len(fields) :], fields, strict=True):
        if not _FORMS.get(name, _NUMBERS).fullmatch(field):
            raise DeclarationError(refused_field(text, name, field))
        _check_steps(text, name, field)
    return fields


def refused_field(text: str, name: str, field: str) -> str:
    """The sentence for a field that cannot be."""
    return f"cron {shown(text)} cannot have {shown(field)} as its {name}: there are {_RANGES[name]}."


def _check_steps(text: str, name: str, field: str) -> None:
    for step in _STEP.findall(field):
        if len(step) > _LONGEST_STEP or int(step) > _COUNTS[name]:
            raise DeclarationError(
                f"cron {shown(text)} cannot have a step of {cut(step, _LONGEST_STEP + 1)} as its {name}: steps begin "
                f"anew after {_COUNTS[name]}. For a longer period use app.every."
            )


def _fields_of_alias(alias: str) -> list[str]:
    if alias.lower() == "@reboot":
        raise DeclarationError(
            f"cron {shown(alias)} is refused: entries belong to an app, not to a process. "
            "Push in the code that starts one."
        )
    if alias.lower() not in ALIASES:
        raise DeclarationError(f"cron {shown(alias)} is not an alias: there are {', '.join(ALIASES)}.")
    return ALIASES[alias.lower()].split()

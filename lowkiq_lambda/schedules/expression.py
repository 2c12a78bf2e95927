"""The form of cron expressions, checked without the library that evaluates them."""

import re
from typing import Final

from lowkiq_lambda.errors import DeclarationError

ALIASES: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
FIELDS: Final = ("second", "minute", "hour", "day-of-month", "month", "day-of-week")
"""Their names, as cronsim has them too."""

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
        raise DeclarationError(f"cron must be a text of {_EXPECTED}, not {text!r}.")
    words = text.split()
    if text.lstrip().startswith("@"):
        return _fields_of_alias(text.strip())
    for word in words:
        if _INLINE_ZONE.fullmatch(word):
            raise DeclarationError(f"cron {text!r} names a zone: give it as tz instead, not as {word!r}.")
    if len(words) not in {5, 6} or not _FIRST.fullmatch(words[0]):
        raise DeclarationError(f"cron {text!r} is not an expression: it must have {_EXPECTED}.")
    fields = [word.upper() for word in words]
    for name, field in zip(FIELDS[-len(fields) :], fields, strict=True):
        if not _FORMS.get(name, _NUMBERS).fullmatch(field):
            raise DeclarationError(refused_field(text, name, field))
    return fields


def refused_field(text: str, name: str, field: str) -> str:
    """The sentence for a field that cannot be."""
    return f"cron {text!r} cannot have {field!r} as its {name}."


def _fields_of_alias(alias: str) -> list[str]:
    if alias.lower() == "@reboot":
        raise DeclarationError(
            f"cron {alias!r} is refused: entries belong to an app, not to a process. Push in the code that starts one."
        )
    if alias.lower() not in ALIASES:
        raise DeclarationError(f"cron {alias!r} is not an alias: there are {', '.join(ALIASES)}.")
    return ALIASES[alias.lower()].split()

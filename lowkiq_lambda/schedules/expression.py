"""The form of a cron expression, checked without the library that evaluates it."""

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
FIELDS: Final = ("second", "minute", "hour", "day of the month", "month", "day of the week")

_FIELD: Final = re.compile(r"[0-9*][0-9*,/L-]*|L|LW")
_NAMED: Final = re.compile(r"[0-9A-Z*][0-9A-Z*,/#-]*")
_ZONE: Final = re.compile(r"[A-Za-z]+(/[A-Za-z0-9_+-]+)+|UTC|GMT|Z|(CRON_)?TZ=.*")
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*")


def fields_of(text: str) -> tuple[str, ...]:
    """The five or six fields of an expression, in upper case, an alias replaced by what it stands for.

    Raises DeclarationError where it cannot be an expression, whatever its numbers are.

    >>> fields_of("0 9 * * mon-fri")
    ('0', '9', '*', '*', 'MON-FRI')
    """
    words = text.split()
    if not words:
        raise DeclarationError("A cron expression is empty: it has five fields, or six with seconds first.")
    if words[0].startswith("@"):
        return _alias(text, words)
    if zone := next((word for word in (words[0], words[-1]) if _ZONE.fullmatch(word)), None):
        raise DeclarationError(f"The cron expression {text!r} names a zone: leave {zone!r} out, and give it as tz.")
    if not _FIELD.fullmatch(words[0].upper()):
        raise DeclarationError(f"The cron expression {text!r} is no expression: {_EXAMPLE}.")
    if len(words) not in {5, 6}:
        raise DeclarationError(f"The cron expression {text!r} has {len(words)} fields: {_EXAMPLE}.")
    fields = tuple(words_upper := [word.upper() for word in words])
    for name, field in zip(FIELDS[-len(words_upper) :], fields, strict=True):
        named = name.startswith(("month", "day of the week"))
        if not (_NAMED if named else _FIELD).fullmatch(field):
            raise DeclarationError(f"The cron expression {text!r} cannot have {field!r} as its {name}.")
    return fields


_EXAMPLE: Final = "it needs five fields, such as '0 4 * * MON-FRI', or six with seconds first"


def _alias(text: str, words: list[str]) -> tuple[str, ...]:
    name = words[0].lower()
    if name == "@reboot":
        raise DeclarationError(
            f"The cron expression {text!r} is refused: no process may be running when another one starts. "
            "Push from the code that starts the process."
        )
    if name not in ALIASES or len(words) > 1:
        raise DeclarationError(f"The cron expression {text!r} is no alias; there are {', '.join(ALIASES)}.")
    return tuple(ALIASES[name].split())


def check_zone(name: object) -> None:
    """Raises DeclarationError for what cannot be the name of a time zone."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DeclarationError(f"tz must be the name of a zone, such as 'Europe/Berlin', not {name!r}.")

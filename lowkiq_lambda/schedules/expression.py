"""The form of cron expressions, checked and put in the words of the library that evaluates them, but without it."""

import re
from typing import Final

from lowkiq_lambda.base.error_text import cut, shown
from lowkiq_lambda.base.errors import DeclarationError

ALIASES: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@noon": "0 12 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
FIELDS: Final = ("second", "minute", "hour", "day-of-month", "month", "day-of-week")
"""Their names, as cronsim has them too."""

BOUNDS: Final = {
    "second": (0, 59),
    "minute": (0, 59),
    "hour": (0, 23),
    "day-of-month": (1, 31),
    "month": (1, 12),
    "day-of-week": (0, 7),
}
_NAMES: Final = {
    "month": ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"),
    "day-of-week": ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"),
}
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
_DAYS: Final = ("day-of-month", "day-of-week")
_WEEK: Final = 7
_NO_HOUR: Final = re.compile(r"\b24\b")
_LONGEST_STEP: Final = 4
_STEP: Final = re.compile(r"/(\d+)")
_NUMBERS: Final = re.compile(r"[0-9*][0-9*,/-]*")
_FORMS: Final = {
    "day-of-month": re.compile(r"(?:[0-9*]|LW?)(?:[0-9*,/-]|LW?)*"),
    "month": re.compile(r"[0-9A-Z*][0-9A-Z*,/-]*"),
    "day-of-week": re.compile(r"[0-9A-Z*][0-9A-Z*,/#-]*"),
}
_FIRST: Final = re.compile(r"[0-9*][^ ]*")
_INLINE_ZONE: Final = re.compile(r"[A-Za-z]+(/[A-Za-z][\w+-]*)+|UTC|GMT|(CRON_)?TZ=.*")
_ZONE_FIRST: Final = re.compile(r"(?:CRON_)?TZ=(.*)")
_EXPECTED: Final = "five fields, such as '0 4 * * MON-FRI', or six with seconds first"


def split_zone(text: str) -> tuple[str, str | None]:
    """The expression alone, and the zone that it names behind its fields, or in front as `CRON_TZ=` or `TZ=`.

    >>> split_zone("0 9 * * * Europe/Berlin")
    ('0 9 * * *', 'Europe/Berlin')
    """
    words = text.split()
    if words and (first := _ZONE_FIRST.fullmatch(words[0])):
        return " ".join(words[1:]), first[1]
    is_longer = len(words) in {6, 7} or (len(words) == 2 and words[0].startswith("@"))  # noqa: PLR2004 - an alias, a zone
    if is_longer and _INLINE_ZONE.fullmatch(words[-1]):
        return " ".join(words[:-1]), words[-1]
    return " ".join(words), None


def fields_of(text: object) -> list[str]:
    """The five or six fields of an expression in upper case and in forms that cronsim has; an alias gives its own.

    Raises DeclarationError for what cannot be an expression, whatever its numbers are.

    >>> fields_of("0 22-4 * * fri-mon")
    ['0', '22-23,0-4', '*', '*', '5-6,0-1']
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
        raise _refused(text, f"is not an expression: it must have {_EXPECTED}.")
    fields = [word.upper() for word in words]
    by_name = dict(zip(FIELDS[-len(fields) :], fields, strict=True))
    if [by_name[name] for name in _DAYS].count("?") == 1:
        by_name = {name: "*" if name in _DAYS and field == "?" else field for name, field in by_name.items()}
    for name, field in by_name.items():
        by_name[name] = plain = ",".join(_plain_term(name, term) for term in field.split(","))
        if not _FORMS.get(name, _NUMBERS).fullmatch(plain):
            raise _refused(text, refused_field("", name, field))
        _check_steps(text, name, field)
    return [*by_name.values()]


def refused_field(text: str, name: str, field: str) -> str:
    """The sentence for a field that cannot be; without its beginning if the text is empty."""
    midnight = "; midnight is 0" if name == "hour" and _NO_HOUR.search(field) else ""
    beginning = f"cron {shown(text)} " if text else ""
    return f"{beginning}cannot have {shown(field)} as its {name}: there are {_RANGES[name]}{midnight}."


def number_of(name: str, text: str) -> int:
    """The number that a text stands for in a field. Raises ValueError for what cannot be."""
    names, (least, most) = _NAMES.get(name, ()), BOUNDS[name]
    number = names.index(text) + least if text in names else int(text)
    if not least <= number <= most:
        raise ValueError(text)
    return number


def _plain_term(name: str, term: str) -> str:
    """A term of a field, without a range that runs over the end of the field, and without -1 for the last day."""
    if name == "day-of-month" and term == "-1":
        return "L"
    if name == "day-of-week" and term.endswith("#-1"):
        day = term.removesuffix("#-1")
        return f"{number_of(name, day) % _WEEK}L" if day in _NAMES[name] or day.isdecimal() else term
    base, slash, step = term.partition("/")
    first, _, last = base.partition("-")
    try:
        begin, end = number_of(name, first), number_of(name, last)
        every = int(step) if slash else 1
    except ValueError:
        # Not a range, or refused by whatever checks the numbers.
        return term
    if begin < end or not every:
        return term
    if begin == end:
        # cronsim would count from this one number on to the end of the field.
        return f"{begin}"
    return _over_the_end(name, begin, end, every)


def _over_the_end(name: str, begin: int, end: int, every: int) -> str:
    least, most = BOUNDS[name]
    if name == "day-of-week":
        # Sunday has two numbers.
        most, begin = most - 1, begin % _WEEK
    ranges = [(begin, end)] if begin <= end else [(begin, most), (least, end)]
    if every == 1:
        return ",".join(_range(*ends) for ends in ranges)
    numbers = [number for first, last in ranges for number in range(first, last + 1)]
    return ",".join(map(str, numbers[::every]))


def _range(begin: int, end: int) -> str:
    return f"{begin}" if begin == end else f"{begin}-{end}"


def _refused(text: str, sentence: str) -> DeclarationError:
    """The error for a text, with the form that may have been meant."""
    from lowkiq_lambda.schedules.phrases import meant  # noqa: PLC0415 - only for an error

    return DeclarationError(f"cron {shown(text)} {meant(text) or sentence}")


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
        raise _refused(alias, f"is not an alias: there are {', '.join(ALIASES)}.")
    return ALIASES[alias.lower()].split()

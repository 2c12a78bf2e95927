"""The numbers of cron expressions, checked without the library that evaluates them: a drain declares entries, too."""

from typing import Final

from lowkiq_lambda.base.error_text import shown
from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.schedules.expression import FIELDS, fields_of, refused_field

_BOUNDS: Final = {
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
_LAST_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_WEEKS: Final = range(1, 6)
_SHORTEST_LAST_DAY: Final = 29


def check_numbers(text: str) -> None:
    """Raises DeclarationError where a number lies outside of its field, a range runs backwards, or no day ever fits."""
    fields = dict(zip(FIELDS[::-1], fields_of(text)[::-1], strict=False))
    numbers: dict[str, set[int]] = {}
    for name, field in fields.items():
        try:
            numbers[name] = set().union(*(_numbers(name, term) for term in field.split(",")))
        except ValueError:
            raise DeclarationError(refused_field(text, name, field)) from None
    if _never_comes(fields, numbers):
        raise DeclarationError(never(text))


def never(text: str) -> str:
    """The sentence for an expression that fits no day."""
    return f"cron {shown(text)} never comes: no day fits it."


def _numbers(name: str, term: str) -> set[int]:
    """What a term of a field stands for; the last days of a month are 0. Raises ValueError for what cannot be."""
    if name == "day-of-month" and term.partition("/")[0] in {"L", "LW"}:
        _step(term)
        return {0}
    if name == "day-of-week" and "#" in term:
        day, _, week = term.partition("#")
        if int(week) not in _WEEKS:
            raise ValueError(term)
        return {_number(name, day)}
    if name == "day-of-week" and term.endswith("L"):
        return {_number(name, str(int(term[:-1])))}
    base, _, _ = term.partition("/")
    first, separator, last = base.partition("-")
    least, most = _BOUNDS[name]
    if base == "*":
        found = range(least, most + 1)
    elif separator:
        found = range(_number(name, first), _number(name, last) + 1)
    else:
        found = range(_number(name, first), (most if "/" in term else _number(name, first)) + 1)
    if not found:
        raise ValueError(term)
    return {*found[:: _step(term)]}


def _step(term: str) -> int:
    _, separator, step = term.partition("/")
    if separator and not int(step):
        raise ValueError(term)
    return int(step) if separator else 1


def _number(name: str, text: str) -> int:
    names, (least, most) = _NAMES.get(name, ()), _BOUNDS[name]
    number = names.index(text) + least if text in names else int(text)
    if not least <= number <= most:
        raise ValueError(text)
    return number


def _never_comes(fields: dict[str, str], numbers: dict[str, set[int]]) -> bool:
    """Whether a day of the month is wanted, whatever its weekday is, that no month of those has."""
    both = any(fields[name].startswith("*") for name in ("day-of-month", "day-of-week"))
    first = min(numbers["day-of-month"])
    return both and first > _SHORTEST_LAST_DAY and first > max(_LAST_DAYS[month - 1] for month in numbers["month"])

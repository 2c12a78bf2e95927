"""Cron expressions in English: the text of cronsim, if it is right.

It calls `*/45` "every 45th minute", although it fires at minutes 0 and 45 of each hour, and joins two rules for days by
"and", although either is enough.
"""

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from lowkiq_lambda.schedules.expression import FIELDS

if TYPE_CHECKING:
    from cronsim import CronSim

_SIZES: Final[Mapping[str, int]] = {"second": 60, "minute": 60, "hour": 24}
"""Of the fields in which a step may come at even distances, how many numbers they have."""
_STEP: Final = re.compile(r"\*/(\d+)")
_STEP_IN_RANGE: Final = re.compile(r"[1-9]\d*-\d+/\d+")
_ORDINAL: Final = re.compile(r"\b(\d*(?<!1))([123])th\b")
_SUFFIXES: Final[Mapping[str, str]] = {"1": "st", "2": "nd", "3": "rd"}


def explain(fields: list[str], evaluated: "CronSim") -> str:
    """An expression of these fields, and with these moments, in English."""
    from cronsim.explain import Expression  # noqa: PLC0415 - imported lazily: cold start

    sets = (
        evaluated.seconds,
        evaluated.minutes,
        evaluated.hours,
        evaluated.days,
        evaluated.months,
        evaluated.weekdays,
    )
    count = len(fields)
    parts = zip(FIELDS[-count:], fields, sets[-count:], strict=True)
    expression = Expression([_spelt_out(name, field, values) for name, field, values in parts])
    expression.day_and = evaluated.day_and
    text = expression.explain()
    if not evaluated.day_and:
        text = text.replace(" and on ", " or on ")
    return _ORDINAL.sub(lambda match: match[1] + match[2] + _SUFFIXES[match[2]], text)


def _spelt_out(name: str, field: str, values: Collection[object]) -> str:
    """The field; with a list in place of steps that do not come at even distances."""
    numbers = [value for value in values if isinstance(value, int) and value >= 0]
    if "/" not in field or field == "*/1" or len(numbers) < len(values):
        return field
    if size := _SIZES.get(name):
        step = _STEP.fullmatch(field)
        if (step and size % int(step[1]) == 0) or _STEP_IN_RANGE.fullmatch(field):
            return field
    return ",".join(map(str, sorted(numbers)))

"""The form that somebody may have meant by a text that is not an expression: an error offers it, and nothing takes it.

A phrase that is read wrongly fires at wrong times for years.
"""

import re
from typing import Final

from lowkiq_lambda.base.error_text import shown

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_LENGTH: Final = re.compile(r"(\d+) ?([smhdw])(?:ec(?:ond)?s?|in(?:ute)?s?|(?:ou)?rs?|ays?|eeks?)?(?![a-z]) ?")
_PERIOD: Final = re.compile(r"(every |@every |rate\(|)(\d.*?)\)?")
_STEPS: Final = {"minutes": (60, "*/{} * * * *"), "hours": (24, "0 */{} * * *")}
"""Units with steps at even distances, if these divide the number."""

_EACH: Final = "(?:(?:on )?(?:every|each|on|the) )?"
_MONTH: Final = " (?:of|in) (?:the|each|every) month"
_DAY: Final = "(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:days?)?"
_WEEKS: Final = ("first", "second", "third", "fourth", "fifth")
_AT: Final = r"(?: ?at (?:(?P<hour>\d\d?)(?::(?P<minute>\d\d))? ?(?P<half>am|pm)?|(?P<noon>noon)|midnight))?"
_PHRASES: Final = (
    (f"{_EACH}minute", "* * * * *"),
    (f"{_EACH}hour|hourly", "0 * * * *"),
    (f"(?:{_EACH}day|daily|(?=at )){_AT}", "{clock} * * *"),
    (f"{_EACH}(?:weekdays?|working days?){_AT}", "{clock} * * MON-FRI"),
    (f"{_EACH}weekends?{_AT}", "{clock} * * SAT,SUN"),
    (f"{_EACH}(?P<days>{_DAY}(?: (?:and )?{_DAY})*){_AT}", "{clock} * * {days}"),
    (f"{_EACH}(?P<week>{'|'.join(_WEEKS)}) (?P<days>{_DAY}){_MONTH}{_AT}", "{clock} * * {days}#{week}"),
    (f"{_EACH}last (?P<days>{_DAY}){_MONTH}{_AT}", "{clock} * * {days}#-1"),
    (f"{_EACH}(?:first day{_MONTH}|month|monthly){_AT}", "{clock} 1 * *"),
    (rf"{_EACH}(?P<number>\d\d?)(?:st|nd|rd|th){_MONTH}{_AT}", "{clock} {number} * *"),
    (f"{_EACH}last day{_MONTH}{_AT}", "{clock} L * *"),
)
_SIGNS: Final = (
    (re.compile(r"(?<!\S)\?(?!\S)"), "has a '?', which stands for * in one of the two fields of days: write *."),
    (
        re.compile(r"\b(\d\d?)w"),
        "has {0}W, the working day next to a day, without a form: write {0}, or LW, the last one.",
    ),
    (re.compile(r"%(\d+)"), "counts weeks, without a form: write app.every(timedelta(weeks={0}), …, offset=…)."),
)
_YEAR: Final = "is an expression of EventBridge, which has a year: "


def meant(text: str) -> str | None:
    """The end of the sentence that refuses the text, with the form to write instead; None if no form comes near."""
    plain = " ".join(text.lower().replace(",", " ").split())
    if (match := _PERIOD.fullmatch(plain)) and (form := _period(*match.groups())):
        return f"is not an expression: {form}"
    for phrase, form in _PHRASES:
        if (match := re.fullmatch(phrase, plain)) and (fields := _fields(match)):
            return f"is not an expression: {_offer(form.format(**fields))}"
    if match := re.fullmatch(r"cron\((.*)\)", plain):
        return _YEAR + _of_event_bridge(match[1].upper().split())
    return next((form.format(*match.groups()) for sign, form in _SIGNS if (match := sign.search(plain))), None)


def _offer(expression: str) -> str:
    return f"did you mean {shown(expression)}?"


def _period(prefix: str, length: str) -> str | None:
    parts = [(int(number), _UNITS[unit]) for number, unit in _LENGTH.findall(length)]
    if not parts or _LENGTH.sub("", length):
        return None
    number, unit = parts[0]
    size, steps = _STEPS.get(unit, (0, ""))
    if prefix == "every " and len(parts) == 1 and 0 < number < size and size % number == 0:
        return _offer(steps.format(number))
    return f"write app.every(timedelta({', '.join(f'{unit}={number}' for number, unit in parts)}), …)."


def _fields(match: re.Match[str]) -> dict[str, object] | None:
    """What a form takes from a phrase: the time of day as minute and hour, and days; None for a wrong time."""
    parts = match.groupdict()
    hour, minute = int(parts.get("hour") or (12 if parts.get("noon") else 0)), int(parts.get("minute") or 0)
    if parts.get("half"):
        hour = hour % 12 + (12 if parts["half"] == "pm" else 0)
    days = ",".join(day[:3].upper() for day in re.findall(_DAY, parts.get("days") or ""))
    week = _WEEKS.index(parts["week"]) + 1 if "week" in parts else 0
    fits = hour <= 23 and minute <= 59  # noqa: PLR2004 - of a day and of an hour
    return {"clock": f"{minute} {hour}", "days": days, "week": week, "number": parts.get("number")} if fits else None


def _of_event_bridge(fields: list[str]) -> str:
    if len(fields) != 6 or fields[5] != "*" or "W" in fields[2]:  # noqa: PLR2004 - the last is the year
        return "write the five fields before it, and app.at for a moment that comes once."
    # Its weekdays count from 1, which is Sunday.
    day = re.sub(r"(?<![#/\d])\d", lambda digit: str(int(digit[0]) - 1), fields[4])
    return _offer(" ".join([*fields[:4], day]))

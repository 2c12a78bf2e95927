"""The form that somebody may have meant by a text that is not an expression: an error offers it, and nothing takes it.

A phrase that is read wrongly fires at wrong times for years. So people type the form, and code never guesses it.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from lowkiq_lambda.base.error_text import shown

_Match: TypeAlias = re.Match[str]

_UNITS: Final[Mapping[str, str]] = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_LENGTH: Final = re.compile(r"(\d+) ?(s|m|h|d|w)(?:ec(?:ond)?s?|in(?:ute)?s?|(?:ou)?rs?|ays?|eeks?)?(?![a-z]) ?")
_CYCLES: Final = {"minutes": (60, "*/{} * * * *"), "hours": (24, "0 */{} * * *")}
"""Units whose steps an expression has if they divide the number."""

_TIME: Final = (
    r"(?: ?at (?:(?P<hour>\d{1,2})(?::(?P<minute>\d\d))? ?(?P<half>am|pm)?(?: o'clock)?|(?P<word>noon|midnight)))?"
)
_MONTH: Final = r" (?:of|in) (?:the|each|every) month"
_DAY: Final = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:days?)?"
_WEEKS: Final = ("first", "second", "third", "fourth", "fifth", "last")
_NOON: Final = 12
_EVENT_FIELDS: Final = 6
_NEAREST: Final = re.compile(r"(\d{1,2})W", re.IGNORECASE)
_EVERY_SECOND: Final = re.compile(r"[A-Za-z0-9]+%(\d+)(?:\+\d+)?")


def meant(text: str) -> str | None:
    """The end of the sentence that refuses the text, with the form to write instead; None if no form comes near."""
    plain = " ".join(text.lower().replace(",", " ").split())
    for pattern, form in _PATTERNS:
        if (match := re.fullmatch(pattern, plain)) and (hint := form(match)):
            return f"is not an expression: {hint}"
    return _of_other_schedulers(text)


def _offer(expression: str) -> str:
    return f"did you mean {shown(expression)}?"


def _clock(match: _Match) -> str | None:
    """Minute and hour, as two fields; those of midnight without a time, None for what is not a time of day."""
    if match["word"] or not match["hour"]:
        return "0 12" if match["word"] == "noon" else "0 0"
    hour, minute = int(match["hour"]), int(match["minute"] or 0)
    if match["half"]:
        hour = hour % _NOON + (_NOON if match["half"] == "pm" else 0)
    return f"{minute} {hour}" if hour < 24 and minute < 60 else None  # noqa: PLR2004 - a day and an hour


def _on(days: str) -> Callable[[_Match], str | None]:
    """Offers these days (three fields), with the time of the phrase."""

    def form(match: _Match) -> str | None:
        clock = _clock(match)
        return clock and _offer(f"{clock} {days}")

    return form


def _on_weekdays(match: _Match) -> str | None:
    names = ",".join(name[:3].upper() for name in re.findall(_DAY, match["days"]))
    return _on(f"* * {names}")(match)


def _on_week_of_month(match: _Match) -> str | None:
    day, week = match["day"][:3].upper(), _WEEKS.index(match["week"]) + 1
    return _on(f"* * {day}#{-1 if match['week'] == 'last' else week}")(match)


def _on_day_of_month(match: _Match) -> str | None:
    return _on(f"{match['number']} * *")(match)


def _every(match: _Match) -> str | None:
    """A period: as steps where they come at even distances, else as app.every."""
    lengths = [(int(number), _UNITS[unit]) for number, unit in _LENGTH.findall(match["length"])]
    if not lengths or _LENGTH.sub("", match["length"]).strip():
        return None
    ((number, unit), *rest) = lengths
    size, form = _CYCLES.get(unit, (0, ""))
    if match.re.pattern.startswith("every") and not rest and number and size > number and size % number == 0:
        return _offer(form.format(number))
    arguments = ", ".join(f"{unit}={number}" for number, unit in lengths)
    return f"write app.every(timedelta({arguments}), …)."


def _of_other_schedulers(text: str) -> str | None:
    if match := re.fullmatch(r"cron\((.*)\)", text.strip(), re.IGNORECASE):
        return _of_event_bridge(match[1].split())
    if "?" in text.split():
        return "has a '?', which stands for * in one of the two fields of days: write *."
    if match := _NEAREST.search(text):
        return (
            f"has {match[0]}, the working day nearest to a day, for which there is no form: the nearest are "
            f"{match[1]}, the day itself, and LW, the last working day of the month."
        )
    if match := _EVERY_SECOND.search(text):
        weeks = f"app.every(timedelta(weeks={match[1]}), …, offset=…)"
        return f"has {match[0]}, a count of weeks, for which there is no form: write {weeks}."
    return None


def _of_event_bridge(fields: list[str]) -> str:
    """EventBridge counts weekdays from 1, which is Sunday, and has the year last."""
    sentence = "is an expression of EventBridge, which has a year"
    if len(fields) == _EVENT_FIELDS and fields[-1] == "*" and not _NEAREST.search(fields[2]):
        day = re.sub(r"(?<![#/\d])\d", lambda digit: str(int(digit[0]) - 1), fields[4])
        return f"{sentence}: {_offer(' '.join([*fields[:4], day]))}"
    return f"{sentence}: write the five fields before it, and app.at for a moment that comes once."


_EACH: Final = "(?:(?:every|each|on) )?"
_IN_MONTH: Final = "(?:(?:on )?the |every |each )?"
_PATTERNS: Final[tuple[tuple[str, Callable[[_Match], str | None]], ...]] = (
    (r"(?:every|each) minute", lambda _: _offer("* * * * *")),
    (r"(?:every|each) hour|hourly", lambda _: _offer("0 * * * *")),
    (r"every (?P<length>\d.*)", _every),
    (r"(?:@every |rate\()?(?P<length>\d.*?)\)?", _every),
    (rf"(?:(?:every|each) day|daily|(?=at )){_TIME}", _on("* * *")),
    (rf"{_EACH}(?:weekdays?|working days?){_TIME}", _on("* * MON-FRI")),
    (rf"{_EACH}weekends?{_TIME}", _on("* * SAT,SUN")),
    (rf"{_EACH}(?P<days>{_DAY}(?: (?:and )?{_DAY})*){_TIME}", _on_weekdays),
    (rf"{_IN_MONTH}(?P<week>{'|'.join(_WEEKS)}) (?P<day>{_DAY}){_MONTH}{_TIME}", _on_week_of_month),
    (rf"{_IN_MONTH}(?:first day{_MONTH}|(?:every|each) month|monthly){_TIME}", _on("1 * *")),
    (rf"{_IN_MONTH}(?P<number>\d{{1,2}})(?:st|nd|rd|th){_MONTH}{_TIME}", _on_day_of_month),
    (rf"{_IN_MONTH}last day{_MONTH}{_TIME}", _on("L * *")),
)

"""Numbers, durations and times as short texts for people."""

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

_THOUSAND: Final = 1_000
_SCALES: Final = ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "K"))
_UNITS: Final = ((86_400 * 365, "y"), (86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))
_BYTES: Final = ("B", "KB", "MB", "GB", "TB", "PB")
_KILOBYTE: Final = 1024
_SHORT: Final = 10
_LEAST: Final = 0.0001
"""The shortest duration that is shown, in seconds."""
_MINUTE: Final = 60
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_ESCAPE: Final = re.compile(r"\\u([0-9a-f]{4})")
_NOW: Final = 0.1
_NAMED: Final = 10
"""Of selected ids so many are named, each by so many characters:"""
_LONGEST_ID: Final = 100
_LATEST: Final = 253_402_300_799
"""The last second of the year 9999; later times are shown as numbers."""


def short(number: float) -> str:
    """Three digits or so.

    >>> short(987), short(1_234), short(45_678), short(999_999), short(7_654_321_000)
    ('987', '1.23K', '45.7K', '1M', '7.65B')
    """
    for scale, letter in _SCALES:
        if abs(number) >= scale * (1 - 0.0005) and abs(number) >= _THOUSAND:
            return f"{_three_digits(number / scale)}{letter}"
    return f"{number:.0f}" if float(number).is_integer() else _three_digits(number)


def exact(number: float) -> str:
    """All digits, in groups.

    >>> exact(1234567)
    '1,234,567'
    """
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,}"


def duration(seconds: float) -> str:
    """Two parts at most.

    >>> duration(0), duration(0.0042), duration(0.25), duration(7.26), duration(192), duration(90_061)
    ('0 s', '4.2 ms', '250 ms', '7.3 s', '3m 12s', '1d 1h')
    """
    if seconds < _LEAST:
        return "0 s"
    if seconds < 1:
        return f"{_three_digits(seconds * 1_000)} ms"
    if round(seconds, 1) < _MINUTE:
        return f"{seconds:.1f} s" if seconds < _SHORT else f"{seconds:.0f} s"
    whole = round(seconds)
    for position, (unit, letter) in enumerate(_UNITS):
        if whole >= unit:
            smaller, small_letter = _UNITS[position + 1]
            rest = whole % unit // smaller
            return f"{whole // unit}{letter} {rest}{small_letter}" if rest else f"{whole // unit}{letter}"
    return "0 s"


def exact_seconds(seconds: float) -> str:
    """To the millisecond.

    >>> exact_seconds(192.34567)
    '192.346 seconds'
    """
    return f"{seconds:,.3f} seconds"


def size(count: float) -> str:
    """Bytes.

    >>> size(512), size(1_536), size(64 * 1024**2)
    ('512 B', '1.5 KB', '64 MB')
    """
    unit = 0
    while abs(count) >= _KILOBYTE and unit < len(_BYTES) - 1:
        count, unit = count / _KILOBYTE, unit + 1
    return f"{_three_digits(count) if unit else int(count)} {_BYTES[unit]}"


def rate(per_second: float) -> str:
    """How many in a second.

    >>> rate(0), rate(0.04), rate(12.3), rate(4_321)
    ('0', '0.04', '12.3', '4.32K')
    """
    if per_second == 0:
        return "0"
    return short(per_second) if per_second >= _THOUSAND else _three_digits(per_second)


def iso(at: float) -> str | None:
    """A time in ISO 8601; None if it is not a valid date.

    >>> iso(1_800_000_000.5), iso(float("inf"))
    ('2027-01-15T08:00:00.500Z', None)
    """
    if not (math.isfinite(at) and 0 <= at <= _LATEST):
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def utc(at: float) -> str:
    """A time in UTC for people; a script converts it to the zone of the browser.

    >>> utc(1_800_000_000), utc(1e300)
    ('2027-01-15 08:00:00 UTC', '1e+300')
    """
    if iso(at) is None:
        return repr(at)
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def quoted(text: str) -> str:
    r"""A text for the value of a form field, percent-encoded, because browsers change some characters there.

    >>> quoted("a/b\0%")
    'a%2Fb%00%25'
    """
    return quote(text, safe="")


def visible(text: str) -> str:
    r"""A text with invisible and direction-changing characters escaped as in JSON.

    >>> visible("a\0b\u202ec\ud800")
    'a\\u0000b\\u202ec\\ud800'
    """
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def unescaped(text: str) -> str:
    r"""The inverse of `visible`: its escapes become characters again.

    >>> unescaped("a\\u0000b"), unescaped(r"C:\users\u0041")
    ('a\x00b', 'C:\\users\\u0041')
    """
    return _ESCAPE.sub(lambda match: char if _UNSEEN.match(char := chr(int(match[1], 16))) else match[0], text)


def selected(ids: Sequence[str]) -> str:
    """How many ids somebody has selected, and the first of them.

    >>> selected(["7", "8"])
    "2 selected: '7', '8'"
    """
    names = [repr(job_id[:_LONGEST_ID]) + "…" * (len(job_id) > _LONGEST_ID) for job_id in ids[:_NAMED]]
    more = [f"{len(ids) - _NAMED} more"] if len(ids) > _NAMED else []
    return f"{len(ids)} selected: {', '.join([*names, *more])}"


def plain(number: float) -> str:
    """All digits, without grouping.

    >>> plain(17.0), plain(0.5), plain(2.0**53)
    ('17', '0.5', '9007199254740992')
    """
    return str(int(number)) if float(number).is_integer() else repr(number)


def ago(seconds: float) -> str:
    """The distance of a moment from now; negative for the past.

    >>> ago(-90), ago(7.3), ago(0)
    ('1m 30s ago', 'in 7.3 s', 'now')
    """
    if math.isinf(seconds):
        return "never"
    if abs(seconds) < _NOW:
        return "now"
    return f"in {duration(seconds)}" if seconds > 0 else f"{duration(-seconds)} ago"


def pause(seconds: float) -> str:
    """The rest of a pause.

    >>> pause(90), pause(math.inf)
    ('for 1m 30s', 'until resumed')
    """
    return "until resumed" if math.isinf(seconds) else f"for {duration(seconds)}"


def _three_digits(number: float) -> str:
    before = max(1, len(f"{abs(number):.0f}"))
    text = f"{number:.{max(0, 3 - before)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text

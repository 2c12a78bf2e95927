"""Numbers, durations and names as HTML, and the templates, which have them as filters and escape all other values."""

import re
from functools import cache
from typing import Final

from jinja2 import Environment
from markupsafe import Markup

from lowkiq_lambda.dashboard.template_build import environment as plain_environment
from lowkiq_lambda.operate.presentation.formatting import (
    ago,
    duration,
    exact,
    exact_seconds,
    iso,
    pause,
    plain,
    quoted,
    rate,
    short,
    size,
    utc,
    visible,
)
from lowkiq_lambda.views.activity import LONGEST_REASON

WIDTH: Final = 1_000
HEIGHT: Final = 100
"""The box of a chart."""

_SHORTENED: Final = 1_000
_CODE: Final = re.compile(r"`([^`]+)`")
_WORD_BEGINS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[^A-Za-z0-9])(?=[A-Za-z0-9])")


@cache
def templates() -> Environment:
    """The environment, made at its first use."""
    environment = plain_environment()
    filters = (short, exact, duration, exact_seconds, size, rate, iso, utc, quoted, visible, plain, ago, pause)
    html = (area, breakable, number_html, duration_html, with_code)
    environment.filters |= {each.__name__: each for each in (*filters, *html)}
    environment.globals["longest_reason"] = LONGEST_REASON
    return environment


def number_html(n: float) -> Markup:
    """A number: short, with the exact value as a title.

    >>> print(number_html(17), number_html(12_345))
    <data value="17">17</data> <data value="12345" title="12,345">12.3K</data>
    """
    title = f' title="{exact(n)}"' if abs(n) >= _SHORTENED else ""
    return Markup(f'<data value="{n}"{title}>{short(n)}</data>')  # noqa: S704 - made of digits


def duration_html(seconds: float) -> Markup:
    """A duration: short, with the exact value as a title.

    >>> print(duration_html(0.25))
    <data value="0.25" title="0.250 seconds">250 ms</data>
    """
    return Markup(f'<data value="{seconds}" title="{exact_seconds(seconds)}">{duration(seconds)}</data>')  # noqa: S704 - made of digits


def breakable(name: str) -> Markup:
    """A long name that may wrap before each of its words.

    >>> breakable("SyncOrder_v2<b>")
    Markup('Sync<wbr>Order_<wbr>v2&lt;<wbr>b&gt;')
    """
    return Markup("<wbr>").join(_WORD_BEGINS.split(name))


def with_code(sentence: str) -> Markup:
    """A sentence whose words in backticks are shown as code, as terminals and docs show them.

    >>> with_code("It ended with `Rejected` & <b>.")
    Markup('It ended with <code>Rejected</code> &amp; &lt;b&gt;.')
    """
    parts = (
        Markup("<code>{}</code>").format(part) if number % 2 else part
        for number, part in enumerate(_CODE.split(sentence))
    )
    return Markup("").join(parts)


def area(path: str) -> str:
    """The area below a line of a chart.

    >>> area("M10 40L20 30"), area("")
    ('M10 40L20 30L20 100L10 100Z', '')
    """
    if not path:
        return ""
    first, last = (point.split(" ")[0] for point in (path[1:], path.rpartition("L")[2]))
    return f"{path}L{last} {HEIGHT}L{first} {HEIGHT}Z"

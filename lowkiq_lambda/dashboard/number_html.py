"""Numbers and durations as HTML: short, with the exact value as a title. Functions are faster than template macros."""

from typing import Final

from markupsafe import Markup

from lowkiq_lambda.dashboard.formatting import duration, exact, exact_seconds, short

WIDTH: Final = 1_000
HEIGHT: Final = 100
"""The box of a chart."""

_SHORTENED: Final = 1_000


def number_html(n: float) -> Markup:
    """A number.

    >>> print(number_html(17), number_html(12_345))
    <data value="17">17</data> <data value="12345" title="12,345">12.3K</data>
    """
    title = f' title="{exact(n)}"' if abs(n) >= _SHORTENED else ""
    return Markup(f'<data value="{n}"{title}>{short(n)}</data>')  # noqa: S704 - made of digits


def duration_html(seconds: float) -> Markup:
    """A duration.

    >>> print(duration_html(0.25))
    <data value="0.25" title="0.250 seconds">250 ms</data>
    """
    return Markup(f'<data value="{seconds}" title="{exact_seconds(seconds)}">{duration(seconds)}</data>')  # noqa: S704 - made of digits


def area(path: str) -> str:
    """The area below a line of a chart."""
    return f"{path}L{WIDTH} {HEIGHT}L0 {HEIGHT}Z" if path else ""

"""Figures as they stand in HTML: short to read, and exact when they are pointed at; and what lies below a line.

Functions rather than macros of a template, as a page has hundreds of them.
"""

from typing import Final

from markupsafe import Markup

from lowkiq_lambda.dashboard.formatting import duration, exact, exact_seconds, short

WIDTH: Final = 1_000
HEIGHT: Final = 100
"""The box of a chart."""

_SHORTENED: Final = 1_000


def number(n: float) -> Markup:
    """How many.

    >>> print(number(17), number(12_345))
    <data value="17">17</data> <data value="12345" title="12,345">12.3K</data>
    """
    title = f' title="{exact(n)}"' if abs(n) >= _SHORTENED else ""
    return Markup(f'<data value="{n}"{title}>{short(n)}</data>')  # noqa: S704 - nothing but digits


def lasting(seconds: float) -> Markup:
    """How long.

    >>> print(lasting(0.25))
    <data value="0.25" title="0.250 seconds">250 ms</data>
    """
    return Markup(f'<data value="{seconds}" title="{exact_seconds(seconds)}">{duration(seconds)}</data>')  # noqa: S704 - nothing but digits


def area(path: str) -> str:
    """What lies below a line of a chart."""
    return f"{path}L{WIDTH} {HEIGHT}L0 {HEIGHT}Z" if path else ""

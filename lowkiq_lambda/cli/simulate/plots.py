"""Lag and depth over time: in braille for a terminal, and as SVG."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final
from xml.sax.saxutils import escape

from lowkiq_lambda.operate.presentation.formatting import duration, short
from lowkiq_lambda.simulate.outcome import Outcome

_BLANK: Final = 0x2800
_DOTS: Final = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))
"""The bits of the four dots of each of the two columns of a cell, from below."""
_ROWS: Final = 4
_WIDTH, _HEIGHT, _EDGE = 900, 320, 60
_COLOURS: Final = ("#0b6e99", "#c4540a", "#3a7d44", "#8a3ffc", "#a56eff", "#6f6f6f")
_MOST: Final = len(_COLOURS)


def braille(outcome: Outcome, width: int) -> Iterator[str]:
    """The longest wait, and what waits, from the first push to the end, in so many columns."""
    span = duration(max(len(outcome.lag), len(outcome.depth)) * outcome.step)
    yield from _chart(f"lag, at most {duration(max(outcome.lag, default=0.0))}, over {span}", outcome.lag, width)
    depth = [float(count) for count in outcome.depth]
    yield from _chart(f"payloads that wait, at most {short(max(depth, default=0.0))}", depth, width)


def _chart(title: str, values: Sequence[float], width: int) -> Iterator[str]:
    yield title
    columns = _columns(values, 2 * width)
    most = max(columns, default=0.0)
    heights = [round(value / most * 4 * _ROWS) if most else 0 for value in columns]
    for row in reversed(range(_ROWS)):
        cells = []
        for place in range(0, len(heights), 2):
            bits = 0
            for side, height in enumerate(heights[place : place + 2]):
                for dot in range(min(4, max(0, height - 4 * row))):
                    bits |= _DOTS[side][dot]
            cells.append(chr(_BLANK + bits))
        yield "".join(cells)


def _columns(values: Sequence[float], count: int) -> list[float]:
    """The largest value of each stretch, so that no peak is lost."""
    if len(values) <= count:
        return [*values]
    ends = [len(values) * number // count for number in range(count + 1)]
    return [max(values[first:end]) for first, end in pairwise(ends)]


def svg(outcomes: Sequence[tuple[str, Outcome]]) -> str:
    """A line of the lag for each of the choices, up to six, with its name."""
    shown_ones = outcomes[:_MOST]
    most = max((max(one.lag, default=0.0) for _, one in shown_ones), default=0.0) or 1.0
    seconds = max((len(one.lag) * one.step for _, one in shown_ones), default=0.0) or 1.0
    lines = [
        f'<text x="{_EDGE}" y="20">lag, at most {duration(most)}, over {duration(seconds)}</text>',
        f'<path d="M{_EDGE} 30V{_HEIGHT - 30}H{_WIDTH - 10}" fill="none" stroke="#888"/>',
        f'<text x="{_EDGE - 6}" y="40" text-anchor="end">{duration(most)}</text>',
        f'<text x="{_EDGE - 6}" y="{_HEIGHT - 30}" text-anchor="end">0 s</text>',
    ]
    wide, high = _WIDTH - 10 - _EDGE, _HEIGHT - 60
    for number, ((name, outcome), colour) in enumerate(zip(shown_ones, _COLOURS, strict=False)):
        points = " ".join(
            f"{_EDGE + wide * place * outcome.step / seconds:.1f},{_HEIGHT - 30 - high * value / most:.1f}"
            for place, value in enumerate(outcome.lag)
        )
        lines += [
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>',
            f'<text x="{_EDGE}" y="{_HEIGHT + 18 * number}" fill="{colour}">{escape(name)}</text>',
        ]
    height = _HEIGHT + 18 * len(shown_ones)
    body = "\n".join(lines)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" '
        f'font-size="13">\n{body}\n</svg>\n'
    )

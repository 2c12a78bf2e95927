"""Shapes of a picture: boxes, arrows and words on a page that is light or dark as its reader's."""

from dataclasses import dataclass, field
from html import escape
from typing import Final, Literal, TypeAlias

Tone: TypeAlias = Literal["plain", "good", "bad", "wait", "quiet"]

WIDTH: Final = 460
"""Of every picture: a phone shows it whole, with words that can be read."""
LETTER: Final = 7.2
"""Of a letter in a text of 13 pixels, in a font that is wide."""
LINE: Final = 17

_STYLE: Final = """
:root { color-scheme: light dark }
.paper { fill: #ffffff; stroke: #d7dde3 }
text { fill: #1d2733; font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif }
.head { font-weight: 600 }
.soft { fill: #55616d }
.plain { fill: #f1f4f7; stroke: #8793a0 }
.good { fill: #d9f2ec; stroke: #0b7a6c }
.bad { fill: #fde4e1; stroke: #b3261e }
.wait { fill: #fdf0cf; stroke: #8a6100 }
.quiet { fill: none; stroke: #8793a0; stroke-dasharray: 4 3 }
.arrow { stroke: #55616d; fill: none; stroke-width: 1.5 }
.tip { fill: #55616d }
@media (prefers-color-scheme: dark) {
  .paper { fill: #161b22; stroke: #39424d }
  text { fill: #e6ebf0 }
  .soft { fill: #aab4bf }
  .plain { fill: #222a33; stroke: #7d8996 }
  .good { fill: #103b35; stroke: #45c4ae }
  .bad { fill: #47201d; stroke: #f28b82 }
  .wait { fill: #40330f; stroke: #e0b34c }
  .quiet { stroke: #7d8996 }
  .arrow { stroke: #aab4bf }
  .tip { fill: #aab4bf }
}
"""


@dataclass
class Picture:
    """A picture under construction. `title` says to a screen reader all that the picture shows."""

    title: str
    height: int
    _parts: list[str] = field(default_factory=list)

    def box(self, place: tuple[float, float, float, float], words: str = "", tone: Tone = "plain") -> None:
        """A box with words in its middle, a line for each line of `words`; ValueError if they do not fit.

        The place is left, top, width and height.
        """
        x, y, width, height = place
        lines = words.split("\n") if words else []
        if any(len(line) * LETTER > width - 4 for line in lines) or len(lines) * LINE > height:
            raise ValueError(f"the words do not fit into {width:g} x {height:g}: {words!r}")
        if x < 0 or y < 0 or x + width > WIDTH or y + height > self.height:
            raise ValueError(f"the box leaves the picture: {words!r}")
        self._parts.append(f'<rect class="{tone}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5"/>')
        top = y + height / 2 - (len(lines) - 1) * LINE / 2
        for number, line in enumerate(lines):
            self._text(x + width / 2, top + number * LINE, line, "middle", "")

    def words(
        self, x: float, y: float, words: str, *, kind: Literal["", "head", "soft"] = "", end: bool = False
    ) -> None:
        """Words from x on, or up to x with `end`, a line for each line of `words`."""
        for number, line in enumerate(words.split("\n")):
            left = x - len(line) * LETTER if end else x
            if left < 0 or left + len(line) * LETTER > WIDTH:
                raise ValueError(f"the words leave the picture: {line!r}")
            self._text(x, y + number * LINE, line, "end" if end else "start", kind)

    def arrow(self, *points: tuple[float, float], words: str = "", at: tuple[float, float] | None = None) -> None:
        """An arrow along the points, with words at a place of their own, else above the middle of its first stretch."""
        path = "M" + " L".join(f"{x:g} {y:g}" for x, y in points)
        (x1, y1), (x2, y2) = points[-2:]
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
        dx, dy = (x2 - x1) / length, (y2 - y1) / length
        back_x, back_y = x2 - 8 * dx, y2 - 8 * dy
        corners = (
            f"{x2:g},{y2:g} {back_x - 4 * dy:.1f},{back_y + 4 * dx:.1f} {back_x + 4 * dy:.1f},{back_y - 4 * dx:.1f}"
        )
        self._parts.append(f'<path class="arrow" d="{path}"/><polygon class="tip" points="{corners}"/>')
        if words:
            (from_x, from_y), (to_x, to_y) = points[:2]
            x, y = at or ((from_x + to_x) / 2, (from_y + to_y) / 2 - 10)
            self._text(x, y, words, "middle", "soft")

    def line(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """A thin line, such as the axis of time."""
        self._parts.append(f'<path class="quiet" d="M{x1:g} {y1:g} L{x2:g} {y2:g}"/>')

    def svg(self) -> str:
        """The file."""
        body = "\n".join(self._parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" width="{WIDTH}" '
            f'height="{self.height}" role="img" aria-labelledby="t">\n<title id="t">{escape(self.title)}</title>\n'
            f"<style>{_STYLE}</style>\n"
            f'<rect class="paper" x="0.5" y="0.5" width="{WIDTH - 1}" height="{self.height - 1}" rx="8"/>\n'
            f"{body}\n</svg>\n"
        )

    def _text(self, x: float, y: float, text: str, anchor: str, kind: str) -> None:
        attribute = f' class="{kind}"' if kind else ""
        self._parts.append(
            f'<text{attribute} x="{x:g}" y="{y:g}" text-anchor="{anchor}" dominant-baseline="central">'
            f"{escape(text)}</text>"
        )

"""Charts as SVG paths, drawn on the server, and the spans that they show."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from itertools import count, zip_longest
from math import ceil, floor, log10
from operator import add
from typing import ClassVar, Final, Protocol, TypeVar, get_args

import msgspec
from starlette.responses import Response

from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.rendering import HEIGHT, WIDTH
from lowkiq_lambda.operate.inspect.history import stretch_of
from lowkiq_lambda.operate.presentation.moments import EXAMPLES, moment_of
from lowkiq_lambda.views.queues import Between, Series, Span

SPARK_POINTS: Final = 40
_PARTS: Final = (6, 5)
_ROWS: Final = 12
_DAY: Final = 86_400
_STEPS: Final = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)

BY_DAY: Final = "30d"
SPANS: Final[Mapping[Span, str]] = {
    "10m": "10 minutes",
    "1h": "hour",
    "6h": "6 hours",
    "72h": "3 days",
    BY_DAY: "30 days",
}


class Dated(Protocol):
    """What a chart may mark."""

    @property
    def name(self) -> str:
        """Its flag."""
        ...

    @property
    def since(self) -> float:
        """When it was, in Unix seconds."""
        ...


Marked = TypeVar("Marked", bound=Dated)


@dataclass(frozen=True, slots=True)
class Chart:
    """Done and failed ids, and what arrived, per second over a span: paths in a box of WIDTH by HEIGHT."""

    ended: str
    failed: str
    arrived: str
    """Payloads, by the scale of done ids, with gaps; empty where nothing is known of them."""
    most: float
    """Done ids, or payloads that arrived, per second at the upper edge."""
    most_failed: float
    """As `most`, of failed ids, which have a band of their own: a spike flattens nothing else."""
    series: Series
    total_ended: int
    total_failed: int
    total_arrived: int | None

    @property
    def ends_at(self) -> float:
        """The right edge, in Unix seconds."""
        return self.series.began_at + self.series.step * len(self.series.ended)

    def places(self, moments: Sequence[Marked]) -> list[tuple[int, Marked]]:
        """The moments within the span, each with how far to the right it is."""
        span = self.ends_at - self.series.began_at
        return [
            (round(WIDTH * (moment.since - self.series.began_at) / span), moment)
            for moment in moments
            if self.series.began_at <= moment.since <= self.ends_at
        ]

    @property
    def is_long(self) -> bool:
        """Whether it has more than a day, so that a time of day alone says little."""
        return self.ends_at - self.series.began_at > _DAY

    @property
    def rows(self) -> list[tuple[float, int | None, int, int]]:
        """The same as a short table: from when on, how many arrived, None if unknown, how many ended, and failed."""
        ended, failed, arrived = self.series.ended, self.series.failed, self.series.arrived
        width = max(1, ceil(len(ended) / _ROWS))
        return [
            (
                self.series.began_at + place * self.series.step,
                total_of(arrived[place:end]),
                sum(ended[place:end]),
                sum(failed[place:end]),
            )
            for place in range(0, len(ended), width)
            for end in [place + width]
        ]

    @property
    def marks(self) -> list[float]:
        """Times for the axis, from the left edge to the right one, whole minutes apart."""
        span = self.ends_at - self.series.began_at
        parts = next(parts for parts in _PARTS if not span % (parts * 60) or parts == _PARTS[-1])
        return [self.series.began_at + span * part / parts for part in range(parts + 1)]


def chart(series: Series) -> Chart:
    """The chart of a series."""
    arrivals = [count for count in series.arrived if count is not None]
    most, most_failed = (
        round_up(max([0, *each]) / series.step) for each in ([*series.ended, *arrivals], series.failed)
    )
    return Chart(
        ended=line(series.ended, most * series.step),
        failed=line(series.failed, most_failed * series.step),
        arrived=line(series.arrived, most * series.step) if arrivals else "",
        most=most,
        most_failed=most_failed,
        series=series,
        total_ended=sum(series.ended),
        total_failed=sum(series.failed),
        total_arrived=sum(arrivals) if arrivals else None,
    )


def total_of(arrived: Sequence[int | None]) -> int | None:
    """The sum; None if a part is not known."""
    counts = [count for count in arrived if count is not None]
    return sum(counts) if counts and len(counts) == len(arrived) else None


def line(values: Sequence[float | None], most: float) -> str:
    """The path through the values, with gaps where one is None; the value `most` is at the upper edge."""
    across = WIDTH / max(1, len(values) - 1)
    high = HEIGHT / most if most else 0
    return "".join(
        f"{'M' if place == 0 or values[place - 1] is None else 'L'}{place * across:.0f} {HEIGHT - value * high:.1f}"
        for place, value in enumerate(values)
        if value is not None
    )


def through(places: Sequence[float], values: Sequence[float]) -> str:
    """The path through values at these places, of which 1 is the right edge; empty through a single one."""
    most = max(values, default=0.0) or 1.0
    points = [f"{x * WIDTH:.0f} {HEIGHT - HEIGHT * value / most:.0f}" for x, value in zip(places, values, strict=True)]
    return "M" + "L".join(points) if len(points) > 1 else ""


def spark(series: Series) -> str | None:
    """A path with few points through the sums of ended and failed ids; None if all are 0."""
    return spark_of([*map(add, series.ended, series.failed)])


def spark_of(both: Sequence[int]) -> str | None:
    """A path with few points through the counts; None if all are 0."""
    width = max(1, len(both) // SPARK_POINTS)
    points = [*map(sum, zip_longest(*[both[first::width] for first in range(width)], fillvalue=0))]
    most = max(points, default=0)
    if not most:
        return None
    across = WIDTH // max(1, len(points) - 1)
    return "M" + "L".join([f"{x} {HEIGHT - HEIGHT * value // most}" for x, value in zip(count(0, across), points)])


def round_up(value: float) -> float:
    """The value, rounded up to a number for the scale of a chart.

    >>> round_up(0), round_up(0.35), round_up(7), round_up(10), round_up(1_234)
    (1, 0.4, 8.0, 10.0, 1500.0)
    """
    if value <= 0:
        return 1
    unit = 10.0 ** floor(log10(value))
    return float(next(step * unit for step in _STEPS if ceil(value / unit * 1_000) <= step * 1_000))


class ChartSpan(msgspec.Struct, frozen=True, kw_only=True):
    """The part of the past that the charts of a page show, and the ways to another one.

    `fields`: its own in an address. `links`: to the page with each span. `action`, `kept`: the address of the page, and
    its other fields, for a form.
    """

    span: Span | Between
    fields: Mapping[str, str]
    links: Mapping[Span, str]
    action: str
    kept: Mapping[str, str]

    @property
    def bounds(self) -> tuple[str, str] | None:
        """Both ends of a range, as the fields of a form have them, in UTC; None of a span."""
        if not isinstance(self.span, Between):
            return None
        since, until = (
            f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M}" for at in (self.span.since, self.span.until)
        )
        return since, until

    names: ClassVar = SPANS
    """The spans in words."""

    @property
    def words(self) -> str:
        """It, in a sentence."""
        return "this range" if isinstance(self.span, Between) else f"the last {SPANS[self.span]}"


def in_period(
    context: RequestContext, path: str, kept: Mapping[str, str], show: Callable[[ChartSpan], Response]
) -> Response:
    """The page as `show` makes it of the part of the past in the address, 10 minutes by default; or why it cannot be.

    `path`, `kept`: the address of the page, and its other fields.
    """
    try:
        span, fields = _span_of(context)
    except ValueError as error:
        return _refused(context, path, f"The charts cannot show it: {str(error).removesuffix('.')}.")
    spans = [span for span in SPANS if span != BY_DAY or context.app.config.history_days]
    links = {each: context.link(path, **kept, span=each) for each in spans}
    return show(ChartSpan(span=span, fields=fields, links=links, action=context.link(path), kept=kept))


def _span_of(context: RequestContext) -> tuple[Span | Between, dict[str, str]]:
    """What the address asks for, and its fields. Raises ValueError."""
    fields = {name: text for name in ("since", "until") if (text := context.query.get(name, "").strip())}
    if not fields:
        text = context.query.get("span", "")
        span: Span = next((span for span in get_args(Span) if span == text), "10m")
        return span, {"span": span}
    if "since" not in fields:
        raise ValueError("a range needs its beginning, “since”")
    now = context.site.now()
    between = Between(moment_of(fields["since"], now), moment_of(fields.get("until", "now"), now))
    stretch_of(between, now, context.app.config.history_days)
    return between, fields


def _refused(context: RequestContext, path: str, sentence: str) -> Response:
    if context.is_partial:
        return context.refuse(HTTPStatus.BAD_REQUEST, sentence)
    others = {name: text for name, text in context.query.items() if name not in {"since", "until"}}
    return context.render(
        "parameters.html",
        HTTPStatus.BAD_REQUEST,
        sentence=sentence,
        known={
            "since": f"when the range begins: {EXAMPLES}",
            "until": "when it ends, in the same forms; now without it",
        },
        again=context.link(path, **others),
    )

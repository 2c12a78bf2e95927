"""The history of queues, read for charts."""

import struct
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from math import ceil
from operator import add
from typing import Final, NamedTuple, TypeAlias

import msgspec

from lowkiq_lambda.store.server.faults import unless_error
from lowkiq_lambda.store.server.pipelines import send_each
from lowkiq_lambda.store.shard.backend import Backend, ExtraCommand
from lowkiq_lambda.store.shard.history import (
    ARRIVALS,
    BUCKETS,
    DAY_OUTCOMES,
    DAYS,
    MINUTES,
    SECONDS,
    TIMES,
    Kind,
    bounds,
)
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views.queues import WAITS, Between, DayTimes, Quantiles, QueueHistory, Series, Span, WaitsOfSpan


class PastSpan(NamedTuple):
    """A part of the past: the kind of array that has it, its seconds, those of one point, and its end.

    `until`: Unix seconds, a border of slots; None for one that ends now.
    """

    kind: Kind
    length: int
    step: int
    until: float | None = None


SPANS: Final[Mapping[Span, PastSpan]] = {
    "10m": PastSpan(SECONDS, 600, 5),
    "1h": PastSpan(MINUTES, 3_600, 60),
    "6h": PastSpan(MINUTES, 6 * 3_600, 180),
    "72h": PastSpan(MINUTES, 72 * 3_600, 900),
    "30d": PastSpan(DAYS, 30 * 86_400, 6 * 3_600),
}
_STEPS: Final[Mapping[Kind, Sequence[int]]] = {SECONDS: (5,), MINUTES: (60, 180, 900), DAYS: (3_600, 21_600, 86_400)}
_MOST_POINTS: Final = 300
"""A longer range has longer steps, as far as there are any."""
_MOMENT: Final = 60.0

RECENT: Final = 30
"""A rate is the mean of so many seconds."""
UNWRITTEN: Final = SECONDS.step
"""Seconds for which a process may hold its counts back: a younger point would look too low."""
_P50, _P95 = 0.5, 0.95

Window: TypeAlias = tuple[Kind, int]
"""A kind of array, and its number."""
Windows: TypeAlias = Mapping[Window, bytes]
_HOUR: Final = 3_600
_COUNTER: Final = 4
"""Bytes."""


def stretch_of(span: Span | Between, now: float, days: int) -> PastSpan:
    """The part of the past that a span or a range is; `days`: for how many the app keeps its history by the day.

    Raises ValueError for another span, and for a range that is empty, in the future, or older than what is kept.
    """
    if isinstance(span, Between):
        return _range(span, now, days)
    value: object = span
    if not isinstance(value, str) or value not in SPANS:
        raise ValueError(f"span must be one of {', '.join(SPANS)}, not {span!r}.")
    return SPANS[span]


def _range(between: Between, now: float, days: int) -> PastSpan:
    since, until = between.since, between.until
    if since >= now:
        raise ValueError("the range is in the future.")
    if not since < until:
        raise ValueError("the range must begin before it ends.")
    oldest = now - (days * DAYS.window if days else SPANS["72h"].length)
    # The caller may have read its clock a moment before.
    if since < oldest - _MOMENT:
        begins_at = f"{datetime.fromtimestamp(oldest, UTC):%Y-%m-%d %H:%M} UTC"
        raise ValueError(f"the history begins at {begins_at}: the range must not begin before.")
    age = now - since - _MOMENT
    kind = SECONDS if age <= SPANS["10m"].length else MINUTES if age <= SPANS["72h"].length else DAYS
    ends_at = min(ceil(min(until, now) / kind.step), (now - UNWRITTEN) // kind.step) * kind.step
    steps = _STEPS[kind]
    step = next((step for step in steps if ends_at - since <= step * _MOST_POINTS), steps[-1])
    return PastSpan(kind, max(1, ceil((ends_at - since) / step)) * step, step, ends_at)


def windows(stretch: PastSpan, now: float, *, arrivals: bool = False) -> list[Window]:
    """The windows of a queue to read; `arrivals`: those too, as far back as they are kept."""
    ends_at = now if stretch.until is None else stretch.until
    began_at = ends_at - stretch.length
    parts = {SECONDS: (now - RECENT, now), TIMES: (now - TIMES.window, now)}
    if stretch.length > DAYS.window:
        parts[DAYS] = (began_at, ends_at)
    parts[stretch.kind] = (began_at, now if stretch.kind is SECONDS else ends_at)
    if arrivals and now - began_at < ARRIVALS.kept:
        parts[ARRIVALS] = (began_at, ends_at)
    return [
        (kind, number)
        for kind, (first, last) in parts.items()
        # A little further back, as the last point shown ended a while ago.
        for number in range(int((first - stretch.step - UNWRITTEN) // kind.window), int(last // kind.window) + 1)
    ]


def command(queue_name: str, requested: Sequence[Window], prefix: str) -> ExtraCommand:
    """The command that reads these windows of a queue; `prefix`: of the app's keys."""
    keys = [kind.key(queue_name, number * kind.window, prefix) for kind, number in requested]
    return keys[0], ("MGET", *keys)


def history(reply: object, requested: Sequence[Window], stretch: PastSpan, now: float) -> QueueHistory:
    """The history in the command's reply; an empty one if the reply is an error."""
    arrays = _arrays_in(reply, requested)
    kind, length, step, until = stretch
    written_at = now - UNWRITTEN
    # Up to now rather than to the last whole point, so that a long span is up to date each minute.
    ends_at = written_at // kind.step * kind.step if until is None else until
    recent_to = written_at // SECONDS.step * SECONDS.step
    recent = _series(arrays, SECONDS, recent_to - RECENT, recent_to, SECONDS.step)
    days = _days(arrays)
    series = _series(arrays, kind, ends_at - length, ends_at, step)
    return QueueHistory(
        series=msgspec.structs.replace(series, arrived=_arrived(arrays, ends_at - length, ends_at, step))
        if any(kind is ARRIVALS for kind, _ in requested)
        else series,
        ended_rate=sum(recent.ended) / RECENT,
        failed_rate=sum(recent.failed) / RECENT,
        took=_quantiles(times := _arrays_of(arrays, TIMES), 0),
        waited=_quantiles(times, BUCKETS),
        days=[_day(number, data) for number, data in days],
        of_days=_day(days[0][0], *[data for _, data in days]) if days else None,
    )


def times_in(reply: object, requested: Sequence[Window]) -> Mapping[int, bytes]:
    """The arrays of times in the command's reply, by number."""
    return {number: data for (kind, number), data in _arrays_in(reply, requested).items() if kind is TIMES}


def read_waits(reader: ShardReader, span: Span | Between, days: int) -> list[WaitsOfSpan]:
    """How long ids of the reader's queue have waited, the oldest first: by half hours that are kept, or by days.

    By days with the span "30d" or an older range, if the app keeps them: for so many `days`. Raises BackendError, and
    ValueError as `stretch_of` does.
    """
    backend, queue_name = reader.backend, reader.shards[0].queue_name
    now = backend.clock.time()
    stretch = stretch_of(span, now, days)
    ends_at = now if stretch.until is None else stretch.until
    kind, began_at = DAYS, ends_at - stretch.length
    if stretch.kind is not DAYS:
        kept_since = now - TIMES.kept + TIMES.window
        kind, began_at = TIMES, kept_since if stretch.until is None else max(began_at, kept_since)
    numbers = range(int(began_at // kind.window), int(ends_at // kind.window) + 1)
    if not numbers:
        return []
    asked_for = command(queue_name, [(kind, number) for number in numbers], backend.prefix)
    (reply,) = backend.retrying(
        reader.retry_for, lambda: [unless_error(answer) for answer in send_each(backend.client, [asked_for])]
    )
    first = BUCKETS + (DAY_OUTCOMES if kind is DAYS else 0)
    return [
        WaitsOfSpan(
            at=float(number * kind.window), seconds=kind.window, counts=_by_wait(_filled(data, first + BUCKETS), first)
        )
        for number, data in zip(numbers, reply, strict=True)
        if isinstance(data, bytes)
    ]


def _by_wait(stored: bytes, first: int) -> tuple[int, ...]:
    counts = [0] * (len(WAITS) + 1)
    for number, count in enumerate(_counters(stored, first, BUCKETS)):
        # A bucket belongs where most of it lies.
        counts[bisect_left(WAITS, sum(bounds(number)) / 2)] += count
    return tuple(counts)


def waited_by_all(each: Iterable[Mapping[int, bytes]]) -> Quantiles | None:
    """The quantiles of several queues together, of what `times_in` says of each."""
    return _quantiles([data for times in each for data in times.values()], BUCKETS)


def times_of_hour(
    backend: Backend, queue_name: str, at: float, shares: Sequence[float], retry_for: float
) -> list[float] | None:
    """For how long first ids of batches had waited in the hour from `at` on: these quantiles, None without a batch.

    Raises BackendError.
    """
    numbers = range(int(at // TIMES.window), int((at + _HOUR - 1) // TIMES.window) + 1)
    asked_for = command(queue_name, [(TIMES, number) for number in numbers], backend.prefix)
    (reply,) = backend.retrying(
        retry_for, lambda: [unless_error(answer) for answer in send_each(backend.client, [asked_for])]
    )
    reached = _reached([data for data in reply if isinstance(data, bytes)], BUCKETS)
    return [_quantile(reached, share) for share in shares] if reached[-1] else None


def _arrays_in(reply: object, requested: Sequence[Window]) -> Windows:
    stored = zip(requested, reply if isinstance(reply, list) else (), strict=False)
    return {window: data for window, data in stored if isinstance(data, bytes)}


def _arrays_of(arrays: Windows, kind: Kind) -> list[bytes]:
    return [data for (each, _), data in arrays.items() if each is kind]


def _days(arrays: Windows) -> list[tuple[int, bytes]]:
    """The days that were written, the oldest first, if they were read."""
    return sorted((number, data) for (kind, number), data in arrays.items() if kind is DAYS)


def _day(number: int, *stored: bytes) -> DayTimes:
    """The day of this number, or days from it on."""
    filled = [_filled(each, DAY_OUTCOMES + 2 * BUCKETS) for each in stored]
    outcomes = [*map(sum, zip(*(_counters(data, 0, DAY_OUTCOMES) for data in filled), strict=True))]
    times = [data[_COUNTER * DAY_OUTCOMES :] for data in filled]
    return DayTimes(
        at=float(number * DAYS.window),
        ended=sum(outcomes[::2]),
        failed=sum(outcomes[1::2]),
        took=_quantiles(times, 0),
        waited=_quantiles(times, BUCKETS),
    )


def _series(arrays: Windows, kind: Kind, from_: float, to: float, step: int) -> Series:
    first, last = int(from_ // kind.window), int((to - 1) // kind.window)
    slots = kind.window // kind.step
    stored = b"".join(
        [
            _filled(arrays.get((kind, number), b""), 2 * slots)[: 2 * slots * _COUNTER]
            for number in range(first, last + 1)
        ]
    )
    begin, end = (int(at - first * kind.window) // kind.step for at in (from_, to))
    counters = _counters(stored, 2 * begin, 2 * (end - begin))
    width = 2 * (step // kind.step)
    ended, failed = (
        counters[which::2]
        if step == kind.step
        else tuple([sum(counters[place + which : place + width : 2]) for place in range(0, len(counters), width)])
        for which in (0, 1)
    )
    return Series(began_at=from_, step=step, ended=ended, failed=failed)


def _arrived(arrays: Windows, from_: float, to: float, step: int) -> tuple[int | None, ...]:
    """What arrived in each step; what arrived in a minute is spread evenly over shorter ones."""
    slots, minute = ARRIVALS.window // ARRIVALS.step, ARRIVALS.step
    counts = {
        number * slots + slot: stored - 1
        for (kind, number), data in arrays.items()
        if kind is ARRIVALS
        for slot, stored in enumerate(_counters(data, 0, len(data) // _COUNTER))
        if stored
    }

    def of(at: int) -> int | None:
        first, end = at // minute, (at + step) // minute
        minutes = [counts[number] for number in range(first, max(first + 1, end)) if number in counts]
        if len(minutes) < max(1, end - first):
            return None
        begun, length = at % minute if step < minute else 0, max(step, minute)
        return sum(minutes) * (begun + step) // length - sum(minutes) * begun // length

    return tuple(of(at) for at in range(int(from_), int(to), step))


def _filled(stored: bytes, counters: int) -> bytes:
    """The whole array: it is stored up to its last count only."""
    return stored.ljust(_COUNTER * counters, b"\0")


def _counters(stored: bytes, first: int, number: int) -> tuple[int, ...]:
    return struct.unpack_from(f">{number}I", stored, _COUNTER * first)


def _reached(arrays: Iterable[bytes], first: int) -> list[int]:
    """The running sum over the buckets of all of them."""
    counts = [0] * BUCKETS
    for data in arrays:
        counts = [*map(add, counts, _counters(_filled(data, 2 * BUCKETS), first, BUCKETS))]
    return [*accumulate(counts)]


def _quantiles(arrays: Iterable[bytes], first: int) -> Quantiles | None:
    reached = _reached(arrays, first)
    if not reached[-1]:
        return None
    return Quantiles(_quantile(reached, _P50), _quantile(reached, _P95))


def _quantile(reached: Sequence[int], share: float) -> float:
    """The time that this share of all stays below; `reached` is the running sum over the buckets."""
    rank = share * reached[-1]
    number = bisect_left(reached, rank)
    before = reached[number - 1] if number else 0
    lower, upper = bounds(number)
    return lower + (upper - lower) * (rank - before) / (reached[number] - before)

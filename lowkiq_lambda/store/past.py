"""The history of queues, read for charts."""

import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final

from lowkiq_lambda.store.backend import Beside
from lowkiq_lambda.store.history import BUCKETS, MINUTES, SECONDS, TIMES, Kind, bounds
from lowkiq_lambda.views import Past, Quantiles, Series, Span

SPANS: Final[Mapping[Span, tuple[Kind, int, int]]] = {
    "10m": (SECONDS, 600, 5),
    "1h": (MINUTES, 3_600, 60),
    "6h": (MINUTES, 6 * 3_600, 180),
    "72h": (MINUTES, 72 * 3_600, 900),
}
"""What is read, how far back, and the seconds of a point of it; a point never lies in two windows."""

RECENT: Final = 30
"""Seconds that a rate is the mean of."""
UNWRITTEN: Final = SECONDS.step
"""Seconds for which processes may keep what they did to themselves: a point that is so young would look too low."""
_HALF, _MOST = 0.5, 0.95

Windows = Mapping[tuple[Kind, int], Sequence[int]]


def command(queue_name: str, span: Span, now: float) -> Beside:
    """Reads what `past` is told from a queue."""
    keys = [kind.key(queue_name, number * kind.window) for kind, number in _windows(span, now)]
    return keys[0], ("MGET", *keys)


def past(answer: object, span: Span, now: float) -> Past:
    """What the command answered; nothing where it could not be read."""
    stored = zip(_windows(span, now), answer if isinstance(answer, list) else (), strict=False)
    windows = {window: _counters(data) for window, data in stored if isinstance(data, bytes)}
    kind, length, step = SPANS[span]
    written_at = now - UNWRITTEN
    ends_at = written_at // step * step
    recent_to = written_at // SECONDS.step * SECONDS.step
    recent = _series(windows, SECONDS, recent_to - RECENT, recent_to, SECONDS.step)
    return Past(
        series=_series(windows, kind, ends_at - length, ends_at, step),
        processed_rate=sum(recent.processed) / RECENT,
        failed_rate=sum(recent.failed) / RECENT,
        took=_quantiles(windows, 0),
        waited=_quantiles(windows, BUCKETS),
    )


def _windows(span: Span, now: float) -> Iterator[tuple[Kind, int]]:
    """The windows that are read, by their numbers."""
    kind, length, step = SPANS[span]
    for read, reach in {SECONDS: RECENT, TIMES: TIMES.window, kind: length}.items():
        # A point more on the way back, as the last whole one may have ended a while ago.
        first = int((now - reach - step - UNWRITTEN) // read.window)
        yield from ((read, number) for number in range(first, int(now // read.window) + 1))


def _series(windows: Windows, kind: Kind, from_: float, to: float, step: int) -> Series:
    first, last = int(from_ // kind.window), int((to - 1) // kind.window)
    slots = 2 * kind.window // kind.step
    read = [windows.get((kind, number), ()) for number in range(first, last + 1)]
    whole = [counter for counters in read for counter in _filled(counters, slots)]
    begin, end = 2 * int((from_ - first * kind.window) // kind.step), 2 * int((to - first * kind.window) // kind.step)
    width = 2 * (step // kind.step)
    processed, failed = (
        tuple(whole[begin + which : end : 2])
        if step == kind.step
        else tuple([sum(whole[place + which : place + width : 2]) for place in range(begin, end, width)])
        for which in (0, 1)
    )
    return Series(began_at=from_, step=step, processed=processed, failed=failed)


def _filled(counters: Sequence[int], length: int) -> Sequence[int]:
    """An array ends where nothing was counted any more."""
    return (*counters, *(0,) * (length - len(counters)))


def _quantiles(windows: Windows, first: int) -> Quantiles | None:
    rows = [_filled(counters, 2 * BUCKETS) for (kind, _), counters in windows.items() if kind is TIMES]
    reached = [*accumulate(map(sum, zip(*(row[first : first + BUCKETS] for row in rows), strict=True)))]
    if not reached or not reached[-1]:
        return None
    return Quantiles(_quantile(reached, _HALF), _quantile(reached, _MOST))


def _quantile(reached: Sequence[int], share: float) -> float:
    """The time that so large a share of all stays below, by what each bucket brings the sum to."""
    wanted = share * reached[-1]
    number = next(place for place, count in enumerate(reached) if count >= wanted)
    before = reached[number - 1] if number else 0
    lower, upper = bounds(number)
    return lower + (upper - lower) * (wanted - before) / (reached[number] - before)


def _counters(stored: bytes) -> Sequence[int]:
    whole = stored + bytes(-len(stored) % 4)
    return struct.unpack(f">{len(whole) // 4}I", whole)

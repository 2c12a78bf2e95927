"""The history of queues, read for charts."""

import struct
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, repeat
from operator import add
from typing import Final, TypeAlias

from lowkiq_lambda.store.shard.backend import ExtraCommand
from lowkiq_lambda.store.shard.history import BUCKETS, MINUTES, SECONDS, TIMES, Kind, bounds
from lowkiq_lambda.views import Quantiles, QueueHistory, Series, Span

SPANS: Final[Mapping[Span, tuple[Kind, int, int]]] = {
    "10m": (SECONDS, 600, 5),
    "1h": (MINUTES, 3_600, 60),
    "6h": (MINUTES, 6 * 3_600, 180),
    "72h": (MINUTES, 72 * 3_600, 900),
}
"""What is read, how far back, and the seconds of a point of it."""

RECENT: Final = 30
"""Seconds that a rate is the mean of."""
UNWRITTEN: Final = SECONDS.step
"""Seconds for which processes may keep what they did to themselves: a point that is so young would look too low."""
_HALF, _MOST = 0.5, 0.95

Window: TypeAlias = tuple[Kind, int]
"""A kind of array, and which of them."""
Windows: TypeAlias = Mapping[Window, bytes]
_COUNTER: Final = 4
"""Bytes."""


def windows(span: Span, now: float) -> list[Window]:
    """What has to be read of a queue, to know so much of its past."""
    kind, length, step = SPANS[span]
    return [
        (read, number)
        for read, reach in {SECONDS: RECENT, TIMES: TIMES.window, kind: length}.items()
        # A little more on the way back, as what is shown ended a while ago.
        for number in range(int((now - reach - step - UNWRITTEN) // read.window), int(now // read.window) + 1)
    ]


def command(queue_name: str, wanted: Sequence[Window]) -> ExtraCommand:
    """Reads these windows of a queue."""
    keys = [kind.key(queue_name, number * kind.window) for kind, number in wanted]
    return keys[0], ("MGET", *keys)


def history(answer: object, wanted: Sequence[Window], span: Span, now: float) -> QueueHistory:
    """What the command answered; nothing where it could not be read."""
    stored = zip(wanted, answer if isinstance(answer, list) else (), strict=False)
    found = {window: data for window, data in stored if isinstance(data, bytes)}
    kind, length, step = SPANS[span]
    written_at = now - UNWRITTEN
    # Up to now rather than to the last whole point: what is long is cut anew each minute, and lacks nothing.
    ends_at = written_at // kind.step * kind.step
    recent_to = written_at // SECONDS.step * SECONDS.step
    recent = _series(found, SECONDS, recent_to - RECENT, recent_to, SECONDS.step)
    return QueueHistory(
        series=_series(found, kind, ends_at - length, ends_at, step),
        done_rate=sum(recent.done) / RECENT,
        failed_rate=sum(recent.failed) / RECENT,
        took=_quantiles(found, 0),
        waited=_quantiles(found, BUCKETS),
    )


def _series(found: Windows, kind: Kind, from_: float, to: float, step: int) -> Series:
    first, last = int(from_ // kind.window), int((to - 1) // kind.window)
    slots = kind.window // kind.step
    stored = b"".join([_filled(found.get((kind, number), b""), 2 * slots) for number in range(first, last + 1)])
    begin, end = (int(at - first * kind.window) // kind.step for at in (from_, to))
    counters = _counters(stored, 2 * begin, 2 * (end - begin))
    width = 2 * (step // kind.step)
    done, failed = (
        counters[which::2]
        if step == kind.step
        else tuple([sum(counters[place + which : place + width : 2]) for place in range(0, len(counters), width)])
        for which in (0, 1)
    )
    return Series(began_at=from_, step=step, done=done, failed=failed)


def _filled(stored: bytes, counters: int) -> bytes:
    """An array ends where nothing was counted any more."""
    return stored.ljust(_COUNTER * counters, b"\0")


def _counters(stored: bytes, first: int, number: int) -> tuple[int, ...]:
    return struct.unpack_from(f">{number}I", stored, _COUNTER * first)


def _quantiles(found: Windows, first: int) -> Quantiles | None:
    stored = [_filled(data, 2 * BUCKETS) for (kind, _), data in found.items() if kind is TIMES]
    counted: Iterable[int] = repeat(0, BUCKETS)
    for data in stored:
        counted = map(add, counted, _counters(data, first, BUCKETS))
    reached = [*accumulate(counted)]
    if not reached[-1]:
        return None
    return Quantiles(_quantile(reached, _HALF), _quantile(reached, _MOST))


def _quantile(reached: Sequence[int], share: float) -> float:
    """The time that so large a share of all stays below, by what each bucket brings the sum to."""
    wanted = share * reached[-1]
    number = bisect_left(reached, wanted)
    before = reached[number - 1] if number else 0
    lower, upper = bounds(number)
    return lower + (upper - lower) * (wanted - before) / (reached[number] - before)

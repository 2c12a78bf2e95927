"""The hours of a queue: a digest of each that is over, and how long a call usually takes."""

from collections.abc import Sequence
from statistics import median
from typing import Final

import msgspec

from lowkiq_lambda.operate.inspect.history import times_of_hour
from lowkiq_lambda.operate.lateness.kept import HOUR, OpenHour
from lowkiq_lambda.operate.lateness.samples import LONGEST, Sample
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.views.lateness import HourDigest

WEEK: Final = 7 * 24 * HOUR
"""Seconds by which it is judged how long a call usually takes: each day of the week is in them."""
LIKE: Final = 1.25
"""So many times as many ids in a call, or as few, still count as the same fill."""
FEWEST_CALLS: Final = 20
"""Calls of an hour, of fewer a mean says nothing."""
FEWEST_HOURS: Final = 3
"""Hours, of fewer a median is that of chance."""


def going_on(before: OpenHour | None, sample: Sample) -> OpenHour:
    """The hour that goes on at this sample; a new one where it begins, or where counters cannot be compared."""
    number = int(sample.at // HOUR)
    if before is None or before.number != number or not _follows(before.last, sample):
        # What was counted since the last sample of the hour before belongs to the new one.
        follows = before is not None and before.number != number and _follows(before.last, sample)
        return OpenHour(number, before.last if before is not None and follows else sample, sample, 0, _cause(before))
    ended = sample.ended - before.last.ended if sample.at - before.last.at <= LONGEST else 0
    return msgspec.structs.replace(before, last=sample, busiest=max(before.busiest, ended))


def digest_of(backend: Backend, queue_name: str, hour: OpenHour, retry_for: float) -> HourDigest:
    """The digest of an hour that is over. Raises BackendError."""
    first, last = hour.began, hour.last
    waited = times_of_hour(backend, queue_name, hour.number * HOUR, (0.5, 0.95, 0.99), retry_for)
    p50, p95, p99 = waited or (None, None, None)
    return HourDigest(
        at=float(hour.number * HOUR),
        seconds=round(last.at - first.at, 1),
        ids=last.ended - first.ended,
        payloads=last.payloads - first.payloads,
        calls=last.calls - first.calls,
        busy=round(last.busy - first.busy, 3),
        computing=round(last.computing - first.computing, 3),
        held=round(last.held - first.held, 3),
        failed=last.failed - first.failed,
        dead=last.dead - first.dead,
        busiest=hour.busiest,
        p50=p50,
        p95=p95,
        p99=p99,
    )


def usual_took(hours: Sequence[HourDigest], now: float, fill: float | None) -> float | None:
    """Seconds of a call in the median hour of the last week, of hours whose calls had as many ids; None: not known."""
    if not fill:
        return None
    means = [
        hour.busy / hour.calls
        for hour in hours
        if now - hour.at <= WEEK
        and hour.calls >= FEWEST_CALLS
        and fill / LIKE <= (hour.ids + hour.failed) / hour.calls <= fill * LIKE
    ]
    return median(means) if len(means) >= FEWEST_HOURS else None


def _follows(before: Sample, after: Sample) -> bool:
    """Whether no counter fell, as after a queue was made anew, or a server lost its last writes."""
    counters = ("ended", "failed", "dead", "payloads", "calls", "busy", "computing")
    return before.shape == after.shape and all(getattr(after, name) >= getattr(before, name) for name in counters)


def _cause(before: OpenHour | None) -> str:
    return "" if before is None else before.cause

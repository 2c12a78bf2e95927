"""The load of an app, by the hours that its queues have behind them: a month of it, and the hours that are played."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import Final

import msgspec

from lowkiq_lambda.simulate.times import Times
from lowkiq_lambda.stack.costs.month import HOURS, Month
from lowkiq_lambda.views.lateness import HourOfQueue

HOUR: Final = 3_600.0
DAYS: Final = 28
"""Whole weeks, so that each day of the week counts as often."""
ENOUGH: Final = 24
"""Hours of this month from which its own pace is known; before, that of the last weeks stands in."""
PLAYED: Final = 6
"""Hours of a queue that are played: the busiest, the one behind it, and four that lie between it and the quietest."""
MOST_PLAYED: Final = 40_000
"""Jobs of a queue that are played, for each way some tenths of a second."""
FEWEST: Final = 3
"""Minutes of an hour that are played, at least: a schedule comes once in each."""
STEADY: Final = 3.0
"""So many times as much as in the median hour is done in a busy one, at most, of a steady load."""


class QueueLoad(msgspec.Struct, frozen=True, kw_only=True):
    """A queue, and its hours, the oldest first. `is_rough`: they are of history, which has no times of handlers."""

    name: str
    shards: int
    concurrency: int
    batch: int
    hours: tuple[HourOfQueue, ...]
    is_rough: bool = False

    @property
    def ids(self) -> int:
        """Ids that ended, and failures."""
        return sum(hour.ids + hour.failed for hour in self.hours)

    @property
    def busy(self) -> float:
        """Seconds of handlers."""
        return sum(hour.busy for hour in self.hours)

    @property
    def computing(self) -> float:
        """The share of a call in which a processor works."""
        return min(1.0, sum(hour.computing for hour in self.hours) / self.busy) if self.busy else 0.0

    @property
    def times(self) -> Times:
        """Of a call, as if all of its time were that of its ids."""
        return Times(each_id=self.busy / self.ids if self.ids else 0.0, computing=self.computing)

    def rates(self) -> list[float]:
        """Ids a second in each minute of some hours, one behind the other: the busiest, the next, and four others."""
        hours = [hour for hour in self.hours if hour.seconds > 0]
        if not hours:
            return []
        by_work = sorted(range(len(hours)), key=lambda place: hours[place].ids)
        busiest = by_work[-1]
        between = [by_work[len(by_work) * part // (PLAYED - 1)] for part in range(PLAYED - 2)]
        places = list(dict.fromkeys([busiest, min(busiest + 1, len(hours) - 1), *between]))
        minutes = [_minutes(hours[place]) for place in places]
        while len(minutes) > 1 and sum(sum(each[:FEWEST]) for each in minutes) * 60 > MOST_PLAYED:
            minutes.pop()
        # The busiest minute stands first, and what it leaves behind follows.
        jobs = sum(sum(each) * 60 for each in minutes)
        length = max(FEWEST, min(60, int(60 * MOST_PLAYED / jobs))) if jobs else 60
        return [rate for each in minutes for rate in each[:length]]


def _minutes(hour: HourOfQueue) -> list[float]:
    """Its busiest minute, and the others alike."""
    ids = (hour.ids + hour.failed) / _watched(hour)
    peak = min(ids, max(hour.busiest, ids / 60))
    return [peak / 60, *[(ids - peak) / 59 / 60] * 59]


class MonthLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What all queues of an app do in a month. `at`: now, Unix seconds; `hours`: of which it is known."""

    queues: tuple[QueueLoad, ...]
    at: float
    hours: float
    of_month: float
    """The hours of this month that are known."""
    jobs: int
    """In a month, at this pace."""
    job_seconds: float
    job_cpu: float
    failures: int
    is_steady: bool

    @property
    def is_rough(self) -> bool:
        """Whether numbers of a queue are of history alone."""
        return any(queue.is_rough for queue in self.queues)

    @property
    def so_far(self) -> float:
        """The share of a month that was measured in this one: nothing is made up for hours before the app."""
        return self.of_month / HOURS

    def month(self, *, memory: int, concurrency: int | None = None) -> Month:
        """As the calculation of costs takes it, beside a Redis that is there already."""
        shards = sum(queue.shards for queue in self.queues)
        at_once = self._mean("concurrency") if concurrency is None else concurrency
        return Month(
            jobs=self.jobs,
            job_seconds=self.job_seconds,
            job_cpu=self.job_cpu,
            failures=self.failures,
            concurrency=max(1, round(at_once)),
            batch=max(1, round(self._mean("batch"))),
            shards=max(1, shards),
            queues=max(1, len(self.queues)),
            memory=memory,
            redis="none",
        )

    def _mean(self, field: str) -> float:
        """Of the queues, each by its work."""
        work = sum(queue.busy for queue in self.queues)
        weighted = sum(float(getattr(queue, field)) * queue.busy for queue in self.queues)
        return weighted / work if work else max((float(getattr(queue, field)) for queue in self.queues), default=1.0)


def month_began(at: float) -> float:
    """Unix seconds, in UTC."""
    return datetime.fromtimestamp(at, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0).timestamp()


def load_of(queues: Sequence[QueueLoad], at: float) -> MonthLoad:
    """The load of an app at `at`; the pace is that of this month, once a day of it is known, else of four weeks."""
    began = month_began(at)
    of_month = {hour.at for queue in queues for hour in queue.hours if hour.at >= began}
    watched = sum(max(_watched(hour) for hour in _at(queues, start)) for start in of_month)
    since = began if len(of_month) >= ENOUGH else at - DAYS * 24 * HOUR
    paced = [
        msgspec.structs.replace(queue, hours=tuple(hour for hour in queue.hours if hour.at >= since))
        for queue in queues
    ]
    starts = {hour.at for queue in paced for hour in queue.hours}
    # Minutes that nobody watched may have had work.
    hours = sum(max(_watched(hour) for hour in _at(paced, start)) for start in starts)
    ids, busy = sum(queue.ids for queue in paced), sum(queue.busy for queue in paced)
    computing = sum(queue.computing * queue.busy for queue in paced)
    failed = sum(hour.failed for queue in paced for hour in queue.hours)
    times = HOURS / hours if hours else 0.0
    by_hour = [sum(round(hour.ids / _watched(hour)) for hour in _at(paced, start)) for start in starts]
    return MonthLoad(
        queues=tuple(paced),
        at=at,
        hours=hours,
        of_month=watched,
        jobs=round(ids * times),
        job_seconds=busy / ids if ids else 0.0,
        job_cpu=computing / ids if ids else 0.0,
        failures=round(failed * times),
        is_steady=_is_steady(by_hour),
    )


def _at(queues: Sequence[QueueLoad], start: float) -> Iterator[HourOfQueue]:
    return (hour for queue in queues for hour in queue.hours if hour.at == start)


def _watched(hour: HourOfQueue) -> float:
    """The part of the hour of which its numbers are."""
    return min(max(hour.seconds, 60.0), HOUR) / HOUR


def _is_steady(ids: Sequence[int]) -> bool:
    ordered = sorted(ids)
    return bool(ordered) and ordered[int(0.95 * len(ordered))] <= STEADY * median(ordered) and median(ordered) > 0

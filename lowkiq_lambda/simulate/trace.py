"""When which ids are pushed: of a file, of rates that were measured, or of rates that somebody expects."""

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, islice, repeat
from os import PathLike
from random import Random
from typing import Final, Self, TypedDict, Unpack
from zlib import crc32

import msgspec
from msgspec.structs import replace

from lowkiq_lambda.jobs.job import digest, digest_of_tenant

LONGEST: Final = 400 * 86_400.0
"""Seconds between the first and the last push."""
MOST_IDS: Final = 100_000_000
MOST_JOBS: Final = 20_000_000
"""Payloads of a trace: each takes some 20 bytes, and a run of all of them four minutes."""
_MINUTE: Final = 60.0
_WORTH_DIGITS: Final = 1e15
"""From here on a number of jobs is told by its size."""
_FEW: Final = 50
"""Pushes of a step, below which their times are drawn one after the other: no normal number stands for so few."""


class BadTrace(ValueError):
    """A trace that cannot be, or cannot be read; the message says where and why."""


class Trace(msgspec.Struct, frozen=True):
    """Pushes in the order of their times: `at` (seconds from the begin), and a number for each id, from 0.

    `hashes`: the crc32 of each id, by which it is in a shard. `seconds`: of the time that the trace tells of.
    `starts_at`: the begin, as Unix seconds; 0 where it is of no day. `tenants`: the crc32 of the tenant of each id, the
    text before its first colon; None where ids have no names, or all the same one. `warm_up`: seconds at the begin of
    which nothing is told, as a part of a longer trace begins with no backlog, and with nobody at work. `is_drawn`:
    whether the ids are. `left_out`: jobs that were not drawn.
    """

    at: "array[float]"
    ids: "array[int]"
    hashes: "array[int]"
    seconds: float
    starts_at: float = 0.0
    tenants: "array[int] | None" = None
    warm_up: float = 0.0
    is_drawn: bool = True
    left_out: int = 0

    @property
    def jobs(self) -> int:
        """How many payloads are pushed."""
        return len(self.at)

    @classmethod
    def of_rates(  # noqa: PLR0913 - each says something else of the pushes
        cls,
        rates: Sequence[float],
        step: float = _MINUTE,
        *,
        ids: int = 10_000,
        skew: float = 0.0,
        shares: Sequence[float] = (),
        hot: float = 0.0,
        tenants: int = 1,
        tenant_skew: float = 0.0,
        seed: int = 1,
        starts_at: float = 0.0,
        is_counted: bool = False,
        most: float = math.inf,
    ) -> Self:
        """Pushes at random times, of so many a second in each step of `step` seconds. Raises BadTrace.

        `ids` are pushed alike often, or with `skew` as Zipf has it: the k-th most frequent one 1 / k ** skew as often.
        `shares`: of the most frequent ids, in place of `skew`; the others have the rest alike. `hot`: share of the
        pushes that are of one id. `tenants`: that the ids are of, with as many each, or with `tenant_skew` as Zipf has
        it. `is_counted`: so many came in each step, and not so many in the mean. `most`: only the steps around the
        busiest one are drawn that have so many jobs.
        """
        _check(rates, step, ids, hot)
        first, end, jobs = 0, len(rates), sum(rates) * step
        while jobs > most and end - first > 1:
            if rates[first] < rates[end - 1]:
                jobs, first = jobs - rates[first] * step, first + 1
            else:
                jobs, end = jobs - rates[end - 1] * step, end - 1
        left_out = round(sum(rates) * step - jobs)
        rates, starts_at = rates[first:end], starts_at + first * step
        rng = Random(seed)  # noqa: S311 - pushes need no cryptography
        at, numbers = array("d"), array("I")
        weights = None
        if skew or shares:
            each = max(0.0, 1.0 - sum(shares)) / max(1, ids - len(shares))
            parts = chain(shares, repeat(each)) if shares else (number**-skew for number in range(1, ids + 1))
            weights = [*accumulate(islice(parts, ids))]
        for place, rate in enumerate(rates):
            times = _times(rng, rate, step, is_counted=is_counted)
            begin = place * step
            at.extend([begin + time for time in times])
            numbers.extend(_numbers(rng, len(times), ids, weights, hot))
        hashes = array("I", (crc32(b"%d" % number) for number in range(ids)))
        of_tenants = _tenants(tenants, tenant_skew, ids, seed) if tenants > 1 else None
        return cls(at, numbers, hashes, len(rates) * step, starts_at, of_tenants, left_out=left_out)

    @classmethod
    def of_rows(cls, rows: Iterable[tuple[float, object, int]]) -> Self:
        """Of (Unix seconds, id, payloads), in the order of their times. Raises BadTrace, with the number of the row."""
        at, numbers, hashes, tenants = array("d"), array("I"), array("I"), array("I")
        known_ids: dict[str, int] = {}
        starts_at, last = None, -math.inf
        for place, (time, id_, payloads) in enumerate(rows, 1):
            if not math.isfinite(time):
                raise BadTrace(f"row {place}: {time} is not a time")
            if time < last:
                raise BadTrace(f"row {place}: the time runs backwards, from {last:.3f} to {time:.3f}")
            if payloads < 1:
                raise BadTrace(f"row {place}: {payloads} payloads: there must be one at least")
            starts_at, last = math.floor(time / _MINUTE) * _MINUTE if starts_at is None else starts_at, time
            if time - starts_at > LONGEST:
                raise BadTrace(f"row {place}: it is more than {LONGEST / 86_400:.0f} days after the first")
            if len(at) + payloads > MOST_JOBS:
                raise BadTrace(f"row {place}: there are more than {MOST_JOBS:,} payloads up to it: take a part of them")
            name = str(id_)
            number = known_ids.get(name)
            if number is None:
                number = known_ids[name] = len(known_ids)
                hashes.append(digest(name))
                tenants.append(digest_of_tenant(name))
            at.append(time - starts_at)
            numbers.append(number)
            if payloads > 1:
                at.extend(at[-1:] * (payloads - 1))
                numbers.extend(numbers[-1:] * (payloads - 1))
        if starts_at is None:
            raise BadTrace("there is no row in it")
        several = tenants if len({*tenants}) > 1 else None
        return cls(at, numbers, hashes, at[-1], starts_at, several, is_drawn=False)

    @classmethod
    def read_csv(cls, path: str | PathLike[str], **drawn: Unpack["Drawn"]) -> Self:
        """The file's: columns `at,id[,payloads]`, or `minute,jobs` with ids that are drawn. Raises BadTrace."""
        from lowkiq_lambda.simulate.csv_traces import pushes_of, rates_of, rows_of  # noqa: PLC0415 - few read a file

        with rows_of(path) as rows:
            if rows.has_rates:
                begin, rates = rates_of(rows)
                return cls.of_rates(rates, starts_at=begin, is_counted=True, **drawn)
            if needless := sorted(drawn.keys() - {"seed", "most"}):
                words = ", ".join(needless)
                raise BadTrace(f"it has its own ids, which name their tenants, such as acme:7: leave out {words}")
            return cls.of_rows(pushes_of(rows))

    def between(self, since: float, until: float, warm_up: float = 0.0) -> Self:
        """Only the pushes from `since` on and before `until`, seconds of the trace; their times begin at 0 again.

        Those of so many seconds before come first, as far as there are, to warm up.
        """
        warm_up = min(warm_up, since)
        begin = since - warm_up
        first, end = bisect_left(self.at, begin), bisect_left(self.at, until)
        at = array("d", [time - begin for time in self.at[first:end]])
        return replace(
            self,
            at=at,
            ids=self.ids[first:end],
            seconds=until - begin,
            starts_at=self.starts_at + begin,
            warm_up=warm_up,
        )

    def per_step(self, step: float = _MINUTE) -> list[int]:
        """How many payloads are pushed in each step."""
        counts = [0] * (int(self.seconds / step) + 1)
        place = 0
        for number in range(len(counts)):
            end = bisect_left(self.at, (number + 1) * step, place)
            counts[number], place = end - place, end
        return counts


class Drawn(TypedDict, total=False):
    """How ids and tenants of rates are drawn: arguments of `of_rates`."""

    ids: int
    skew: float
    tenants: int
    tenant_skew: float
    seed: int
    most: float


def _check(rates: Sequence[float], step: float, ids: int, hot: float) -> None:
    if not rates or not 0 < step * len(rates) <= LONGEST:
        raise BadTrace(f"the rates must be of at most {LONGEST / 86_400:.0f} days, and of some time")
    if not all(0 <= rate < math.inf for rate in rates):
        raise BadTrace("a rate is a number of 0 or more")
    if (jobs := sum(rates) * step) > MOST_JOBS:
        count = f"{jobs:,.0f}" if jobs < _WORTH_DIGITS else f"{jobs:.0e}"
        raise BadTrace(f"these are {count} jobs, of at most {MOST_JOBS:,}: take a part of them")
    if not 1 <= ids <= MOST_IDS:
        raise BadTrace(f"there must be from 1 to {MOST_IDS:,} ids")
    if not 0 <= hot <= 1:
        raise BadTrace("the share of one id is from 0 to 1")


def _tenants(count: int, skew: float, ids: int, seed: int) -> "array[int]":
    """The crc32 of the tenant of each id; the pushes are the same with and without tenants."""
    weights = [*accumulate(number**-skew for number in range(1, count + 1))]
    drawn = Random(seed).choices(range(count), cum_weights=weights, k=ids)  # noqa: S311 - as the pushes
    return array("I", (crc32(b"%d" % number) for number in drawn))


def _times(rng: Random, rate: float, step: float, *, is_counted: bool) -> list[float]:
    mean = rate * step
    if is_counted or mean > _FEW:
        uniform = rng.random
        # Of a part of a job there is one by chance.
        count = int(mean + uniform()) if is_counted else max(0, round(mean + math.sqrt(mean) * rng.gauss(0.0, 1.0)))
        return sorted([step * uniform() for _ in range(count)])
    times = list[float]()
    time = rng.expovariate(rate) if rate else step
    while time < step:
        times.append(time)
        time += rng.expovariate(rate)
    return times


def _numbers(rng: Random, count: int, ids: int, weights: Sequence[float] | None, hot: float) -> list[int]:
    uniform = rng.random
    if weights is not None:
        numbers = rng.choices(range(ids), cum_weights=weights, k=count)
    else:
        numbers = [int(uniform() * ids) for _ in range(count)]
    return [0 if uniform() < hot else number for number in numbers] if hot else numbers

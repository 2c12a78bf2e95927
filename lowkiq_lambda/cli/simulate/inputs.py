"""What is simulated: pushes and times of a queue's own history, of rates, or of a file; and what of it is a guess."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import msgspec

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.queues import NamedQueue, app_of, queue_of
from lowkiq_lambda.cli.simulate.choices import per_second
from lowkiq_lambda.declare.worker import Worker, at_most
from lowkiq_lambda.operate.presentation.formatting import duration, utc
from lowkiq_lambda.operate.presentation.moments import seconds_of
from lowkiq_lambda.simulate.choice import Choice
from lowkiq_lambda.simulate.times import BadTimes, Times, spread_of
from lowkiq_lambda.simulate.trace import BadTrace, Drawn, Trace
from lowkiq_lambda.views.lateness import HourDigest, mean_skew
from lowkiq_lambda.views.queues import QueueHistory, QueueOverview, Series, Span
from lowkiq_lambda.views.shards import MOST_TENANTS

MINUTE: Final = 60.0
HOUR: Final = 3_600.0
DAY: Final = 1_440
"""Minutes."""
IDS: Final = 10_000
_TOOK: Final = 0.05
_DAYS_OF_HOURS: Final = 72
_FEWEST_CALLS: Final = 20
_FEWEST_TENANTS: Final = 2
_DRAWN_A_SECOND: Final = 700_000
"""Jobs, in half of the time."""
_UNPLAYED: Final = ("tenant_rate", "waits_for", "block_except", "debounce")
_LIKE: Final = 1.25
"""Fills of calls that differ by less do not tell how long each id takes."""


class LoadWords(NamedTuple):
    """What the command line says of the load; None: nothing."""

    rate: str | None
    peak: Sequence[str]
    trace: Path | None
    ids: int | None
    skew: float | None
    took: str | None
    spread: float | None
    computing: float | None
    tenants: int | None
    tenant_skew: float | None
    seed: int
    seconds: float


class Inputs(NamedTuple):
    """What is simulated. `says`: where it is from; `guesses`: what nobody measured or said. `draw`: another trace."""

    trace: Trace
    times: Times
    base: Choice
    present: str | None
    says: str
    guesses: Sequence[str]
    draw: Callable[[int], Trace] | None


def inputs_of(load: LoadWords, queue: str | None, app: str | None, base: Choice) -> Inputs:
    """All that is needed for the simulation. Raises ConfigError, and LowkiqError where a queue is asked for."""
    ways = [load.rate is not None, load.trace is not None, queue is not None]
    if load.peak and load.rate is None:
        raise ConfigError("--peak needs --rate, the jobs outside of the peaks: give such as --rate 10/s.")
    if load.tenant_skew is not None and load.tenants is None:
        raise ConfigError("--tenant-skew needs --tenants, how many there are: give such as --tenants 20.")
    if sum(ways) != 1:
        raise ConfigError("Give one of QUEUE, --rate and --trace: a queue's own history, rates, or a file.")
    try:
        if queue is not None:
            inputs = _of_queue(load, queue_of(app_of(app), queue), base)
        else:
            inputs = _of_file(load, load.trace, base) if load.trace else _of_rates(load, base)
    except (BadTrace, BadTimes) as error:
        raise ConfigError(f"{error}.") from error
    if left_out := inputs.trace.left_out:
        part = f"the busiest {duration(inputs.trace.seconds)}, as --seconds has no time for {left_out:,} jobs more"
        return inputs._replace(guesses=[f"pushes: {part}", *inputs.guesses])
    return inputs


def _of_rates(load: LoadWords, base: Choice) -> Inputs:
    rates = [per_second(load.rate or "", may_be_0=bool(load.peak))] * DAY
    for number, peak in enumerate(load.peak, 1):
        rate, _, length = peak.partition(":")
        try:
            minutes = math.ceil(seconds_of(length) / MINUTE)
        except ValueError:
            minutes = 0
        if not minutes or length.strip()[-1].isdigit():
            raise ConfigError(f"--peak {peak} is refused: give a rate and a length with its unit, such as 70/s:15m.")
        begin = DAY * number // (len(load.peak) + 1)
        end = begin + max(1, minutes)
        if end > DAY:
            raise ConfigError(
                f"--peak {peak} is refused: it begins at {begin // 60:02}:{begin % 60:02}, and the day ends."
            )
        rates[begin:end] = [per_second(rate)] * (end - begin)
    guesses = _guesses(load)
    ids = IDS if load.ids is None else load.ids

    def draw(seed: int) -> Trace:
        return Trace.of_rates(rates, **_drawn(load, seed))

    trace = draw(load.seed)
    length = duration(trace.seconds) if trace.left_out else "a day"
    says = (
        f"{_counted(trace.jobs, 'job')} in {length} ({trace.jobs / trace.seconds:.3g}/s in the mean{_busiest(trace)}), "
        f"{'~' if load.ids is None else ''}{_counted(ids, 'id')}{_of_tenants(load.tenants)}"
    )
    return Inputs(trace, _times(load, guesses), base, None, says, guesses, draw)


def _of_file(load: LoadWords, path: Path, base: Choice) -> Inputs:
    trace = Trace.read_csv(path, **_drawn(load, load.seed))
    guesses = _guesses(load) if trace.is_drawn else []
    mark = "~" if trace.is_drawn and load.ids is None else ""
    says = (
        f"{_counted(trace.jobs, 'job')} in {duration(trace.seconds)}{_busiest(trace)}, "
        f"{mark}{_counted(len(trace.hashes), 'id')}{_of_tenants(load.tenants)}"
    )
    return Inputs(trace, _times(load, guesses), base, None, says, guesses, None)


def _drawn(load: LoadWords, seed: int) -> Drawn:
    """What the command line says of it."""
    ways = {name: getattr(load, name) for name in ("ids", "skew", "tenants", "tenant_skew")}
    ways |= {"seed": seed, "most": load.seconds / 2 * _DRAWN_A_SECOND}
    return cast("Drawn", {name: value for name, value in ways.items() if value is not None})


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _of_tenants(count: int | None) -> str:
    return "" if count is None else f" of {count:,} tenants"


def _busiest(trace: Trace) -> str:
    most = max(trace.per_step(MINUTE), default=0)
    return f", {most / MINUTE:.3g}/s in the busiest minute"


def _guesses(load: LoadWords, *, has_skew: bool = False) -> list[str]:
    """What is assumed of the ids."""
    guesses = []
    if load.ids is None:
        guesses.append(f"ids: {IDS:,}, as nothing tells how many there are (--ids)")
    if load.skew is None and not has_skew:
        guesses.append("ids: pushed alike often, as no skew was recorded (--skew, or LOWKIQ_SKEW=1)")
    return guesses


def _times(load: LoadWords, guesses: list[str]) -> Times:
    """Of the command line; what it leaves out is a guess."""
    if load.took is None:
        guesses.append(f"took: {duration(_TOOK)} a call, as nothing tells how long the handler takes (--took)")
    if load.computing is None:
        guesses.append("computing: none, the handler waits for something else (--computing)")
    return Times.parse(
        f"{_TOOK}s" if load.took is None else load.took, spread=load.spread or 0.0, computing=load.computing or 0.0
    )


def _of_queue(load: LoadWords, queue: NamedQueue, base: Choice) -> Inputs:
    """Of the queue's own history: its rates for three days, and its hours."""
    hours = queue.operate.hours()
    present = _overview(queue, "72h")
    history = present.history
    lately = _overview(queue, "6h").history.series
    last_hour = int(HOUR // lately.step)
    if not hours and not any((*lately.ended[:-last_hour], *lately.arrived[:-last_hour])):
        # A point of the longer spans is many minutes, and the queue is younger.
        history = _overview(queue, "1h").history
        lately = history.series
    rates, begin = _rates(history, hours)
    begin, counted_since = _with_arrivals(rates, begin, lately)
    shares = mean_skew(hours) if load.skew is None else None
    guesses: list[str] = _guesses(load, has_skew=shares is not None)
    ends_at = lately.began_at + len(lately.ended) * lately.step
    if present.now.lag > MINUTE and ends_at - present.now.lag < counted_since - lately.step:
        due = present.now.due
        waits = "1 id that waits now is left out" if due == 1 else f"{due:,} ids that wait now are left out"
        guesses.append(
            f"pushes: as many as ended, so that {waits}, and the queue is later than this (--rate, and no QUEUE)"
        )
    times = _measured(load, history, hours, guesses)
    base = _present(queue, base, guesses)
    load, base = _with_tenants(load, base, queue, guesses)
    if not any(rates):
        raise ConfigError(f"The queue {queue.name!r} has done nothing in 72 hours: give --rate, or --trace.")

    def draw(seed: int) -> Trace:
        return Trace.of_rates(rates, shares=shares or (), starts_at=begin, **_drawn(load, seed))

    trace = draw(load.seed)
    jobs = _counted(trace.jobs, "job")
    says = f"{queue.name}: {jobs} in {duration(trace.seconds)} from {utc(begin)} on{_busiest(trace)}"
    if shares:
        says += f", {shares[0]:.0%} of them under one id"
    return Inputs(trace, times, base, _compute(queue), says + _of_tenants(load.tenants), guesses, draw)


def _with_tenants(load: LoadWords, base: Choice, queue: NamedQueue, guesses: list[str]) -> tuple[LoadWords, Choice]:
    """As many tenants as the queue remembers, if its worker has any and the command line tells no number of them."""
    if base.tenants == "none" or load.tenants is not None:
        return load, base
    count = len(queue.operate.tenants(MOST_TENANTS).tenants)
    if count < _FEWEST_TENANTS:
        guesses.append("tenants: they take no turns, as the queue remembers none (--tenants)")
        return load, msgspec.structs.replace(base, tenants="none")
    guesses.append(f"tenants: {count:,}, alike often, as many as the queue remembers (--tenants, --tenant-skew)")
    return load._replace(tenants=count), base


def _with_arrivals(rates: list[float], begin: float, series: Series) -> tuple[float, float]:
    """Put pushes in place of what ended, where they were counted: of a late queue more came.

    The begin of the rates, and since when there is no gap (infinite: nothing was counted).
    """
    counts = [(series.began_at + place * series.step, count) for place, count in enumerate(series.arrived)]
    first = next((at for at, count in counts if count), begin)
    if not rates:
        begin = first
    elif before := max(0, math.ceil((begin - first) / MINUTE)):
        rates[:0] = [0.0] * before
        begin -= before * MINUTE
    since, minutes = math.inf, int(series.step // MINUTE)
    for at, count in counts:
        place = round((at - begin) / MINUTE)
        if count is None or place < 0:
            since = since if count is not None else math.inf
            continue
        since = min(since, at)
        rates += [0.0] * (place + minutes - len(rates))
        rates[place : place + minutes] = [count / series.step] * minutes
    return begin, since


def _overview(queue: NamedQueue, span: Span) -> QueueOverview:
    with queue.app.operate.overview(span, queue.worker) as overview:
        return next(one for one in overview.queues if one.name == queue.name)


def _rates(history: QueueHistory, hours: Sequence[HourDigest]) -> tuple[list[float], float]:
    """Payloads a second in each minute since the first that had any, and the begin: what ended stands for pushes.

    The busiest minute of an hour is known, and the rest of its hour has the rest.
    """
    series = history.series
    first = next((place for place, ended in enumerate(series.ended) if ended), None)
    ids = sum(hour.ids for hour in hours)
    each = sum(hour.payloads for hour in hours) / ids if ids else 1.0
    minutes = int(series.step // MINUTE)
    if first is None:
        return _rates_of_hours(hours[-_DAYS_OF_HOURS:], each)
    begin = series.began_at + first * series.step
    counts = [ended / minutes for ended in series.ended[first:] for _ in range(minutes)]
    for hour in hours:
        start = int((hour.at - begin) // MINUTE)
        place = max(range(max(0, start), start + 60), key=lambda at: counts[at] if at < len(counts) else 0.0, default=0)
        if start >= 0 and place < len(counts) and hour.busiest > counts[place]:
            # The minutes of the same point have so many less.
            first_of_point = place - place % minutes
            left = counts[place] * minutes - hour.busiest
            rest = max(0.0, left / max(1, minutes - 1))
            counts[first_of_point : first_of_point + minutes] = [rest] * minutes
            counts[place] = hour.busiest
    return [count * max(1.0, each) / MINUTE for count in counts], begin


def _rates_of_hours(hours: Sequence[HourDigest], each: float) -> tuple[list[float], float]:
    """The same of the hours alone, where no minutes are kept any more."""
    if not hours:
        return [], 0.0
    rates = [0.0] * (60 * int((hours[-1].at - hours[0].at) // HOUR + 1))
    for hour in hours:
        start = int((hour.at - hours[0].at) // MINUTE)
        rest = max(0.0, hour.ids - hour.busiest) / 59
        rates[start : start + 60] = [count * max(1.0, each) / MINUTE for count in (hour.busiest, *[rest] * 59)]
    return rates, hours[0].at


def _measured(load: LoadWords, history: QueueHistory, hours: Sequence[HourDigest], guesses: list[str]) -> Times:
    """Of the command line, else of the hours: what a call and each id of it take, fitted; else of the last hour."""
    busy, calls, computing = (sum(getattr(hour, name) for hour in hours) for name in ("busy", "calls", "computing"))
    share = min(1.0, computing / busy) if busy else None
    spread = load.spread
    if spread is None and history.took:
        spread = spread_of(history.took.p50, history.took.p95)
    if load.took is not None or (calls < _FEWEST_CALLS and history.took is None):
        if load.took is None:
            raise ConfigError("No call of the handler was measured: give --took.")
        computing = load.computing if load.computing is not None else share or 0.0
        return Times.parse(load.took, spread=spread or 0.0, computing=computing)
    computing = load.computing if load.computing is not None else share
    if computing is None:
        guesses.append("computing: none, the handler waits for something else (--computing)")
    if calls < _FEWEST_CALLS:
        fixed, each = (history.took.p50 if history.took else _TOOK), 0.0
        guesses.append("took: the median call of the last hour, as no hours are kept yet (--took)")
    else:
        fixed, each = _fitted(hours)
    return Times(fixed=fixed, each_id=each, spread=round(spread or 0.0, 2), computing=computing or 0.0)


def _fitted(hours: Sequence[HourDigest]) -> tuple[float, float]:
    """Seconds of a call and of each id of it, by least squares over the hours; all of a call where fills are alike."""
    points = [
        (hour.ids / hour.calls, hour.busy / hour.calls, hour.calls) for hour in hours if hour.calls >= _FEWEST_CALLS
    ]
    total = sum(weight for *_, weight in points)
    if not total:
        return sum(hour.busy for hour in hours) / max(1, sum(hour.calls for hour in hours)), 0.0
    fill = sum(x * weight for x, _, weight in points) / total
    took = sum(y * weight for _, y, weight in points) / total
    if max(x for x, *_ in points) < _LIKE * min(x for x, *_ in points):
        return took, 0.0
    square = sum(weight * (x - fill) ** 2 for x, _, weight in points)
    each = sum(weight * (x - fill) * (y - took) for x, y, weight in points) / square
    each = min(max(0.0, each), took / fill)
    return max(0.0, took - each * fill), each


def _present(queue: NamedQueue, base: Choice, guesses: list[str]) -> Choice:
    """The choice as the queue and its worker are, but for limits of the command line."""
    worker, limits = queue.worker, queue.operate.limits.explain()
    changes: dict[str, Any] = {"shards": len(queue.shards.layout.live)}
    changes["max_running"] = base.max_running or limits.max_running or 0
    if limits.rate and not base.rate:
        changes |= {"rate": limits.rate.ids / limits.rate.per, "rate_per": limits.rate.per}
    if worker is not None:
        changes |= {"batch": at_most(worker.batch_size), "concurrency": at_most(worker.concurrency)}
        changes |= {name: getattr(worker, name) for name in ("max_retry_count", "payloads_at_once")}
        changes["tenants"] = worker.tenants or "none"
        names = (*_UNPLAYED, "retry_in") if base.failures or base.breakdowns else _UNPLAYED
        if left := [name for name in names if getattr(worker, name) != getattr(Worker, name)]:
            guesses.append(f"{', '.join(left)}: left out, as the simulation does not play it")
    return msgspec.structs.replace(base, **changes)


def _compute(queue: NamedQueue) -> str | None:
    """What drains the queue now, as far as its processes tell."""
    processes = [one for one in queue.app.operate.processes() if not one.is_gone]
    daemons = [one for one in processes if one.kind == "daemon"]
    if daemons:
        return f"daemon:{len(daemons)}x{max(1, *(one.threads for one in daemons))}"
    return "minute" if processes else None

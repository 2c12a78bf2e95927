"""The advice: what this month costs, which way would cost less, the changes worth most, and what is not known."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from lowkiq_lambda.operate.presentation.formatting import duration
from lowkiq_lambda.stack.advice.loads import MonthLoad
from lowkiq_lambda.stack.advice.ways import Options, WayName, WayToRun, ways_of
from lowkiq_lambda.stack.costs.bills import MEGABYTES, container_bill, dollars, minute_bill, shards_bill
from lowkiq_lambda.stack.costs.month import SECONDS
from lowkiq_lambda.views.lateness import mean_skew

NOT_WORTH: Final = 5.0
"""Dollars a month, below which a change costs more of somebody's time than it saves."""
WORTH: Final = 0.2
"""The share of the month that a change saves, above which it is worth its risk."""
CHANGES: Final = 3
SIDE_BY_SIDE: Final = 10
"""Calls at once that are tried."""
WAITS: Final = 0.3
"""The share of computing in calls, below which more of them at once cost little."""
_LATER: Final = 1.05
"""From there on a lag is another one."""
MANAGED_FROM: Final = 8.0
"""Open invocations in the mean, from which instances of your own may cost less."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Something to change, the dollars that it saves a month, and what it risks. `p95`: seconds, after it."""

    what: str
    saves: float
    risks: str
    p95: float | None = None

    @property
    def is_worth_it(self) -> bool:
        """Whether it saves more than the time that it takes is worth."""
        return self.saves >= NOT_WORTH


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars are those of a month, without Redis. `now`: the way that is taken for the present one.

    `so_far`: those of this month's hours that are known. `is_rough`: numbers are by history, and marked by a `~`.
    `open_invocations`: how many there are in the mean; `breaks_even`: with how many of them a task costs as much.
    """

    unknown: tuple[str, ...]
    now: WayName
    jobs: int
    hours: float
    so_far: float
    month: float
    ways: tuple[WayToRun, ...]
    changes: tuple[Change, ...]
    open_invocations: float
    breaks_even: float
    break_even: str
    managed: str = ""
    is_rough: bool = False

    @property
    def is_due(self) -> bool:
        """Whether a change saves more than a fifth of the month, and five dollars."""
        return any(change.saves > max(NOT_WORTH, WORTH * self.month) for change in self.changes)


def advise(
    load: MonthLoad, options: Options, now: WayName, guessed: Sequence[str] = (), target: float | None = None
) -> Advice:
    """The advice for a load; `guessed`: what the caller has guessed; `target`: seconds of lag that have to be kept."""
    ways = ways_of(load, options)
    present = next(way for way in ways if way.kind == now)
    open_invocations, breaks_even, line = _break_even(load, options)
    changes = sorted(_changes(load, options, present, ways), key=lambda change: -change.saves)
    kept = [each for each in changes if target is None or each.p95 is None or each.p95 <= target]
    return Advice(
        unknown=(*guessed, *_unknown(load)),
        now=now,
        jobs=load.jobs,
        hours=load.hours,
        so_far=present.dollars * load.so_far,
        month=present.dollars,
        ways=tuple(ways),
        changes=tuple(each for each in kept if each.saves > 0)[:CHANGES],
        open_invocations=open_invocations,
        breaks_even=breaks_even,
        break_even=line,
        managed=_managed(load, open_invocations),
        is_rough=load.is_rough,
    )


def _unknown(load: MonthLoad) -> Iterator[str]:
    if not load.hours:
        yield "no hour is known: let the app run, with LOWKIQ_HISTORY_DAYS=35 so that its hours are kept"
        return
    if load.is_rough:
        yield "~ times of handlers are their mean since the queue began: hours are kept with LOWKIQ_HISTORY_DAYS=35"
    if load.hours < 7 * 24:
        hours = "an hour or less is" if load.hours <= 1 else f"{load.hours:.0f} hours are"
        yield f"~ {hours} known: a weekly peak may be missing"
    if any(mean_skew(queue.hours) is None for queue in load.queues):
        yield "ids: pushed alike often, as no skew is recorded; one hot id is later than this"
    yield "queues: each is played alone, though all share the threads"
    yield "logs, metrics, alarms and memory: those of the template; Redis, transfer and taxes are not in it"


def _break_even(load: MonthLoad, options: Options) -> tuple[float, float, str]:
    month = load.month(memory=options.memory)
    bill = minute_bill(month)
    gigabytes = month.memory / MEGABYTES
    seconds = bill["Lambda, time"]["lambda_gigabyte_seconds"] / gigabytes
    each = options.prices["lambda_gigabyte_seconds"].of(SECONDS * gigabytes, free_tier=False)
    fixed = {row: amounts for row, amounts in bill.items() if row in {"Lambda, requests", "EventBridge Scheduler"}}
    beside = sum(dollars(fixed, options.prices).values())
    one = sum(dollars(container_bill(replace(month, jobs=0)), options.prices).values())
    breaks_even, mark = (one - beside) / each, "~" if load.is_rough else ""
    mean = seconds / SECONDS
    line = (
        f"{mark}{mean:.2f} invocations are open in the mean. Functions of {month.memory} MB cost ${each:.2f} for each, "
        f"and ${beside:.2f} of requests and schedules. "
        f"The smallest task costs ${one:.2f}, less than functions from {breaks_even:.1f} open ones on."
    )
    return mean, breaks_even, line


def _changes(load: MonthLoad, options: Options, present: WayToRun, ways: Sequence[WayToRun]) -> Iterator[Change]:
    for way in ways:
        if way.kind != present.kind:
            risks = _risk(present, way)
            yield Change(what=f"move to {way.name}", saves=present.dollars - way.dollars, risks=risks, p95=way.p95)
    if not present.is_function:
        return
    month = load.month(memory=options.memory)
    computing = load.job_cpu / load.job_seconds if load.job_seconds else 1.0
    if month.concurrency < SIDE_BY_SIDE and computing < WAITS:
        faster = load.month(memory=options.memory, concurrency=SIDE_BY_SIDE)
        before, after = (
            options.prices["lambda_gigabyte_seconds"].of(one.running * one.memory / MEGABYTES, free_tier=False)
            for one in (month, faster)
        )
        yield Change(
            what=f"concurrency = {SIDE_BY_SIDE}, as calls compute for {computing:.0%} of their time",
            saves=before - after,
            risks="the service behind the handlers gets up to ten times as many calls at once",
        )
    bill = minute_bill if present.kind == "minute" else shards_bill
    without = sum(dollars(bill(replace(month, metrics="none")), options.prices).values())
    yield Change(
        what="Metrics=none in the template",
        saves=present.dollars - without,
        risks="two alarms less: those that watch how long ids wait, and how many are dead",
        p95=present.p95,
    )


def _risk(present: WayToRun, way: WayToRun) -> str:
    lag = ""
    if present.p95 is not None and way.p95 is not None and way.p95 > _LATER * present.p95:
        lag = f"ids are later: p95 {duration(way.p95)} and not {duration(present.p95)}; "
    if way.is_function and not present.is_function:
        return f"{lag}a handler may run for 15 minutes at most, and starts are cold"
    if not way.is_function and present.is_function:
        return f"{lag}a container to deploy and to watch; while it is replaced, shards wait for up to a lease"
    return f"{lag}none beside that" if lag else "none that is known"


def _managed(load: MonthLoad, open_invocations: float) -> str:
    if open_invocations <= MANAGED_FROM or not load.is_steady:
        return ""
    return (
        "The load is steady, and more than eight invocations are open: Lambda Managed Instances, or instances of your "
        "own with the daemon, may cost less: `lowkiq stack costs --instance-hour` takes their price. AWS begins three."
    )

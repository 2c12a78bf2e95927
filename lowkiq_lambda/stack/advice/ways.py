"""The ways to run an app: what each costs a month, and how late ids are, at the 95th percentile."""

from collections.abc import Callable
from dataclasses import replace
from math import ceil
from typing import Final, Literal, TypeAlias

import msgspec

from lowkiq_lambda.simulate.choice import Choice, Compute
from lowkiq_lambda.simulate.running import simulate
from lowkiq_lambda.simulate.trace import Trace
from lowkiq_lambda.stack.advice.loads import MonthLoad, QueueLoad
from lowkiq_lambda.stack.costs.bills import (
    BUSY_AT_MOST,
    TASK_THREADS,
    TASK_VCPU,
    Bill,
    container_bill,
    dollars,
    minute_bill,
    shards_bill,
    tasks,
)
from lowkiq_lambda.stack.costs.month import SECONDS, Month
from lowkiq_lambda.stack.costs.prices import Prices
from lowkiq_lambda.views.lateness import mean_skew

WayName: TypeAlias = Literal["minute", "shards", "task", "daemon"]
NAMES: Final[dict[WayName, str]] = {
    "minute": "functions on one schedule",
    "shards": "schedules of shards",
    "task": "the smallest Fargate task",
    "daemon": "a daemon of {threads} threads",
}
_COMPUTES: Final[dict[WayName, Compute]] = {
    "minute": "minute",
    "shards": "shards",
    "task": "daemon",
    "daemon": "daemon",
}
MOST_IDS: Final = 1_000
"""In a batch and all batches at once, for the simulation."""


class WayToRun(msgspec.Struct, frozen=True, kw_only=True):
    """A way to run the app. `dollars` a month; `rows`: what they are for; `p95`: seconds, of the worst queue."""

    kind: WayName
    name: str
    dollars: float
    rows: dict[str, float]
    p95: float | None
    threads: int

    @property
    def is_function(self) -> bool:
        """Whether invocations drain."""
        return self.kind in {"minute", "shards"}


class Options(msgspec.Struct, frozen=True):
    """Of the functions, and of all ways: megabytes, threads of an invocation or a daemon, prices, and the seed."""

    memory: int
    threads: int
    prices: Prices
    seed: int = 1


def ways_of(load: MonthLoad, options: Options) -> list[WayToRun]:
    """All of them, in the order of their names."""
    month = load.month(memory=options.memory)
    return [
        _way("minute", load, options, minute_bill, month, options.threads),
        _way("shards", load, options, shards_bill, month, options.threads),
        _way("task", load, options, container_bill, month, int(TASK_THREADS) * tasks(month)),
        _way("daemon", load, options, _one_daemon, month, threads_for(month)),
    ]


def threads_for(month: Month) -> int:
    """Threads of a daemon that are busy for half of the time, at most; twice those of the smallest task, at least."""
    needed = ceil(month.work / (SECONDS * BUSY_AT_MOST * month.concurrency))
    return max(2 * int(TASK_THREADS), needed)


def _one_daemon(month: Month) -> Bill:
    """Tasks as far as the work needs processors: threads cost nothing."""
    processors = ceil(month.computing / (SECONDS * BUSY_AT_MOST * TASK_VCPU))
    bill = container_bill(replace(month, job_seconds=0.0))
    return {
        row: {name: amount * max(1, processors) for name, amount in amounts.items()} for row, amounts in bill.items()
    }


def _way(  # noqa: PLR0913, PLR0917 - what makes a way
    kind: WayName,
    load: MonthLoad,
    options: Options,
    bill: Callable[[Month], Bill],
    month: Month,
    threads: int,
) -> WayToRun:
    rows = {row: value for row, value in dollars(bill(month), options.prices).items() if value}
    waits = [_p95(queue, kind, threads, options) for queue in load.queues if queue.busy and queue.ids]
    return WayToRun(
        kind=kind,
        name=NAMES[kind].format(threads=threads),
        dollars=sum(rows.values()),
        rows=rows,
        p95=max(waits, default=None),
        threads=threads,
    )


def _p95(queue: QueueLoad, kind: WayName, threads: int, options: Options) -> float:
    """Of hours of the queue, as if it had all threads."""
    rates = queue.rates()
    ids, shares = max(1_000, min(100_000, queue.ids)), mean_skew(queue.hours) or ()
    trace = Trace.of_rates(rates, ids=ids, shares=shares, seed=options.seed)
    choice = Choice(
        shards=queue.shards,
        batch=min(queue.batch, MOST_IDS // queue.concurrency),
        concurrency=queue.concurrency,
        compute=_COMPUTES[kind],
        threads=threads,
        memory=options.memory,
        cores=max(0.25, threads / TASK_THREADS * TASK_VCPU),
    )
    return simulate(trace, queue.times, choice, seed=options.seed).p95

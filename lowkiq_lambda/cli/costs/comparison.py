"""The bills side by side, and from where on which one is the cheapest."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from lowkiq_lambda.cli.tables import markdown, whole
from lowkiq_lambda.stack.costs.bills import MEGABYTES, REDIS, Bill, dollars
from lowkiq_lambda.stack.costs.month import Month, Redis
from lowkiq_lambda.stack.costs.of_lambda import minute_bill, shards_bill
from lowkiq_lambda.stack.costs.of_others import bus_bill, container_bill, sqs_bill
from lowkiq_lambda.stack.costs.prices import Prices

Ways: TypeAlias = dict[str, Callable[[Month], Bill]]

WAYS: Final[Ways] = {
    "Lambda, schedules of shards": shards_bill,
    "Lambda, one schedule": minute_bill,
    "a container that idles": container_bill,
    "SQS FIFO and Lambda": sqs_bill,
    "EventBridge FIFO and Lambda": bus_bill,
}
ROWS: Final = (
    "Lambda, requests",
    "Lambda, time",
    "EventBridge Scheduler",
    "EventBridge: events",
    "SQS: send, receive, delete, poll",
    "Fargate",
    "Public IPv4 address",
    "API Gateway, for the dashboard",
    "Logs",
    "Metrics and alarms",
    "Secrets and keys",
    "Way out of the VPC",
)
CONCURRENCY: Final = (1, 10, 50)
"""What is told beside the month's own."""
MOST_JOBS: Final = 10**12
MOST_SHARDS: Final = 10_000
"""So far is looked for the point from which a container is cheaper."""

_REDIS_ROWS: Final[dict[Redis, str]] = {
    "serverless": "Redis: ElastiCache Serverless",
    "node": "Redis: a cache.t4g.micro",
    "none": "Redis that is there already",
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a month costs each way, at these prices, with or without the free tier."""

    month: Month
    prices: Prices
    free_tier: bool = False

    def table(self) -> str:
        """A column for each way, a row for each thing to pay for, in dollars; every cell is rounded for itself."""
        bills = [self._dollars(way, self.month) for way in WAYS.values()]
        totals = [sum(bill.values()) for bill in bills]
        redis = [bill.get(REDIS, 0.0) for bill in bills]
        rows = [row for row in ROWS if any(row in bill for bill in bills)]
        lines = [(row, *(_cell(bill.get(row)) for bill in bills)) for row in rows]
        return markdown(
            (f"{amount(self.month.jobs, 'job')} a month, {amount(self.month.shards, 'shard')}", *WAYS),
            [
                *lines,
                ("**without Redis**", *(f"**{_cell(all_ - its)}**" for all_, its in zip(totals, redis, strict=True))),
                (_REDIS_ROWS[self.month.redis], *(_cell(bill.get(REDIS)) for bill in bills)),
                ("**total**", *(f"**{_cell(total)}**" for total in totals)),
            ],
        )

    def verdict(self) -> str:
        """Which is the cheapest, and from how much work, and how many shards with schedules, a container costs less."""
        totals = {name: sum(self._dollars(way, self.month).values()) for name, way in WAYS.items()}
        cheapest = min(totals, key=totals.__getitem__)
        jobs = first(
            lambda number: self._container_is_cheaper(minute_bill, replace(self.month, jobs=number)), MOST_JOBS
        )
        shards = first(
            lambda number: self._container_is_cheaper(shards_bill, replace(self.month, shards=number)), MOST_SHARDS
        )
        return (
            f"The cheapest is {cheapest}, with {_cell(totals[cheapest])}.\n"
            f"A container costs less than Lambda with schedules of shards {_from(shards, 'shard')}, and than one "
            f"schedule {_from(jobs, 'job')}."
            f"{self._side_by_side()}"
        )

    def _side_by_side(self) -> str:
        """What the handlers' time costs as they run one by one, and side by side."""
        if not self.month.work:
            return ""
        told = ", ".join(f"${self._time(number):,.3f} with concurrency {number}" for number in CONCURRENCY)
        return f"\nThe handlers' time on Lambda costs {told}."

    def _time(self, concurrency: int) -> float:
        gigabytes = self.month.memory / MEGABYTES
        seconds = replace(self.month, concurrency=concurrency).running
        return self.prices["lambda_gigabyte_seconds"].of(seconds * gigabytes, free_tier=self.free_tier)

    def _container_is_cheaper(self, way: Callable[[Month], Bill], month: Month) -> bool:
        container, other = (sum(self._dollars(one, month).values()) for one in (container_bill, way))
        return container < other

    def _dollars(self, way: Callable[[Month], Bill], month: Month) -> dict[str, float]:
        return dollars(way(month), self.prices, free_tier=self.free_tier)


def price_table(prices: Prices) -> str:
    """A row for each price, with its source and date."""
    return markdown(
        ("price", "dollars", "for", "unit", "free a month", "source", "read"),
        (
            (name, _exact(one.dollars), whole(one.per), one.unit, whole(one.free), one.source, one.read)
            for name, one in prices.items()
        ),
    )


def first(holds: Callable[[int], bool], most: int) -> int | None:
    """The smallest number from 1 to `most` for which it holds, if it holds for all larger ones too; None for none."""
    if not holds(most):
        return None
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def amount(number: float, noun: str) -> str:
    """`5 shards`, `1 job`."""
    return f"{whole(number)} {noun}{'' if number == 1 else 's'}"


def _from(number: int | None, noun: str) -> str:
    """Two digits are as exact as the prices are."""
    return f"for no number of {noun}s" if number is None else f"from {amount(float(f'{number:.1e}'), noun)} on"


def _exact(value: float) -> str:
    return f"{value:.10f}".rstrip("0").rstrip(".")


def _cell(value: float | None) -> str:
    return "" if value is None else f"${value:,.2f}"

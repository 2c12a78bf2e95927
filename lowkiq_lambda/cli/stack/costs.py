"""`lowkiq stack costs`: the bills of a month side by side, and from where on which one is the cheapest."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final, TypeAlias

from cyclopts import Parameter

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.codes import DONE
from lowkiq_lambda.cli.output import markdown, whole
from lowkiq_lambda.cli.parts import command_app, finite_number, flag, number, whole_number
from lowkiq_lambda.stack.costs.bills import (
    INSTANCES,
    MEGABYTES,
    REDIS,
    Bill,
    bus_bill,
    container_bill,
    dollars,
    instances_bill,
    minute_bill,
    shards_bill,
    sqs_bill,
)
from lowkiq_lambda.stack.costs.month import MetricsKind, Month, Redis, WayOut
from lowkiq_lambda.stack.costs.prices import BadPrice, Prices, changed, changed_by_file, load

_USUAL: Final = Month()
_MOST: Final = 10**12
_MINUTES_OF_A_MONTH: Final = 44_640

_HELP: Final = """
Estimate what a month of jobs costs on AWS, in five ways, as a markdown table.

Lambda: the stack of template.yaml with a schedule for each shard, which is its default, or with one for all, and with \
its alarms, metrics and dashboard. A container that idles: the daemon in the smallest task of Fargate, day and night. \
SQS FIFO and EventBridge FIFO: the same handler without this library, the id as message group or event group. A cell \
is empty if the way does not need the row.

Not in it: taxes, transfer of data, other services that the handler calls, the programs that push, a load balancer in \
front of a container's dashboard. An amount without an option is assumed; lowkiq_lambda/stack/costs/ has each with its \
reason.
"""
_EPILOGUE: Final = """
EXIT CODES
  0  The table is printed.
  2  The command line or the prices cannot work.

EXAMPLES
  An idle app:
    lowkiq stack costs --jobs 0
  Ten million jobs of 50 ms in 24 shards, on an existing Redis:
    lowkiq stack costs --jobs 10_000_000 --job-seconds 0.05 --shards 24 \\
      --redis none
  A million jobs that wait 50 ms for something else, 20 at a time:
    lowkiq stack costs --job-seconds 0.05 --batch 1 --concurrency 20
  An idle app with metrics of each queue, a secret, and a key for it:
    lowkiq stack costs --jobs 0 --metrics queues --secrets 1 --kms-keys 1
  Another region: one price, or a file with those that differ
  ([metrics] dollars = 0.33 and so on):
    lowkiq stack costs --price lambda_requests=0.23
    lowkiq stack costs --prices frankfurt.toml
  On Lambda Managed Instances too, of a kind that costs $0.10 an hour:
    lowkiq stack costs --job-seconds 0.05 --instance-hour 0.10
  Every price, with its source and date:
    lowkiq stack costs --list-prices
"""

Ways: TypeAlias = dict[str, Callable[[Month], Bill]]

WAYS: Final[Ways] = {
    "Lambda, schedules of shards": shards_bill,
    "Lambda, one schedule": minute_bill,
    "a container that idles": container_bill,
    "SQS FIFO and Lambda": sqs_bill,
    "EventBridge FIFO and Lambda": bus_bill,
}
ON_INSTANCES: Final[Ways] = {"Lambda Managed Instances": instances_bill}
"""With a price of the instance, which differs by its kind and has no default."""
ROWS: Final = (
    "Lambda, requests",
    "Lambda, time",
    "EventBridge Scheduler",
    "EventBridge: events",
    "SQS: send, receive, delete, poll",
    "Fargate",
    INSTANCES,
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


def _count(text: str, least: int = 1, most: int = _MOST) -> Parameter:
    return Parameter(help=text, converter=whole_number(least, most))


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CostOptions:
    """The month, and the prices that differ."""

    jobs: Annotated[int, _count("Jobs a month.", least=0)] = _USUAL.jobs
    job_seconds: Annotated[
        float,
        Parameter(help="Seconds that the handler takes for a job, most of them waiting.", converter=number(0, _MOST)),
    ] = _USUAL.job_seconds
    job_cpu: Annotated[
        float,
        Parameter(
            help="Seconds of a processor in them, which limits handlers that run side by side.",
            converter=number(0, _MOST),
        ),
    ] = _USUAL.job_cpu
    failures: Annotated[int, _count("Failures of handlers a month, each a line of log.", least=0)] = _USUAL.failures
    concurrency: Annotated[
        int, _count("Calls of the handler that run side by side in a shard; SQS hands over one at a time.", most=1_000)
    ] = _USUAL.concurrency
    batch: Annotated[int, _count("Ids in a call of the handler; messages in a request to SQS, there at most 10.")] = (
        _USUAL.batch
    )
    shards: Annotated[int, _count("Shards; in the first column each has a schedule.", most=10_000)] = _USUAL.shards
    queues: Annotated[int, _count("Queues.", most=10_000)] = _USUAL.queues
    queue_functions: Annotated[
        int, _count("Functions that drain some queues alone, each with a schedule a minute.", least=0, most=1_000)
    ] = _USUAL.queue_functions
    schedule_minutes: Annotated[
        int, _count("Minutes between visits of a shard with a schedule of its own.", most=_MINUTES_OF_A_MONTH)
    ] = _USUAL.schedule_minutes
    memory: Annotated[int, _count("Megabytes of a function.", least=128, most=10_240)] = _USUAL.memory
    metrics: Annotated[
        MetricsKind, Parameter(help="The template's parameter: none, two of the app, or a dozen of each queue.")
    ] = _USUAL.metrics
    dashboard_hours: Annotated[
        float, Parameter(help="Hours a month for which a page of the dashboard is open.", converter=number(0, _MOST))
    ] = _USUAL.dashboard_hours
    secrets: Annotated[int, _count("Secrets in Secrets Manager.", least=0, most=1_000)] = _USUAL.secrets
    kms_keys: Annotated[int, _count("KMS keys of your own.", least=0, most=1_000)] = _USUAL.kms_keys
    way_out: Annotated[
        WayOut, Parameter(help="How functions in a VPC reach AWS's APIs: IPv6 costs nothing by the hour.")
    ] = _USUAL.way_out
    endpoints: Annotated[int, _count("Interface endpoints, if they are the way out.", most=1_000)] = _USUAL.endpoints
    redis: Annotated[
        Redis, Parameter(help="ElastiCache Serverless, its smallest node, or one that is paid for already.")
    ] = _USUAL.redis
    instance_hour: Annotated[
        float,
        Parameter(
            help="Dollars for an hour of an instance: adds Lambda Managed Instances. It is yours: no price was read.",
            converter=number(0, _MOST),
        ),
    ] = _USUAL.instance_hour
    instances: Annotated[int, _count("Lambda Managed Instances that run all month; AWS begins three.", most=10_000)] = (
        _USUAL.instances
    )
    free_tier: Annotated[bool, flag("Subtract the permanent free tier of an account.")] = False
    price: Annotated[
        tuple[str, ...],
        Parameter(
            negative="",
            show_default=False,
            help="NAME=VALUE: another price in dollars, for the same number of units; may be repeated.",
        ),
    ] = ()
    prices: Annotated[
        Path | None, Parameter(help="A file like prices.toml, with the prices and fields that differ.")
    ] = None
    list_prices: Annotated[bool, flag("Print all prices instead of the table.")] = False


command: Final = command_app("costs", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq stack costs [OPTIONS]")


@command.default
def print_costs(*, options: CostOptions = CostOptions()) -> int:
    """Print the table, which way is the cheapest, and from how much work on; the exit code."""
    try:
        prices = _prices(options)
    except BadPrice as error:
        raise ConfigError(str(error)) from error
    if options.list_prices:
        sys.stdout.write(f"{price_table(prices)}\n")
        return DONE
    month = Month(**{name: getattr(options, name) for name in Month.__dataclass_fields__})
    if month.running > month.room:
        raise ConfigError(
            f"{amount(month.jobs, 'job')} of {month.job_seconds:g} s are {whole(month.running)} s of work. "
            f"The visits have room for {whole(month.room)} s: give more --shards, more --concurrency, or fewer "
            "--schedule-minutes."
        )
    comparison = Comparison(month, prices, options.free_tier)
    sys.stdout.write(f"{comparison.table()}\n\n{comparison.verdict()}\n")
    return DONE


def _prices(options: CostOptions) -> Prices:
    prices = changed_by_file(load(), options.prices) if options.prices else load()
    return changed(prices, dict(map(_named_price, options.price)))


def _named_price(text: str) -> tuple[str, dict[str, float]]:
    name, sign, value = text.partition("=")
    if not sign:
        raise BadPrice(f"--price {text} is refused: expected NAME=VALUE, such as metrics=0.33.")
    try:
        dollars = finite_number(value)
    except ValueError as error:
        raise BadPrice(f"--price {text} is refused: {error}.") from error
    if dollars < 0:
        raise BadPrice(f"--price {text} is refused: a price is at least 0.")
    return name.strip(), {"dollars": dollars}


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a month costs each way, at these prices, with or without the free tier."""

    month: Month
    prices: Prices
    free_tier: bool = False

    @property
    def ways(self) -> Ways:
        """Those that have their prices."""
        return {**WAYS, **(ON_INSTANCES if self.month.instance_hour else {})}

    def table(self) -> str:
        """A column for each way, a row for each thing to pay for, in dollars; every cell is rounded for itself."""
        bills = [self._dollars(way, self.month) for way in self.ways.values()]
        totals = [sum(bill.values()) for bill in bills]
        redis = [bill.get(REDIS, 0.0) for bill in bills]
        rows = [row for row in ROWS if any(row in bill for bill in bills)]
        lines = [(row, *(_cell(bill.get(row)) for bill in bills)) for row in rows]
        return markdown(
            (f"{amount(self.month.jobs, 'job')} a month, {amount(self.month.shards, 'shard')}", *self.ways),
            [
                *lines,
                ("**without Redis**", *(f"**{_cell(all_ - its)}**" for all_, its in zip(totals, redis, strict=True))),
                (_REDIS_ROWS[self.month.redis], *(_cell(bill.get(REDIS)) for bill in bills)),
                ("**total**", *(f"**{_cell(total)}**" for total in totals)),
            ],
        )

    def verdict(self) -> str:
        """Which is the cheapest, and from how much work, and how many shards with schedules, a container costs less."""
        totals = {name: sum(self._dollars(way, self.month).values()) for name, way in self.ways.items()}
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
        costs = ", ".join(f"${self._time(number):,.3f} with concurrency {number}" for number in CONCURRENCY)
        return f"\nThe handlers' time on Lambda costs {costs}."

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

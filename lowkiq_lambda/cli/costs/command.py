"""The command line of `lowkiq costs`."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.codes import DONE
from lowkiq_lambda.cli.costs.comparison import Comparison, amount, price_table
from lowkiq_lambda.cli.parts import command_app, finite_number, flag, number, whole_number
from lowkiq_lambda.cli.tables import whole
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
front of a container's dashboard. An amount without an option is assumed; lowkiq_lambda/cli/costs/ has each with its \
reason.
"""
_EPILOGUE: Final = """
EXIT CODES
  0  The table is printed.
  2  The command line or the prices cannot work.

EXAMPLES
  An idle app:
    lowkiq costs --jobs 0
  Ten million jobs of 50 ms in 24 shards, on an existing Redis:
    lowkiq costs --jobs 10_000_000 --job-seconds 0.05 --shards 24 --redis none
  A million jobs that wait 50 ms for something else, 20 at a time:
    lowkiq costs --job-seconds 0.05 --batch 1 --concurrency 20
  An idle app with metrics of each queue, a secret, and a key for it:
    lowkiq costs --jobs 0 --metrics queues --secrets 1 --kms-keys 1
  Another region: one price, or a file with those that differ
  ([metrics] dollars = 0.33 and so on):
    lowkiq costs --price lambda_requests=0.23
    lowkiq costs --prices frankfurt.toml
  Every price, with its source and date:
    lowkiq costs --list-prices
"""


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


command: Final = command_app("costs", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq costs [OPTIONS]")


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

"""What a month of jobs costs on AWS, in three ways, as a markdown table.

Lambda: the stack of template.yaml, whose schedules visit each shard, with a tick a minute, alarms, metrics and the
dashboard. A container that idles: the daemon in the smallest task of Fargate, day and night. SQS FIFO and Lambda: the
same handler without this library, the id as message group. What a way does not need has an empty cell.

Not in it: taxes, transfer of data, what the handler itself asks of other services, what pushes, a NAT gateway or
endpoints where an option or the handler needs a way out of a VPC, a load balancer where people look at a container's
dashboard. What there is no option for is assumed, each with its reason in bench/bills.py.
"""

import argparse
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Final, get_args

from bench.bills import Month, Redis
from bench.comparison import Comparison, amount, price_table
from bench.prices import BadPrice, Prices, changed, changed_by_file, load
from bench.table import whole

_EPILOG: Final = """
examples:
  what an app costs that has nothing to do:
    python -m bench.costs --jobs 0
  ten million jobs of 50 ms in 24 shards, with a Redis that is there already:
    python -m bench.costs --jobs 10_000_000 --job-seconds 0.05 --shards 24 --redis none
  another region: one price, or a file with those that differ ([metrics] dollars = 0.33 and so on):
    python -m bench.costs --price lambda_requests=0.23
    python -m bench.costs --prices frankfurt.toml
  every price, with its source and date:
    python -m bench.costs --list-prices
"""
_USUAL: Final = Month()


def main(arguments: list[str] | None = None) -> None:
    """Print the table, and who is the cheapest when."""
    parser = _parser()
    options = parser.parse_args(arguments)
    month = Month(**{name: getattr(options, name) for name in Month.__dataclass_fields__})
    try:
        prices = _prices(options)
    except BadPrice as error:
        parser.error(str(error))
    if options.list_prices:
        print(price_table(prices))
        return
    if month.work > month.room:
        parser.error(
            f"{amount(month.jobs, 'job')} of {month.job_seconds:g} s are {whole(month.work)} s of work. "
            f"The visits have room for {whole(month.room)} s: give more --shards, or fewer --schedule-minutes."
        )
    comparison = Comparison(month, prices, options.free_tier)
    print(f"{comparison.table()}\n\n{comparison.verdict()}")


def _prices(options: argparse.Namespace) -> Prices:
    prices = changed_by_file(load(), options.prices) if options.prices else load()
    return changed(prices, {name: {"dollars": value} for name, value in options.price})


def _number(text: str, least: float = 0.0, most: float = 1e12) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not (isfinite(value) and least <= value <= most):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from {least:,.0f} to {most:,.0f}")
    return value


def _count(text: str, least: int = 1, most: int = 10**12) -> int:
    value = _number(text, least, most)
    if not value.is_integer():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number")
    return int(value)


def _named_price(text: str) -> tuple[str, float]:
    name, sign, value = text.partition("=")
    if not sign:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, such as metrics=0.33")
    return name.strip(), _number(value)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m bench.costs",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for name, kind, metavar, text in (
        ("jobs", partial(_count, least=0), "N", "jobs a month"),
        ("job_seconds", _number, "S", "seconds that the handler takes for a job, most of them waiting"),
        ("batch", _count, "N", "ids in a call of the handler; messages in a request to SQS, there at most 10"),
        ("shards", partial(_count, most=10_000), "N", "shards, each with a schedule"),
        ("queues", partial(_count, most=10_000), "N", "queues, each with metrics of its own"),
        ("schedule_minutes", partial(_count, most=44_640), "N", "minutes from one visit of a shard to the next"),
        ("memory", partial(_count, least=128, most=10_240), "MB", "megabytes of a function"),
        ("dashboard_requests", partial(_count, least=0), "N", "requests to the dashboard a month"),
    ):
        usual = getattr(_USUAL, name)
        help_text = f"{text} ({usual:,})"
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=usual, metavar=metavar, help=help_text)
    kinds = "ElastiCache Serverless, its smallest node, or one that is paid for already"
    parser.add_argument("--redis", choices=get_args(Redis), default=_USUAL.redis, help=f"{kinds} ({_USUAL.redis})")
    parser.add_argument("--free-tier", action="store_true", help="take off what each account has for nothing, for good")
    parser.add_argument(
        "--price",
        type=_named_price,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="other dollars for a price, for as many units as it is for; again for more",
    )
    parser.add_argument(
        "--prices",
        type=Path,
        metavar="FILE",
        help="a file as bench/prices.toml, with the prices and fields that differ",
    )
    parser.add_argument("--list-prices", action="store_true", help="print all prices instead of the table")
    return parser


if __name__ == "__main__":
    main()

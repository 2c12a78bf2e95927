"""A bill: rows of amounts by the name of their price (`prices.py`), and the rows that several ways share.

Each price stands in one row of a bill, so that its free tier is used once.
"""

from typing import Final, TypeAlias

from lowkiq_lambda.stack.costs.month import HOURS, Month, Redis
from lowkiq_lambda.stack.costs.prices import Prices

Bill: TypeAlias = dict[str, dict[str, float]]

REDIS: Final = "Redis"
"""The row that those who have a Redis already need not pay."""

COLD_START: Final = 1.0
"""Seconds that it takes, which are billed."""
ENVIRONMENT: Final = 2.0
"""Hours until Lambda replaces an environment that is in use."""
MEGABYTES: Final = 1_024.0
"""Of a gigabyte."""
BYTES: Final = 1e9
"""Of a gigabyte of logs."""
CACHE_GIGABYTES: Final = 0.1
"""What ElastiCache Serverless bills at least; jobs that are drained each minute never fill it."""
ECPU_OF_A_JOB: Final = 5.0
"""Of 1 KB: pushed, claimed, settled."""


def dollars(bill: Bill, prices: Prices, *, free_tier: bool = False) -> dict[str, float]:
    """What each row of the bill costs."""
    return {
        row: sum(prices[name].of(amount, free_tier=free_tier) for name, amount in amounts.items())
        for row, amounts in bill.items()
    }


def functions(month: Month, requests: float, seconds: float) -> Bill:
    """Invocations, and the seconds that they take."""
    return {
        "Lambda, requests": {"lambda_requests": requests},
        "Lambda, time": {"lambda_gigabyte_seconds": seconds * month.memory / MEGABYTES},
    }


def logs(size: float) -> Bill:
    """So many bytes, kept for a month."""
    return {"Logs": {"log_gigabytes": size / BYTES, "log_gigabyte_months": size / BYTES}}


def safety(month: Month) -> Bill:
    """Secrets, keys, and the way out of a VPC, where there are any."""
    ways = {
        "none": {},
        "ipv6": {},
        "endpoints": {"endpoint_hours": month.endpoints * HOURS},
        "nat": {"nat_hours": HOURS},
    }
    rows: Bill = {
        "Secrets and keys": {"secrets": float(month.secrets), "kms_keys": float(month.kms_keys)},
        "Way out of the VPC": ways[month.way_out],
    }
    return {row: amounts for row, amounts in rows.items() if any(amounts.values())}


def redis(month: Month, ecpu: float) -> Bill:
    """The server, of the kind that the month says."""
    kinds: dict[Redis, dict[str, float]] = {
        "serverless": {"cache_gigabyte_hours": CACHE_GIGABYTES * HOURS, "cache_ecpu": ecpu},
        "node": {"cache_node_hours": HOURS},
        "none": {},
    }
    return {REDIS: kinds[month.redis]}

"""The report of a smoke run: its steps, and what it cost."""

import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Final, NamedTuple

from lowkiq_lambda.stack.costs.bills import (
    BYTES,
    CACHE_GIGABYTES,
    ECPU_OF_A_JOB,
    ECPU_OF_A_LOOK,
    MEGABYTES,
    SQS_POLLERS,
    SQS_WAIT,
    Bill,
    dollars,
)
from lowkiq_lambda.stack.costs.month import HOURS
from lowkiq_lambda.stack.costs.prices import load

GOOD, FAILED, NOT_SHOWN = "good", "FAILED", "not shown"
MEMORY: Final = 256
"""Megabytes of each function: the template's default."""
_METRICS: Final = 2
_SECRET: Final = {"RedisUrl", "DashboardTokens"}
_PER_HOUR: Final = 3_600


class Step(NamedTuple):
    """A step of the run, and what shows its result."""

    name: str
    seconds: float
    result: str
    evidence: str


class Used(NamedTuple):
    """What is paid for. `seconds`: of the stack, of the cache that the run made, and of all functions' work."""

    stack_seconds: float = 0.0
    cache_seconds: float = 0.0
    function_seconds: float = 0.0
    invocations: float = 0.0
    messages: float = 0.0
    requests: int = 0
    log_bytes: int = 0
    jobs: int = 0
    schedules: int = 0
    alarms: int = 0

    @property
    def bill(self) -> Bill:
        """The amounts by row, as the calculator of months has them."""
        hours = self.stack_seconds / _PER_HOUR
        # Each batch is sent, received and deleted; idle pollers ask, too.
        polls = SQS_POLLERS * self.stack_seconds / SQS_WAIT
        work = self.invocations * ECPU_OF_A_LOOK + self.jobs * ECPU_OF_A_JOB
        has_cache = self.cache_seconds > 0
        return {
            "Lambda": {
                "lambda_requests": self.invocations,
                "lambda_gigabyte_seconds": self.function_seconds * MEMORY / MEGABYTES,
            },
            "SQS": {"sqs_fifo_requests": 3 * self.messages + polls},
            "Schedules": {"scheduler_invocations": self.schedules * self.stack_seconds / 60},
            "API Gateway": {"http_api_requests": self.requests},
            "Logs": {"log_gigabytes": self.log_bytes / BYTES},
            "Metrics and alarms": {"metrics": _METRICS * hours / HOURS, "alarms": self.alarms * hours / HOURS},
            "Cache": {
                "cache_gigabyte_hours": CACHE_GIGABYTES * self.cache_seconds / _PER_HOUR,
                "cache_ecpu": work if has_cache else 0.0,
            },
        }

    @property
    def cents(self) -> dict[str, float]:
        """What each row costs, without a free tier."""
        return {row: 100 * amount for row, amount in dollars(self.bill, load()).items()}


def report(where: str, name: str, parameters: Mapping[str, str], steps: Sequence[Step], used: Used) -> str:
    """The page."""
    cents = used.cents
    is_good = all(step.result != FAILED for step in steps)
    versions = f"lowkiq_lambda {version('lowkiq-lambda')}, Python {platform.python_version()}, boto3 {version('boto3')}"
    return "\n".join(
        [
            f"# Smoke run on {where}: {'all is good' if is_good else 'something FAILED'}",
            "",
            f"Stack `{name}`, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {versions}.",
            "",
            "| step | seconds | result | evidence |",
            "| --- | --- | --- | --- |",
            *(f"| {step.name} | {step.seconds:.1f} | {step.result} | {_cell(step.evidence)} |" for step in steps),
            "",
            f"## {sum(cents.values()):.2f} cents",
            "",
            "By the prices of `lowkiq stack costs`, without a free tier. Invocations, seconds, messages, requests and",
            "bytes were counted; polls of SQS and the cache's ECPU are assumed, and cold starts are left out.",
            "",
            "| | amounts | cents |",
            "| --- | --- | --- |",
            *(f"| {row} | {_amounts(amounts)} | {cents[row]:.4f} |" for row, amounts in used.bill.items()),
            "",
            "## Parameters",
            "",
            *(f"- `{key}={'…' if key in _SECRET else value}`" for key, value in sorted(parameters.items())),
            "",
        ]
    )


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _amounts(amounts: Mapping[str, float]) -> str:
    prices = load()
    return ", ".join(f"{amount:,.3g} {prices[name].unit}" for name, amount in amounts.items())

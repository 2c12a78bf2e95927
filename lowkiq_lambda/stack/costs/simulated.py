"""What a month costs of a choice that was simulated: the same prices as of an estimate, with simulated invocations."""

from dataclasses import replace

from lowkiq_lambda.simulate.choice import LOOK, Choice
from lowkiq_lambda.simulate.outcome import Outcome
from lowkiq_lambda.stack.costs.bills import Bill, dollars, functions
from lowkiq_lambda.stack.costs.month import HOURS, MINUTES, SECONDS, Month
from lowkiq_lambda.stack.costs.prices import Prices

GIGABYTES_OF_VCPU = 2.0
"""The least memory of a task of Fargate, for each vCPU that it has."""


def simulated_bill(choice: Choice, outcome: Outcome, seconds: float) -> Bill:
    """Time, requests and schedules of a function, or tasks of Fargate, for a month like the `seconds` of the trace.

    A daemon has a task for each process, with its share of the cores.
    """
    if not choice.is_function:
        vcpus = choice.cores * HOURS
        return {
            "Fargate": {"fargate_vcpu_hours": vcpus, "fargate_gigabyte_hours": vcpus * GIGABYTES_OF_VCPU},
            "Public IPv4 address": {"ipv4_hours": choice.processes * HOURS},
        }
    times = SECONDS / max(seconds, 60.0)
    # With schedules of shards there is one more, of housekeeping, which finds nothing to drain.
    ticks = MINUTES if choice.compute == "shards" else 0.0
    schedules = choice.shards * MINUTES + ticks if choice.compute == "shards" else MINUTES
    month = replace(Month(), memory=choice.memory)
    return {
        **functions(month, outcome.invocations * times + ticks, outcome.billed * times + ticks * LOOK),
        "EventBridge Scheduler": {"scheduler_invocations": schedules},
    }


def simulated_dollars(choice: Choice, outcome: Outcome, seconds: float, prices: Prices) -> float:
    """All of the bill, without a free tier."""
    return sum(dollars(simulated_bill(choice, outcome, seconds), prices).values())

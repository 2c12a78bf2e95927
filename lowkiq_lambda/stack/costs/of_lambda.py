"""What the stack of template.yaml uses in a month, with a schedule for each shard, or one for all.

The constants were measured of the functions themselves: tests/aws/test_costs.py measures them again.
"""

from typing import Final

from lowkiq_lambda.stack.costs.bills import COLD_START, ECPU_OF_A_JOB, ENVIRONMENT, Bill, functions, logs, redis, safety
from lowkiq_lambda.stack.costs.month import HOURS, MINUTES, MetricsKind, Month

LOOK: Final = 0.020
"""Seconds of an invocation that finds nothing. Measured: 1.0 to 1.6 ms of a whole processor, of which 256 MB get a
seventh; the rest is for the runtime and the way to Redis."""
FROZEN_AT_MOST: Final = 5.0
"""Minutes without an invocation after which the next one is taken for a cold start."""
PAGE: Final = 0.1
"""Seconds of a request to the dashboard."""
REQUESTS_OF_AN_HOUR: Final = 1_800.0
"""Of an open page, which asks every two seconds."""

TICK_LOG: Final = 310.0
"""Bytes of the line of a tick, and of the drain behind it, that find nothing: the same for any number of queues."""
VISIT_LOG: Final = 310.0
"""Bytes of the line of a drain that finds nothing."""
BUSY_LOG: Final = 450.0
"""Bytes that a queue adds to a line that tells of its work in all shards."""
BUSY_VISIT_LOG: Final = 270.0
"""Bytes that a queue adds to a line that tells of its work in one shard."""
METRICS_LOG: Final[dict[MetricsKind, tuple[float, float]]] = {
    "none": (0.0, 0.0),
    "summary": (280.0, 0.0),
    "queues": (420.0, 960.0),
}
"""Bytes of metrics that an idle minute publishes for the app, and for each queue."""
VISIT_METRICS_LOG: Final = 430.0
"""Bytes of metrics that a drain publishes for each queue, with `queues`."""
SETTLE_LOG: Final = 470.0
"""Bytes of metrics of a settling, with `queues`."""
FAILURE_LOG: Final = 800.0
"""Bytes of the line of a failure, with a short traceback."""
ACK_INTERVAL: Final = 0.05
"""Seconds of work, at least, for each settling: the setting's default."""

ALARMS: Final[dict[MetricsKind, float]] = {"none": 4.0, "summary": 6.0, "queues": 6.0}
"""Of template.yaml: the metrics that they watch, each of which is billed as an alarm."""
ALARMS_OF_A_QUEUE_FUNCTION: Final = 3.0
"""Of infra/queue-function.yaml."""
ECPU_OF_A_LOOK: Final = 20.0
"""An invocation signs in, looks for the cluster's nodes and asks for work."""


def minute_bill(month: Month) -> Bill:
    """One schedule a minute, whose invocation ticks and drains all shards."""
    return _bill(month, visits=0.0)


def shards_bill(month: Month) -> Bill:
    """A schedule for each shard, and one for the tick."""
    return _bill(month, visits=month.shards * MINUTES / month.schedule_minutes)


def metrics(month: Month) -> float:
    """Custom metrics of the stack: two; or, with `queues`, for each queue and for the app.

    CloudWatch bills those of the hours in which they were sent; here they are sent in every hour.
    """
    if month.metrics == "queues":
        # 4 by ticks, 3 by drains and 5 by work; of the app alone the dead, and cold starts.
        return (4.0 + 3.0 + (5.0 if month.jobs else 0.0)) * (month.queues + 1) + 2.0
    return 2.0 if month.metrics == "summary" else 0.0


def _bill(month: Month, visits: float) -> Bill:
    own = month.queue_functions * MINUTES
    invocations = MINUTES + visits + own
    requests = month.dashboard_hours * REQUESTS_OF_AN_HOUR
    cold_starts = _cold_starts(month, visits) + month.queue_functions * HOURS / ENVIRONMENT
    seconds = invocations * LOOK + cold_starts * COLD_START + month.running
    return {
        **functions(month, invocations + requests, seconds + requests * PAGE),
        "EventBridge Scheduler": {"scheduler_invocations": invocations},
        "API Gateway, for the dashboard": {"http_api_requests": requests},
        **logs(_logged(month, visits) + own * visit_log(month)),
        "Metrics and alarms": {
            "metrics": metrics(month),
            "alarms": ALARMS[month.metrics] + month.queue_functions * ALARMS_OF_A_QUEUE_FUNCTION,
        },
        **safety(month),
        **redis(month, invocations * ECPU_OF_A_LOOK + month.jobs * ECPU_OF_A_JOB),
    }


def tick_log(month: Month) -> float:
    """Bytes of a tick, and of the drain behind it, that find nothing."""
    of_app, of_queue = METRICS_LOG[month.metrics]
    return TICK_LOG + of_app + of_queue * month.queues


def visit_log(month: Month) -> float:
    """Bytes of a drain that finds nothing."""
    return VISIT_LOG + (VISIT_METRICS_LOG * month.queues if month.metrics == "queues" else 0.0)


def _logged(month: Month, visits: float) -> float:
    settles = min(month.jobs / month.batch, month.running / ACK_INTERVAL) if month.metrics == "queues" else 0.0
    told, size = (visits, BUSY_VISIT_LOG) if visits else (MINUTES, BUSY_LOG)
    work = min(month.jobs, told * month.queues) * size + settles * SETTLE_LOG + month.failures * FAILURE_LOG
    return MINUTES * tick_log(month) + visits * visit_log(month) + work


def _cold_starts(month: Month, visits: float) -> float:
    of_one = HOURS / ENVIRONMENT
    frozen_for_long = month.schedule_minutes > FROZEN_AT_MOST
    return of_one + (visits if frozen_for_long else of_one * month.shards if visits else 0.0)

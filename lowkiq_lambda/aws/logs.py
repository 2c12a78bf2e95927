"""The log of a function: entries, which name its invocation, and metrics for CloudWatch."""

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache, wraps
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple, Protocol, TextIO, TypeAlias

from aws_lambda_powertools import Logger
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter

from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.base.error_text import say_error
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.store.shard.keys import escape

Unit: TypeAlias = Literal["Count", "Seconds"]
Level: TypeAlias = Literal["summary", "queues"]


_DRAIN: Final = "a drain"
_TICK: Final = "a housekeeping run"
_INGEST: Final = "the ingest function"


class Context(Protocol):
    """What Lambda tells of an invocation."""

    @property
    def function_name(self) -> str:
        """The function's own."""
        ...

    @property
    def invoked_function_arn(self) -> str:
        """As the caller named it."""
        ...

    @property
    def memory_limit_in_mb(self) -> str:
        """In digits."""
        ...

    @property
    def aws_request_id(self) -> str:
        """The same one for each attempt at an event."""
        ...

    def get_remaining_time_in_millis(self) -> int:
        """Until Lambda kills the invocation."""
        ...


_PARTS_WITH_QUALIFIER: Final = 8
"""The parts of a function's ARN that ends with a version or an alias."""


def invoked_name(context: Context) -> str:
    """The function as its caller named it: the ARN with the version or the alias, else the bare name."""
    arn = context.invoked_function_arn
    return arn if len(arn.split(":")) == _PARTS_WITH_QUALIFIER else context.function_name


_LIBRARY: Final = "lowkiq_lambda"
_LEVEL: Final = "POWERTOOLS_LOG_LEVEL"
"""The variable of Powertools: a handler's own loggers follow it, too."""
_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_THE_SAME_IN_EACH_LINE: Final = ("function_arn", "function_memory_size")
"""What Powertools adds, and the name of the function says already: a byte of a log costs as much as any other."""
_ExcInfo: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]

Handler: TypeAlias = Callable[[Any, Context], dict[str, Any]]


def logged(handle: Handler) -> Handler:
    """The handler, with its invocation named in each line that is logged meanwhile. Raises ConfigError, too."""

    @wraps(handle)
    def handler(event: Any, context: Context) -> dict[str, Any]:  # noqa: ANN401 - whatever JSON holds
        logger = function_logger()

        def handle_leanly(event: Any, context: Context) -> dict[str, Any]:  # noqa: ANN401 - as above
            logger.remove_keys(_THE_SAME_IN_EACH_LINE)
            return handle(event, context)

        # Never the event, whatever Powertools' variables say: the dashboard's holds passwords and cookies.
        with_context = logger.inject_lambda_context(handle_leanly, log_event=False)
        answer: dict[str, Any] = with_context(event, context)
        return answer

    return handler


class _StandardOutput(logging.StreamHandler[TextIO]):
    """Writes to whatever the standard output is at that moment: the runtime client and tests replace it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record."""
        self.stream = sys.stdout
        super().emit(record)


class _LeanLines(LambdaPowertoolsFormatter):
    """Lines of JSON with errors as they are kept with jobs: without what is the same in every traceback."""

    def formatException(self, ei: _ExcInfo) -> str:  # noqa: N802 - as logging has it
        """The error, its first frames and its last, and the same of its causes."""
        return "" if ei[1] is None else say_error(ei[1])


@cache
def function_logger() -> Logger:
    """Structured logs of a function, and of the library: all its loggers are below this one. Raises ConfigError."""
    level = _level(os.environ)
    # `exception` has the traceback already; and only in RFC 3339 Lambda, too, knows the time of a line of JSON.
    lines = _LeanLines(serialize_stacktrace=False, use_rfc3339=True)
    logger = Logger(service=_LIBRARY, level=level, logger_handler=_StandardOutput(), logger_formatter=lines)
    # Powertools prefers the level that Lambda is set to, which is the least that passes and not what we are asked for.
    logging.getLogger(_LIBRARY).setLevel(level)
    # The root's own handlers, of Lambda, would say everything once more.
    logging.getLogger(_LIBRARY).propagate = False
    # `name` tells the place, `function_name` the service, unless the environment has a name for it.
    service = os.environ.get("POWERTOOLS_SERVICE_NAME")
    logger.append_keys(location=None, service=service, name="%(name)s")
    return logger


def _level(environ: Mapping[str, str]) -> str:
    level = environ.get(_LEVEL, "").strip().upper() or "INFO"
    if level not in _LEVELS:
        raise ConfigError(f"{_LEVEL}={level!r} is refused: expected one of {', '.join(_LEVELS)}", setting=_LEVEL)
    return level


def is_cold() -> bool:
    """Whether this invocation, of a handler that is `logged`, is the first of its environment."""
    return bool(function_logger().get_current_keys()["cold_start"])


class CloudMetric(NamedTuple):
    """What a metric counts, what publishes it, and with which of `LOWKIQ_METRICS`."""

    by: str
    meaning: str
    unit: Unit = "Count"
    level: Level = "queues"
    """`summary`: with `queues`, too."""


METRICS: Final = {
    "oldest_due_age": CloudMetric(
        _TICK, "How long the oldest due id has waited that nobody holds.", "Seconds", "summary"
    ),
    "dead": CloudMetric(
        f"{_TICK}; {_DRAIN}",
        "Ids that failed for the last time: of the app since it was told last, on Lambda and in daemons; with `queues` "
        "of a queue, too, after each settling on Lambda.",
        level="summary",
    ),
    "wanted_holders": CloudMetric(
        _TICK, "Shards that are held or have due work that may begin; with `LOWKIQ_SCALING` alone.", level="summary"
    ),
    "blocked": CloudMetric(
        _TICK, "Ids that are blocked, of queues that may block some; a summary has it above 0.", level="summary"
    ),
    "trimmed": CloudMetric(
        _TICK, "Payloads that a bound of the morgue ever removed, of queues that lost some.", level="summary"
    ),
    "schedules_missed": CloudMetric(
        _TICK,
        "Planned times of schedule entries that nobody looked at in time; a summary has it above 0.",
        level="summary",
    ),
    "verify_violations": CloudMetric(
        _TICK,
        "Violated promises that the verification of sampled shards has found; a summary has it above 0.",
        level="summary",
    ),
    "schedules_late": CloudMetric(_TICK, "How late the latest firing of an entry was.", "Seconds"),
    "records_failed": CloudMetric(
        _INGEST,
        "Records that failed and come again, with those behind them in their groups; published above 0.",
        level="summary",
    ),
    "lag": CloudMetric(_TICK, "How long the oldest due id has waited, those in flight included.", "Seconds"),
    "length": CloudMetric(_TICK, "Ids that wait."),
    "morgue": CloudMetric(_TICK, "Ids in the morgue."),
    "done": CloudMetric(_DRAIN, "Ids that were done, after each settling."),
    "failed": CloudMetric(_DRAIN, "Ids that failed, after each settling: `retried` and `dead` together."),
    "retried": CloudMetric(_DRAIN, "Ids that failed and are to be tried again."),
    "rejected": CloudMetric(_DRAIN, "Ids that ended with `Rejected`, which is not a failure, or were discarded."),
    "discarded": CloudMetric(_DRAIN, "Ids of which a rule of the worker discarded a payload; part of `rejected`."),
    "expired": CloudMetric(_DRAIN, "Payloads whose time was over, after each settling."),
    "cancelled": CloudMetric(_DRAIN, "Ids that an operator has cancelled and that did not end well, in flight."),
    "checkpointed": CloudMetric(_DRAIN, "Runs of a job with a cursor that came further and ended before their job."),
    "recovered": CloudMetric(_DRAIN, "Ids that a dead holder had left, and that wait again."),
    "batch_duration": CloudMetric(_DRAIN, "The mean of the batches of a settling.", "Seconds"),
    "slowest_batch": CloudMetric(_DRAIN, "The longest of the batches of a settling.", "Seconds"),
    "lag_at_start": CloudMetric(_DRAIN, "The lag at the first look, before anything runs.", "Seconds"),
    "lag_at_end": CloudMetric(_DRAIN, "The lag that an invocation left.", "Seconds"),
    "cold_start": CloudMetric(_DRAIN, "1 at the first invocation of an environment."),
}
"""All that is published under a name of its own; a drain adds `ended_` and the reason why it left a shard."""


def publish(
    namespace: str,
    function: str,
    queue: str | None,
    values: Mapping[str, float],
    *,
    roll_up: bool = True,
    **record: object,
) -> None:
    """Print the values under the dimensions of function and queue, and, to `roll_up`, of the function alone.

    `record` is kept in the log's line, to be searched for. The line has left this process when this returns.
    """
    dimensions = {"function": function} | ({} if queue is None else {"queue": as_dimension(queue)})
    sets = [[*dimensions], ["function"]] if queue is not None and roll_up else [[*dimensions]]
    units = [{"Name": name, "Unit": METRICS[name].unit if name in METRICS else "Count"} for name in values]
    directive = {"Namespace": namespace, "Dimensions": sets, "Metrics": units}
    line = {
        # This machine's, not the server's: CloudWatch takes no time that differs much from its own.
        "_aws": {"Timestamp": int(SystemClock.time() * 1_000), "CloudWatchMetrics": [directive]},
        **dimensions,
        **record,
        **{name: [float(value)] for name, value in values.items()},
    }
    # With its end in one piece: other threads write lines, too.
    sys.stdout.write(json.dumps(line, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def as_dimension(queue_name: str) -> str:
    """The name as CloudWatch takes it: printable ASCII without blank ends, at most 1,024 characters."""
    printable = queue_name.isascii() and queue_name.isprintable() and queue_name == queue_name.strip()
    return (queue_name if printable else escape(queue_name))[:1_024]

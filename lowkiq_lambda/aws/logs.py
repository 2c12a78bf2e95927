"""The log of a function: lines of JSON on the standard output, each of which names its invocation."""

import logging
import os
import sys
from collections.abc import Callable
from functools import cache, wraps
from types import TracebackType
from typing import Any, Final, Protocol, TextIO, TypeAlias

from aws_lambda_powertools import Logger
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter

from lowkiq_lambda.base.error_text import say_error
from lowkiq_lambda.settings.aws import Settings


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


_LIBRARY: Final = "lowkiq_lambda"
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
        named = logger.inject_lambda_context(handle_leanly, log_event=False)
        answer: dict[str, Any] = named(event, context)
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
    level = Settings.from_env(os.environ).log_level
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


def is_cold() -> bool:
    """Whether this invocation, of a handler that is `logged`, is the first of its environment."""
    return bool(function_logger().get_current_keys()["cold_start"])

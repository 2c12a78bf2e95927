"""The log of a function: lines of JSON on the standard output, each of which names its invocation."""

import logging
import os
import sys
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, Final, Protocol, TextIO, TypeAlias

from aws_lambda_powertools import Logger

from lowkiq_lambda.aws.settings import Settings


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

Handler: TypeAlias = Callable[[Any, Context], dict[str, Any]]


def logged(handle: Handler) -> Handler:
    """The handler, with its invocation named in each line that is logged meanwhile. Raises ConfigError, too."""

    @wraps(handle)
    def handler(event: Any, context: Context) -> dict[str, Any]:  # noqa: ANN401 - whatever JSON holds
        # Never the event, whatever Powertools' variables say: the dashboard's holds passwords and cookies.
        named = function_logger().inject_lambda_context(handle, log_event=False)
        answer: dict[str, Any] = named(event, context)
        return answer

    return handler


class _StandardOutput(logging.StreamHandler[TextIO]):
    """Writes to whatever the standard output is at that moment: the runtime client and tests replace it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record."""
        self.stream = sys.stdout
        super().emit(record)


@cache
def function_logger() -> Logger:
    """Structured logs of a function, and of the library: all its loggers are below this one. Raises ConfigError."""
    level = Settings.from_env(os.environ).log_level
    # `exception` has the traceback already.
    logger = Logger(
        service=_LIBRARY,
        level=level,
        logger_handler=_StandardOutput(),
        serialize_stacktrace=False,
        # The only form in which Lambda, too, knows the time of a line of JSON.
        use_rfc3339=True,
    )
    # Powertools prefers the level that Lambda is set to, which is the least that passes and not what we are asked for.
    logging.getLogger(_LIBRARY).setLevel(level)
    # The root's own handlers, of Lambda, would say everything once more.
    logging.getLogger(_LIBRARY).propagate = False
    service = os.environ.get("POWERTOOLS_SERVICE_NAME") or os.environ.get("AWS_LAMBDA_FUNCTION_NAME")
    logger.append_keys(service=service or _LIBRARY, name="%(name)s")
    return logger


def is_cold() -> bool:
    """Whether this invocation, of a handler that is `logged`, is the first of its environment."""
    return bool(function_logger().get_current_keys()["cold_start"])

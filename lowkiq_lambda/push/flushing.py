"""`@app.flushes`: a function on Lambda returns when what it pushed is in Redis, or raises."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, Final, TypeVar, cast

from lowkiq_lambda.base.errors import DeclarationError, NotFlushed

Handler = TypeVar("Handler", bound=Callable[..., Any])

MOST: Final = 5.0
"""Seconds that a flush takes, if the invocation has as many left."""
KEPT_BACK: Final = 0.5
"""Seconds of the invocation that stay for its end."""


def flushing(flush: Callable[[float], int], handler: Handler) -> Handler:
    """The handler, with a flush behind it. Raises DeclarationError for a coroutine function."""
    if iscoroutinefunction(handler):
        raise DeclarationError("A coroutine function cannot be flushed behind: decorate the function that runs it.")

    @wraps(handler)
    def flushed(*arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401 - whatever the handler takes and returns
        with flush_behind(flush, arguments[-1] if arguments else None):
            return handler(*arguments, **keywords)

    return cast("Handler", flushed)


@contextmanager
def flush_behind(flush: Callable[[float], int], context: object) -> Iterator[None]:
    """Flush at the end of the block. Raises NotFlushed if jobs are left then, unless the block has raised.

    `context` is that of the invocation, if there is one.
    """
    try:
        yield
    except BaseException as error:
        if left := flush(_seconds(context)):
            error.add_note(str(not_flushed(left)))
        raise
    if left := flush(_seconds(context)):
        raise not_flushed(left)


def not_flushed(left: int) -> NotFlushed:
    """The error that tells of so many jobs."""
    return NotFlushed(f"{NotFlushed()} ({left:,} jobs)", jobs=left)


def _seconds(context: object) -> float:
    """The seconds left of an invocation, by its context."""
    remaining = getattr(context, "get_remaining_time_in_millis", None)
    return MOST if remaining is None else max(0.0, min(MOST, remaining() / 1_000 - KEPT_BACK))

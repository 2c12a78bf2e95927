"""What a handler returns that says that its work was not done, or that a `yield` was forgotten."""

import inspect
import logging
from collections.abc import Iterator
from typing import Any, Final

from lowkiq_lambda.base.errors import HandlerError
from lowkiq_lambda.declare.worker import Worker

logger = logging.getLogger(__name__)

_LAZY: Final = ("builtins", "itertools", "lowkiq_lambda.iterate")
"""The modules of iterators that do their work when they are read. That of a database's cursor is done already."""
_warned: Final = set[type[Worker[Any]]]()


class Strictness:
    """Whether a list that a `perform_job` returns is an error, as it is in the kit for tests."""

    refuses_lists = False


def check_result(result: object, job_of: Worker[Any] | None) -> None:
    """Raises HandlerError for a result whose work was not done; warns of a list that a `perform_job` returns.

    A list does not fail: `return [apply(x) for x in xs]` has done its work, and a retry would do it twice.
    """
    if inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
        kind = type(result).__name__
        if inspect.iscoroutine(result) or inspect.isgenerator(result):
            result.close()
        wrong = f"The handler returned a {kind}, so its work was not done: it must be a plain or a coroutine function."
        hint = " Write async def, and await what it returns." if inspect.iscoroutine(result) else ""
        if inspect.isgenerator(result):
            hint = " Yield from it; if perform_job yields already, put functools.wraps into its decorator."
        raise HandlerError(wrong + hint)
    if isinstance(result, Iterator) and type(result).__module__.startswith(_LAZY):
        raise HandlerError(
            f"The handler returned a {type(result).__name__}, which nobody reads, so its work was not done: go through "
            "it in the handler, and yield a cursor for each item if the job should go on after a stop."
        )
    if job_of is None or type(result) not in {list, tuple}:
        return
    worker = type(job_of)
    text = f"{worker.__name__}.perform_job returned a {type(result).__name__}: is a yield missing? Else return nothing."
    if Strictness.refuses_lists:
        raise HandlerError(text)
    if worker not in _warned:
        _warned.add(worker)
        logger.warning(text)

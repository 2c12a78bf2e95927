"""A handler may fork: the child is not the holder of the lease, and goes no further than the handler's end."""

import logging
import os
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

from lowkiq_lambda.base.error_text import loggable

Given = TypeVar("Given")
Result = TypeVar("Result")

logger = logging.getLogger(__name__)

_pid = os.getpid()
"""Of this process, kept because os.getpid is a system call, and each batch passes the guard twice."""


def _note_fork() -> None:
    global _pid  # noqa: PLW0603 - it is a fact of the process
    _pid = os.getpid()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def in_parent_alone(call: Callable[[Given], Result], given: Given) -> Result:
    """What the call returns or raises, in the process that made it. A child that was forked in it ends here, at once.

    Its exit code is what it would have been: that of `sys.exit`, 1 after another exception, else 0.
    """
    pid = _pid
    try:
        result = call(given)
    except BaseException as error:
        # Asked of the system: code that is not Python's forks without a word to the hook above.
        if os.getpid() != pid:
            _leave(error)
        raise
    if os.getpid() != pid:
        _leave(None)
    return result


class AwaitedInParentAlone(Generator[Any, Any, Result]):
    """Awaits what it is given. A child that was forked in one of its steps ends there: the loop is its parent's.

    Its exit code is that of `in_parent_alone`; 1 where it would have to wait. One that was forked by another task
    of the loop ends at the next step.
    """

    def __init__(self, awaited: Awaitable[Result]) -> None:
        self.cr_await = awaited
        """As that of a coroutine: so one finds where it stands."""
        self._steps: Generator[Any, Any, Result] = awaited.__await__()
        self._pid = os.getpid()

    def __await__(self) -> Generator[Any, Any, Result]:
        return self

    def send(self, value: object) -> object:
        """Make the next step."""
        return self._step(self._steps.send, value)

    def throw(self, *error: object) -> object:
        """Raise it where the awaited one stands."""
        return self._step(self._steps.throw, *error)

    def _step(self, step: Callable[..., object], *given: object) -> object:
        end_child_of(self._pid)
        try:
            yielded = step(*given)
        except BaseException as error:
            if os.getpid() != self._pid:
                _leave(None if isinstance(error, StopIteration) else error)
            raise
        if os.getpid() != self._pid:
            _leave(RuntimeError("A process that a coroutine forked cannot wait: the event loop is that of its parent."))
        return yielded


def end_child_of(pid: int) -> None:
    """End this process if it is not the one of this id, but was forked from it, be it by code that is not Python."""
    if os.getpid() != pid:
        _leave(None)


def _leave(error: BaseException | None) -> None:
    """No exit handler runs, no buffer is flushed, no thread is waited for: all of that is the parent's."""
    if isinstance(error, SystemExit):
        code = 0 if error.code is None else error.code if isinstance(error.code, int) else 1
        os._exit(code & 0xFF)
    if error is not None:
        logger.error("a process that a handler forked ended with an error", exc_info=loggable(error))
    os._exit(0 if error is None else 1)

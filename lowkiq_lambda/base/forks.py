"""A handler may fork: the child is not the holder of the lease, and goes no further than the handler's end."""

import logging
import os
from collections.abc import Awaitable, Callable, Generator
from types import coroutine
from typing import Any, Final, TypeVar

from lowkiq_lambda.base.error_text import loggable

Result = TypeVar("Result")

logger = logging.getLogger(__name__)

CANNOT_WAIT: Final = RuntimeError(
    "A process that a coroutine forked cannot wait: the event loop is that of its parent."
)


class _Process:
    """This one. Its id is kept because os.getpid is a system call, and each batch passes the guard twice."""

    def __init__(self) -> None:
        self.pid = os.getpid()

    def note_fork(self) -> None:
        """In the child."""
        self.pid = os.getpid()


this_process: Final = _Process()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=this_process.note_fork)


class InParentAlone:
    """Around a call that may fork: a child that was forked in it ends at the end of the block, at once.

    Its exit code is that of `sys.exit`, 1 after another exception, else 0, as without this.
    """

    __slots__ = ("_pid",)

    def __enter__(self) -> None:
        self._pid = this_process.pid

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        end_child_of(self._pid, error)


@coroutine
def awaited_in_parent_alone(awaited: Awaitable[Result]) -> Generator[Any, Any, Result]:
    """Awaits `awaited`. A child that was forked in one of its steps ends there: the loop is its parent's.

    Its exit code is that of `InParentAlone`; 1 if it would have to wait. A child that another task of the loop forked
    ends at the next step.
    """
    pid, steps = os.getpid(), awaited.__await__()
    step: Callable[[Any], Any] = steps.send
    value = None
    try:
        while True:
            yielded = step(value)
            end_child_of(pid, CANNOT_WAIT)
            try:
                value, step = (yield yielded), steps.send
            except GeneratorExit:
                # Not thrown: a garbage collector may have closed it before this, and would be told of an error.
                steps.close()
                raise
            except BaseException as error:  # noqa: BLE001 - raised at the place of the awaited coroutine
                value, step = error, steps.throw
            end_child_of(pid)
    except StopIteration as end:
        end_child_of(pid)
        result: Result = end.value
        return result
    except BaseException as error:
        end_child_of(pid, error)
        raise
    finally:
        # It may be an exception, whose traceback has this frame.
        value = None


def awaited_by(guard: object) -> object:
    """The coroutine that `awaited_in_parent_alone` awaits, so that its place in the code can be found; else None."""
    frame = getattr(guard, "gi_frame", None)
    return frame and frame.f_locals.get("awaited")


def end_child_of(pid: int, error: BaseException | None = None) -> None:
    """End this process if it is not the one of this id, but was forked from it, be it by code that is not Python.

    `error`: what the code that forked it has raised.
    """
    # Asked of the system: code that is not Python's forks without a word to the hook above.
    if os.getpid() != pid:
        _leave(error)


def _leave(error: BaseException | None) -> None:
    """No exit handler runs, no buffer is flushed, no thread is waited for: all of that is the parent's."""
    if isinstance(error, SystemExit):
        code = 0 if error.code is None else error.code if isinstance(error.code, int) else 1
        os._exit(code & 0xFF)
    if error is not None:
        logger.error("a process that a handler forked ended with an error", exc_info=loggable(error))
    os._exit(0 if error is None else 1)

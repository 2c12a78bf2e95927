"""A function that does what its event says, and knows nothing of this project: the harness is tested with it."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, Final, Protocol


class RuntimeContext(Protocol):
    """What the runtime client tells about an invocation."""

    aws_request_id: str
    function_name: str

    def get_remaining_time_in_millis(self) -> int:
        """Until the deadline."""


_CALLS: Final[list[str]] = []


def handler(event: dict[str, Any], context: RuntimeContext) -> dict[str, Any]:
    """Do it, and tell what can be known in here."""
    _CALLS.append(context.aws_request_id)
    sys.stdout.write(f'{{"_aws": {{}}, "calls": {len(_CALLS)}}}\n')
    _ACTS[event["do"]]()
    return {
        "pid": os.getpid(),
        "calls": _CALLS,
        "function": context.function_name,
        "remaining": context.get_remaining_time_in_millis() / 1_000,
    }


def _nothing() -> None:
    """Return at once."""


def _hang() -> None:
    try:
        threading.Event().wait()
    finally:
        sys.stdout.write("cleaned up\n")


def _raise() -> None:
    raise ValueError("a bad event")


def _exit() -> None:
    os._exit(3)


def _shoot_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


_ACTS: Final[dict[str, Callable[[], None]]] = {
    "nothing": _nothing,
    "hang": _hang,
    "raise": _raise,
    "exit": _exit,
    "shoot": _shoot_itself,
}

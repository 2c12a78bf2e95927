"""Execution environments of a Lambda function, as AWS has them, with our handlers in the real runtime client."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from uuid import uuid4

from tests.kit.servers.lambda_outcome import Crashed, Error, Invocation, Killed, Outcome, Result, metrics_in, values_of
from tests.kit.servers.lambda_process import LambdaProcess

__all__ = ["Crashed", "Error", "Invocation", "Killed", "LambdaEnvironment", "Outcome", "Result"]

ROOT: Final = Path(__file__).parents[3]
_NOT_HANDED_DOWN: Final = ("LOWKIQ_", "AWS_", "POWERTOOLS_", "REDIS_URL", "LAMBDA_")


class LambdaEnvironment:
    """Has at most one process, which starts with the first invocation, and anew with the next after it died.

    The process is frozen (SIGSTOP) from the end of an invocation to the next. `settings` are its environment. The
    code is that of this checkout, or of `package`, where nothing but `python` and the PYTHONPATH of the settings
    is beside it.
    """

    def __init__(  # noqa: PLR0913 - most of it by keyword
        self,
        handler: str,
        settings: Mapping[str, str],
        folder: Path,
        *,
        name: str = "drain",
        memory: int = 512,
        package: Path = ROOT,
        python: Sequence[str] = (),
    ) -> None:
        self._handler = handler
        self._settings = {**_inherited(), **_given_by_aws(handler, name, memory), **settings}
        self._package, self._python = package, python
        self._process: LambdaProcess | None = None
        self.log_path = folder / f"{name}-{uuid4().hex}.log"

    @property
    def pid(self) -> int | None:
        """The process that lives, if one does."""
        return self._process.pid if self._process and not self._process.is_gone else None

    @property
    def log(self) -> str:
        """What all of its processes printed so far."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """What all of its processes printed so far in the embedded metric format."""
        return metrics_in(self.log)

    def metric(self, name: str) -> list[float]:
        """The values of one of them, in order."""
        return values_of(self.metrics, name)

    def begin(self, event: object, timeout: float = 30.0, *, request_id: str | None = None) -> Invocation:
        """Hand the event over; `timeout` seconds later the process is killed. A request id of old is a duplicate."""
        invocation = Invocation(event, timeout, request_id)
        self._running().hand(invocation)
        return invocation

    def start(self) -> int:
        """Let a process import the function, as before the first event; its id, when it asks for that."""
        process = self._running()
        process.wait_until_started()
        assert not process.is_gone, self.log
        return process.pid

    def invoke(self, event: object, timeout: float = 30.0, *, request_id: str | None = None) -> Outcome:
        """As `begin`, and wait for the end."""
        return self.begin(event, timeout, request_id=request_id).outcome()

    def time_out(self) -> None:
        """Let the time of the invocation be over now."""
        assert self._process
        self._process.time_out()

    def freeze(self) -> None:
        """Stop the process in its tracks, in the middle of an invocation too."""
        assert self._process
        self._process.freeze()

    def thaw(self) -> None:
        """Let it go on."""
        assert self._process
        self._process.thaw()

    def kill(self) -> None:
        """End the process with SIGKILL, in the middle of an invocation too."""
        assert self._process
        self._process.kill()

    def close(self) -> None:
        """End the process."""
        if self._process:
            self._process.close()

    def _running(self) -> LambdaProcess:
        if self._process is None or self._process.is_gone:
            self._process = LambdaProcess(self._handler, self._settings, self._package, self.log_path, self._python)
        return self._process

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _inherited() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(_NOT_HANDED_DOWN)}


def _given_by_aws(handler: str, name: str, memory: int) -> dict[str, str]:
    return {
        "AWS_EXECUTION_ENV": f"AWS_Lambda_python{sys.version_info.major}.{sys.version_info.minor}",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(memory),
        "AWS_LAMBDA_FUNCTION_NAME": name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": uuid4().hex,
        "AWS_REGION": "eu-central-1",
        "LAMBDA_TASK_ROOT": str(ROOT),
        "PYTHONPATH": str(ROOT),
        "_HANDLER": handler,
    }

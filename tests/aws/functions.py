"""The drain function as Lambda calls it, and what it says on its standard output."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.aws.drain_function import handler
from tests.kit.workers import jobs_of


def overdue(ids: str | Sequence[str]) -> list[dict[str, Any]]:
    """One job for each id, due by any clock: two clients may differ by microseconds about what time it is."""
    return jobs_of(ids, due_at=time.time() - 1)


class Install(Protocol):
    """Makes an app the one that the functions find."""

    def __call__(self, app: Lowkiq, **settings: object) -> None:
        """With settings as in the environment, without `LOWKIQ_` and in small letters."""
        ...


class FunctionContext:
    """What Lambda tells of an invocation that has so many seconds left."""

    function_name = "shop-drain"
    invoked_function_arn = "arn:aws:lambda:eu-west-1:123456789012:function:shop-drain"
    memory_limit_in_mb = "512"
    aws_request_id = "6f5d"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def get_remaining_time_in_millis(self) -> int:
        """As long as the test says."""
        return int(1_000 * self.seconds)


class DrainFunction:
    """One execution environment for the app that was installed last."""

    def __init__(self, install: Install, capsys: pytest.CaptureFixture[str]) -> None:
        self.install = install
        self._capsys = capsys
        self.printed: list[str] = []
        """The lines of JSON, as they were printed until `lines` was last asked for."""

    def __call__(self, event: object = None, seconds: float = 63.0) -> dict[str, Any]:
        """Invoke it with so many seconds to go, of which three are kept back."""
        return handler({} if event is None else event, FunctionContext(seconds))

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The lines of JSON that were printed until now."""
        self.printed += self._capsys.readouterr().out.splitlines()
        return [json.loads(line) for line in self.printed]

    @property
    def blobs(self) -> list[dict[str, Any]]:
        """Those that carry metrics."""
        return [line for line in self.lines if "_aws" in line]

    @property
    def logs(self) -> list[dict[str, Any]]:
        """Those that don't."""
        return [line for line in self.lines if "_aws" not in line]

    def values(self, metric: str, queue: str | None = None) -> list[float]:
        """What was published of it, of one queue or of all."""
        blobs = [blob for blob in self.blobs if queue is None or blob.get("queue") == queue]
        return [value for blob in blobs for value in blob.get(metric, [])]

    def sums(self, *metrics: str) -> Mapping[str, float]:
        """Those that were published, in sum."""
        return {name: sum(self.values(name)) for name in metrics if self.values(name)}

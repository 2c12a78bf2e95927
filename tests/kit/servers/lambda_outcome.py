"""How an invocation of a Lambda function can end."""

import json
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypedDict, cast
from uuid import uuid4

_TIMEOUT: Final = 60.0


class Facts(TypedDict):
    """What every outcome has."""

    pid: int
    cold: bool
    seconds: float
    log: str


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """`cold`: it was the first of its process. `seconds` since it was handed to the process; `log`: its lines."""

    pid: int
    cold: bool
    seconds: float
    log: str

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """What it printed in the embedded metric format."""
        return metrics_in(self.log)

    def metric(self, name: str) -> list[float]:
        """The values of one of them, in order."""
        return values_of(self.metrics, name)


@dataclass(frozen=True, kw_only=True)
class Result(Outcome):
    """The handler returned."""

    value: Any


@dataclass(frozen=True, kw_only=True)
class Error(Outcome):
    """The handler, or its import, raised."""

    type: str
    message: str
    trace: list[str]


@dataclass(frozen=True, kw_only=True)
class Killed(Outcome):
    """The deadline came first."""


@dataclass(frozen=True, kw_only=True)
class Crashed(Outcome):
    """The process ended by itself, or was killed by somebody else; a signal's number is negative."""

    exit_code: int


class Invocation:
    """One event on its way; whoever asks for its outcome waits for it."""

    def __init__(self, event: object, timeout: float, request_id: str | None) -> None:
        self.body = json.dumps(event).encode()
        self.timeout = timeout
        self.request_id = request_id or str(uuid4())
        self._ended = threading.Event()
        self._outcome: Outcome | None = None

    @property
    def is_over(self) -> bool:
        """Whether the outcome is known."""
        return self._ended.is_set()

    def outcome(self, timeout: float = _TIMEOUT) -> Outcome:
        """How it ended. The process then stands still, or is gone."""
        assert self._ended.wait(timeout), f"the invocation {self.request_id} did not end in {timeout} s"
        return cast("Outcome", self._outcome)

    def result(self) -> Result:
        """The outcome, which must be a result."""
        outcome = self.outcome()
        assert isinstance(outcome, Result), outcome
        return outcome

    def end(self, outcome: Outcome) -> None:
        """For the process: this is how."""
        self._outcome = outcome
        self._ended.set()


def metrics_in(log: str) -> list[dict[str, Any]]:
    """The lines in the embedded metric format."""
    lines = (line for line in log.splitlines() if line.startswith("{") and '"_aws"' in line)
    return [json.loads(line) for line in lines]


def values_of(metrics: Iterable[Mapping[str, Any]], name: str) -> list[float]:
    """The values of one metric, in order."""
    found = (line[name] for line in metrics if name in line)
    return [one for values in found for one in (values if isinstance(values, list) else [values])]


def outcome_of(answer: tuple[str, bytes], facts: Facts) -> Outcome:
    """What the process posted, as an outcome."""
    what, body = answer
    said = json.loads(body)
    if what == "response":
        return Result(value=said, **facts)
    return Error(type=said["errorType"], message=said["errorMessage"], trace=said["stackTrace"], **facts)

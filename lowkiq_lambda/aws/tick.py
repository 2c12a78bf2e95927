"""One tick of the dispatcher: what its tasks share, and what went wrong in them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.aws.invoker import Invoker
from lowkiq_lambda.aws.settings import Settings
from lowkiq_lambda.engine.queue import Queue
from lowkiq_lambda.errors import LowkiqError, QueueMismatch


class TickFailed(LowkiqError):
    """A part of the tick failed; the rest of it was done."""


@dataclass(slots=True)
class Tick:
    """What a task may use: the queues that agree with Redis, and how many seconds the invocation has left for it."""

    app: Lowkiq
    settings: Settings
    invoker: Invoker
    function_name: str
    """The dispatcher's own."""
    remaining: Callable[[], float]
    queues: list[Queue] = field(default_factory=list)
    problems: dict[str, Exception | None] = field(default_factory=dict)
    """Sentences, each with the error that it tells of."""

    @property
    def retry_for(self) -> float:
        """How long a call is tried while Redis cannot serve."""
        return max(0.0, min(self.app.config.retry_for, self.remaining()))

    def note(self, error: Exception) -> None:
        """Something went wrong that does not end the tick."""
        known = isinstance(error, LowkiqError)
        self.problems.setdefault(str(error) if known else f"{type(error).__name__}: {error}", error)


Task: TypeAlias = Callable[[Tick], Any]
"""Does its part and returns what the summary is to say of it, as JSON."""


def run(tick: Tick, tasks: Mapping[str, Task]) -> dict[str, Any]:
    """The summary, by task. Raises TickFailed at the end where something went wrong, BackendError where all would."""
    tick.queues = _declared(tick)
    summary = {name: _performed(task, tick) for name, task in tasks.items()}
    if tick.problems:
        first = next(iter(tick.problems.values()))
        raise TickFailed(f"{' '.join(tick.problems)} (done: {summary})") from first
    return summary


def _declared(tick: Tick) -> list[Queue]:
    """The queues of the app. One that was made otherwise is a problem, and hides no other."""
    queues = []
    for worker in tick.app.workers:
        try:
            queues.append(tick.app.current_queue_of(worker))
        except QueueMismatch as error:
            tick.note(error)
    return queues


def _performed(task: Task, tick: Tick) -> Any:  # noqa: ANN401 - whatever the task has to say
    try:
        return task(tick)
    except Exception as error:  # noqa: BLE001 - told at the end, when the other tasks had their turn
        tick.note(error)
        return None

"""One tick: what its tasks share, what went wrong in them, and the shards that no schedule drains."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.errors import LowkiqError, QueueMismatch
from lowkiq_lambda.engine.queue import Queue
from lowkiq_lambda.settings.aws import Settings
from lowkiq_lambda.store.shard.keys import ShardRef

if TYPE_CHECKING:
    from lowkiq_lambda.providers.aws.invoker import Invoker


logger = logging.getLogger(__name__)

_REMEDY: Final = "Deploy with the ShardIndexes that `lowkiq stack schedules indexes` prints, or with Idle=start."
_SHOWN: Final = 10


class HousekeepingFailed(LowkiqError):
    """A part of the tick failed; the rest of it was done."""


@dataclass(slots=True)
class Tick:
    """What a task may use: the queues that agree with Redis, and how many seconds the invocation has left for it."""

    app: Lowkiq
    settings: Settings
    invoker: "Invoker | None"
    """Starts functions; None for that of the process."""
    function_name: str
    """The drain function's, which ticks."""
    remaining: Callable[[], float]
    keep: int = 0
    """How many shards this invocation itself drains at once, after the tick."""
    invoked_name: str = ""
    """The function that drains are started of, with its version or alias; `function_name` if empty."""
    handed: set[ShardRef] = field(default_factory=set)
    """The shards that other invocations were started for."""
    queues: list[Queue] = field(default_factory=list)
    problems: dict[str, Exception | None] = field(default_factory=dict)
    """Sentences, each with the error that it tells of."""

    @property
    def retry_for(self) -> float:
        """How long a call is tried while Redis cannot serve."""
        return max(0.0, min(self.app.config.redis_retry_for, self.remaining()))

    def note(self, error: Exception) -> None:
        """Something went wrong that does not end the tick."""
        is_ours = isinstance(error, LowkiqError)
        self.problems.setdefault(str(error) if is_ours else f"{type(error).__name__}: {error}", error)

    def failure(self, summary: Mapping[str, Any]) -> HousekeepingFailed | None:
        """What went wrong, in one error; None where nothing did. `summary`: what was done all the same."""
        if not self.problems:
            return None
        failed = HousekeepingFailed(f"{' '.join(self.problems)} (done: {summary})")
        failed.__cause__ = next(iter(self.problems.values()))
        return failed


Task: TypeAlias = Callable[[Tick], Any]
"""Does its part and returns what the summary is to say of it, as JSON."""


def run(tick: Tick, tasks: Mapping[str, Task]) -> dict[str, Any]:
    """The summary, by task; what went wrong is noted. Raises BackendError where everything would fail."""
    tick.queues = _declared(tick)
    return {name: _performed(task, tick) for name, task in tasks.items()}


def _declared(tick: Tick) -> list[Queue]:
    """The queues of the app. One that was made otherwise is a problem, and hides no other."""
    queues = []
    for worker in tick.app.workers:
        try:
            queues.append(tick.app.core.queues.current(worker))
        except QueueMismatch as error:
            tick.note(error)
    return queues


def _performed(task: Task, tick: Tick) -> Any:  # noqa: ANN401 - whatever the task has to say
    try:
        return task(tick)
    except Exception as error:  # noqa: BLE001 - told at the end, when the other tasks had their turn
        tick.note(error)
        return None


def warn_of_unscheduled(tick: Tick) -> None:
    """Name them in the function's log. It is asked of a tick whose function is told which shards have a schedule."""
    for queue in tick.queues:
        name, indexes = queue.worker.queue_name, {shard.index for shard in queue.shards}
        missing = sorted(indexes - tick.settings.shards_with_schedules)
        if missing and tick.settings.drains(name):
            logger.warning("%s: %s. %s", name, naming(missing), _REMEDY)


def naming(indexes: Sequence[int]) -> str:
    """A sentence with their numbers."""
    many, more = len(indexes) > 1, len(indexes) - _SHOWN
    numbers = ", ".join(map(str, indexes[:_SHOWN])) + (f" and {more} more" if more > 0 else "")
    have = "have" if many else "has"
    return f"shard{'s' if many else ''} {numbers} {have} no schedule, and housekeeping starts no drains"

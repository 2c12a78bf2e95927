"""The task of a tick that tells the queues in numbers: as metrics, in the function's log, and in what the tick says."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from lowkiq_lambda.aws.logs import publish
from lowkiq_lambda.aws.tick import Tick
from lowkiq_lambda.operate.inspect.told import Untold, note_told, untold
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views.queues import Metrics

Published = dict[str, float]

_OF_ALL: Final[dict[str, Callable[[Iterable[float]], float]]] = {
    "lag": max,
    "oldest_due_age": max,
    "length": sum,
    "morgue": sum,
}
"""What is published, and how queues are taken together."""
HELD: Final = "held"
"""Published only of queues that hold ids, or may: each metric of a queue costs."""
TRIMMED: Final = "trimmed"
"""Published only of queues whose morgue has lost payloads, as many as it ever has."""
_SOME: Final = (HELD, TRIMMED)
DEAD: Final = "dead"
"""Published of the app as a whole."""


def publish_summary(tick: Tick) -> dict[str, Published]:
    """Publish how long the app's oldest due id has waited, and how many ids died, under the dimension `function`.

    Returns the numbers of each queue, by its name.
    """
    seen = _Seen.by(tick)
    of_all = _of_all([*seen.numbers.values()])
    values = {"oldest_due_age": of_all["oldest_due_age"], DEAD: seen.dead}
    values |= {name: of_all[name] for name in _SOME if of_all.get(name)}
    publish(tick.settings.metrics_namespace, tick.function_name, None, values)
    seen.note(tick)
    return seen.numbers


def publish_queues(tick: Tick) -> dict[str, Published]:
    """The numbers of each queue by its name, published under the dimensions `function` and `queue`.

    Under `function` alone stands the app as a whole, with the sum of lengths and the largest lag and age: an alarm
    needs to know no queue by name.
    """
    seen = _Seen.by(tick)
    namespace = tick.settings.metrics_namespace
    for name, numbers in seen.numbers.items():
        # Not rolled up: CloudWatch would take the lengths of queues for samples of one.
        publish(namespace, tick.function_name, name, numbers, roll_up=False)
    publish(namespace, tick.function_name, None, _of_all([*seen.numbers.values()]) | {DEAD: seen.dead})
    seen.note(tick)
    return seen.numbers


class _Seen(NamedTuple):
    """What a tick has seen of the queues, by their names."""

    numbers: dict[str, Published]
    untold: Mapping[str, Untold]

    @classmethod
    def by(cls, tick: Tick) -> "_Seen":
        names = [queue.worker.queue_name for queue in tick.queues]
        reader = ShardReader(tick.app.core.backend, tick.retry_for)
        found = untold(reader, tick.queues, tick.function_name)
        holds = [queue.worker.dead_head == "hold" for queue in tick.queues]
        numbers = {
            name: _published(one.metrics, may_hold) for name, one, may_hold in zip(names, found, holds, strict=True)
        }
        return cls(numbers, dict(zip(names, found, strict=True)))

    @property
    def dead(self) -> int:
        return sum(one.dead for one in self.untold.values())

    def note(self, tick: Tick) -> None:
        """What was told is out: it has left the process."""
        changed = {name: one.metrics.buried for name, one in self.untold.items() if one.is_changed}
        if changed:
            note_told(tick.app.core.backend, tick.retry_for, changed, tick.function_name)


def _published(metrics: Metrics, may_hold: bool) -> Published:  # noqa: FBT001 - of the queue
    held = {HELD: metrics.held} if may_hold or metrics.held else {}
    trimmed = {TRIMMED: metrics.trimmed} if metrics.trimmed else {}
    return {
        "lag": metrics.lag,
        "oldest_due_age": metrics.oldest_due_age,
        "length": metrics.length,
        "morgue": metrics.morgue_length,
        **held,
        **trimmed,
    }


def _of_all(queues: list[Published]) -> Published:
    of_all = {name: unite([queue[name] for queue in queues] or [0]) for name, unite in _OF_ALL.items()}
    some = {name: [queue[name] for queue in queues if name in queue] for name in _SOME}
    return {**of_all, **{name: sum(values) for name, values in some.items() if values}}

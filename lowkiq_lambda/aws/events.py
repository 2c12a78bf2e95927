"""What an event asks the drain function to drain.

`{"shard": 3}` is shard 3 of every queue that has one: what a schedule for a shard sends. While a queue is being
resharded it has two of them, an old one and a new one. `{"queue": "SyncOrder"}` is a queue, both together one shard of
it. Any other object, such as one from EventBridge, means all shards. With `"tick": true` the app's tick comes before
the drain; `{"tick": "only"}` is the tick, and drains nothing.

What names no queue means the queues that are this function's: those that LOWKIQ_QUEUES names, or all but those that it
names with a - before them; all if it is not set.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from lowkiq_lambda.base.errors import ConfigError, LowkiqError
from lowkiq_lambda.store.shard.keys import ShardRef

if TYPE_CHECKING:
    from lowkiq_lambda.engine.drainer import Drainer
    from lowkiq_lambda.settings.aws import Settings

logger = logging.getLogger(__name__)

_MEANT: Final = {"queue": "queue", "queues": "queue", "queuename": "queue"} | {
    "shard": "shard",
    "shards": "shard",
    "shardindex": "shard",
    "tick": "tick",
    "ticks": "tick",
}
ALONE: Final = "only"
Ticks: TypeAlias = Literal[False, True, "only"]
_SHOWN: Final = 5
"""How many of the queues an error names."""


_SURPLUS: Final = (
    "Nothing waits there, so a schedule that sends this, such as shard-{}, is left over: deploy with the ShardIndexes "
    "that `lowkiq stack schedules indexes` prints, or run `lowkiq stack schedules` again."
)


class BadEvent(LowkiqError):
    """The event names nothing that can be drained: send `queue`, `shard`, both, or neither."""


class UnknownShard(BadEvent):
    """No queue that the event asks for has so many shards."""


def selection(
    event: object, drainer: "Drainer", settings: "Settings", without: Collection[ShardRef] = ()
) -> Callable[[], list[ShardRef]]:
    """The shards that the event asks for, of those that there are when this is called.

    Where it names no queue, those of the queues that are this function's to drain. `without`: those that other
    invocations have been started for. None, with a warning, of a shard that no queue has. Raises BadEvent, and
    ConfigError where LOWKIQ_QUEUES names an unknown queue.
    """
    if settings.named_queues:
        _check_own(settings.named_queues, drainer)

    def select() -> list[ShardRef]:
        most = {shards[0].queue_name: shards.layout.most for shards in drainer.layout}
        candidates = [shard for shard in selected(event, drainer.shards(), most) if shard not in without]
        if isinstance(event, Mapping) and "queue" in event:
            return candidates
        return [shard for shard in candidates if settings.drains(shard.queue_name)]

    try:
        select()
    except UnknownShard:
        # The queue may have been given more than the code declares.
        is_known = drainer.learn((shards[0].queue_name for shards in drainer.layout), drainer.config.redis_retry_for)
        try:
            select()
        except UnknownShard as error:
            if not (is_known and isinstance(event, Mapping) and event["shard"] >= 0):
                raise
            # No failure, which would ring each minute while no job is late: fewer shards than ShardIndexes do no harm.
            logger.warning("%s %s", error, _SURPLUS.format(event["shard"]))
            return list
    return select


def selected(event: object, shards: Sequence[ShardRef], most: Mapping[str, int] | None = None) -> list[ShardRef]:
    """Those of the app's shards that the event asks for. Raises BadEvent.

    `most`: how many shards a queue has had or may get, by its name. A shard below that which it does not have is none.
    """
    if not isinstance(event, Mapping):
        raise BadEvent(f"The event must be an object, such as {{}} or {{'shard': 3}}, not {_kind(event)}.")
    _check_names(event)
    generation_of(event)
    candidates = list(shards)
    if "queue" in event:
        candidates = _of_queue(event["queue"], shards)
    if "shard" in event:
        candidates = _at_index(event["shard"], candidates, event.get("queue"), most or {})
    return candidates


def ticks(event: object) -> Ticks:
    """Whether the app's tick comes before the drain, or is all that is asked for. Raises BadEvent."""
    if not isinstance(event, Mapping):
        return False
    tick: Ticks = event.get("tick", False)
    if tick == ALONE or isinstance(tick, bool):
        return tick
    raise BadEvent(f"The event's tick must be true, false or 'only', not {_kind(tick)}.")


def generation_of(event: Mapping[str, Any]) -> int:
    """How many drains in a row started one another before the one that is given this event. Raises BadEvent."""
    generation = event.get("generation", 0)
    if not isinstance(generation, int) or isinstance(generation, bool) or generation < 0:
        raise BadEvent(f"The event's generation must be a whole number from 0 on, not {_kind(generation)}.")
    return generation


def _check_own(names: frozenset[str], drainer: "Drainer") -> None:
    """A function that drained nothing for a slip of the pen would look idle."""
    unknown = names - {shards[0].queue_name for shards in drainer.layout}
    if unknown:
        raise ConfigError(f"LOWKIQ_QUEUES names {min(unknown)!r}, and this app has no such queue.", setting="queues")


def _check_names(event: Mapping[Any, Any]) -> None:
    """All shards are a lot to drain for a slip of the pen."""
    for name in event:
        meant = _MEANT.get(str(name).strip().lower().replace("_", "").replace("-", ""))
        if meant is not None and name != meant:
            raise BadEvent(f"The event has {name!r}: did you mean {meant!r}?")


def _of_queue(name: object, shards: Sequence[ShardRef]) -> list[ShardRef]:
    if not isinstance(name, str):
        raise BadEvent(f"The event's queue must be the name of a queue, not {_kind(name)}.")
    matches = [shard for shard in shards if shard.queue_name == name]
    if not matches:
        names = list(dict.fromkeys(repr(shard.queue_name) for shard in shards))
        more = f" and {len(names) - _SHOWN} more" if names[_SHOWN:] else ""
        raise BadEvent(
            f"The event's queue {name!r:.200} is unknown: this app has {', '.join(names[:_SHOWN])}{more}. If a "
            "schedule sends it, leave the queue out of QueueSchedules, or run `lowkiq stack schedules` again."
        )
    return matches


def _at_index(
    index: object, shards: Sequence[ShardRef], queue: str | None, announced: Mapping[str, int]
) -> list[ShardRef]:
    if not isinstance(index, int) or isinstance(index, bool):
        raise BadEvent(f"The event's shard must be a whole number, not {_kind(index)}.")
    matches = [shard for shard in shards if shard.index == index]
    most = max((max(shard.shards_count, announced.get(shard.queue_name, 0)) for shard in shards), default=0)
    if not (matches or 0 <= index < most):
        whose = "of any queue here" if queue is None else f"of {queue!r}"
        raise UnknownShard(f"The event's shard {index} is not a shard {whose}: they count from 0 to {most - 1}.")
    return matches


def _kind(value: object) -> str:
    return "null" if value is None else f"{value!r:.50} ({type(value).__name__})"

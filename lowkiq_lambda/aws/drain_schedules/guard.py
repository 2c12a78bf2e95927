"""The drift guard, before a deploy: data in Redis that the new code could not reach. Writes nothing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from msgspec.structs import asdict

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.operate.inspect.declared_queues import declared_queues
from lowkiq_lambda.operate.inspect.metrics import queue_metrics
from lowkiq_lambda.store.shard.declarations import AutoDeclaration, Declaration, read_registered, readable_shards
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views.queues import Metrics

_SHARDS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Held:
    """What a shard holds, in ids."""

    waiting: int = 0
    in_flight: int = 0
    morgue: int = 0

    def __bool__(self) -> bool:
        return bool(self.waiting or self.in_flight or self.morgue)

    def __add__(self, other: "Held") -> "Held":
        return Held(self.waiting + other.waiting, self.in_flight + other.in_flight, self.morgue + other.morgue)


@dataclass(frozen=True, slots=True)
class QueueFound:
    """A queue as Redis has it: what it was made with, and what its shards hold; None where that cannot be told."""

    name: str
    made_with: Mapping[str, object]
    shards: tuple[Held, ...] | None
    accepts: tuple[int, ...] = ()
    """The counts of shards that code may declare, of a queue that was resharded, or is."""

    @property
    def occupied(self) -> tuple[int, ...]:
        """The indexes of its shards that hold something."""
        return tuple(index for index, held in enumerate(self.shards or ()) if held)


@dataclass(frozen=True, slots=True)
class Stranded:
    """A queue that the new code does not serve, the shards of it that hold something, and what to do."""

    queue_name: str
    shards: tuple[int, ...]
    sentence: str


def find_stranded(
    code: Mapping[str, Declaration], queues: Iterable[QueueFound], ignored: Sequence[str] = ()
) -> list[Stranded]:
    """What a deploy of the code would strand; it declares queues by their names.

    `ignored` are names, or patterns with `*`, of queues that other apps serve: they count only where the code
    declares them too.
    """
    ordered = sorted(queues, key=lambda queue: queue.name)
    mismatched = [_mismatched(queue, code[queue.name]) for queue in ordered if _disagrees(queue, code)]
    left = [
        _left(queue)
        for queue in ordered
        if queue.name not in code
        and (queue.occupied or queue.shards is None)
        and not any(fnmatchcase(queue.name, pattern) for pattern in ignored)
    ]
    return [*mismatched, *left]


def _disagrees(queue: QueueFound, code: Mapping[str, Declaration]) -> bool:
    if queue.name not in code:
        return False
    declared = asdict(code[queue.name])
    if isinstance(code[queue.name], AutoDeclaration) or declared["shards_count"] in queue.accepts:
        declared["shards_count"] = queue.made_with.get("shards_count")
    return declared != dict(queue.made_with)


def _mismatched(queue: QueueFound, declared: Declaration) -> Stranded:
    here, there = asdict(declared), queue.made_with
    names = sorted(name for name in {*here, *there} if here.get(name) != there.get(name))
    now = ", ".join(f"{name}={here.get(name)!r}" for name in names)
    then = ", ".join(f"{name}={there.get(name)!r}" for name in names)
    begin = f"Queue {queue.name!r} was made with {then}, and the code declares {now}"
    restore = f"Restore {then}; or "
    if names == ["shards_count"]:
        move = f"`lowkiq reshard {queue.name} --to {declared.shards_count} --announce`"
        restore += f"move the queue while it is in use: run {move} and go on as docs/resharding.md says; or "
    if queue.shards is not None and not queue.occupied:
        sentence = (
            f"{begin}: it is empty, but every push and drain of this code would be refused. "
            f"{restore}give the worker another queue_name."
        )
    else:
        sentence = (
            f"{begin}: every push and drain of this code would be refused, and {_contents(queue)} would be stranded. "
            f"{restore}give the worker another queue_name, and let a worker with the old declaration push "
            "what is left over to it."
        )
    return Stranded(queue.name, queue.occupied, sentence)


def _left(queue: QueueFound) -> Stranded:
    made_with = f"queue_name={queue.name!r} and shards_count={queue.made_with.get('shards_count')!r}"
    sentence = (
        f"Queue {queue.name!r} has no worker in the code: {_contents(queue)} would be stranded. "
        f"Keep a worker with {made_with} until it is empty; or, if another app serves it, "
        f"say --ignore-queue {queue.name!r}."
    )
    return Stranded(queue.name, queue.occupied, sentence)


def _contents(queue: QueueFound) -> str:
    if queue.shards is None:
        return "whatever it holds"
    total = sum(queue.shards, Held())
    counts = [
        f"{total.waiting:,} waiting" if total.waiting else "",
        f"{total.in_flight:,} in flight" if total.in_flight else "",
        f"{total.morgue:,} in the morgue" if total.morgue else "",
    ]
    return f"what it holds ({', '.join(filter(None, counts))}; {_shards(queue.occupied)})"


def _shards(indexes: Sequence[int]) -> str:
    numbers = ", ".join(map(str, indexes[:_SHARDS_SHOWN]))
    more = len(indexes) - _SHARDS_SHOWN
    return f"shard{'s' if len(indexes) > 1 else ''} {numbers}{f' and {more} more' if more > 0 else ''}"


def declarations_of(app: Lowkiq) -> dict[str, Declaration]:
    """What the code says of each of its queues."""
    return {name: queue.declaration for name, queue in app.core.queues.items()}


def queues_in_redis(app: Lowkiq) -> list[QueueFound]:
    """Every queue in the app's Redis, of any program, with the contents of its shards. Raises BackendError."""
    declared = declared_queues(app.core.backend, app.config.redis_retry_for)
    shards = {name: readable_shards(name, there, app.core.backend.prefix) for name, there in declared.items()}
    readable = {name: counts for name, counts in shards.items() if counts}
    # One round trip for each node, for all of them.
    measured = queue_metrics(ShardReader(app.core.backend, app.config.redis_retry_for), list(readable.values()))
    held = {
        name: _by_index(own, numbers.shards) for (name, own), numbers in zip(readable.items(), measured, strict=True)
    }
    return [
        QueueFound(name, there.made_with, held.get(name), there.layout.accepts if there.layout else ())
        for name, there in declared.items()
    ]


def shards_counts(app: Lowkiq) -> dict[str, int]:
    """How many indexes the app's queues have that were resharded, or are to be, by name. Raises BackendError."""
    counts = (
        (name, queue, read_registered(app.core.backend, name, app.config.redis_retry_for))
        for name, queue in app.core.queues.items()
    )
    return {
        name: there.layout.most
        for name, queue, there in counts
        if there and there.layout and there.agrees(queue.declaration)
    }


def _by_index(shards: Sequence[ShardRef], numbers: Sequence[Metrics]) -> tuple[Held, ...]:
    """What a drain of each index finds: while a queue is resharded two shards have the same."""
    held = [Held()] * max(shard.shards_count for shard in shards)
    for shard, metrics in zip(shards, numbers, strict=True):
        held[shard.index] += _held(metrics)
    return tuple(held)


def _held(shard: Metrics) -> Held:
    return Held(waiting=shard.length, in_flight=shard.in_flight, morgue=shard.morgue_length)

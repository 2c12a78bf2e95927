"""The numbers that holders have found for a queue whose worker leaves them to the library."""

from typing import TYPE_CHECKING, Any

import msgspec

from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.operate.inspect.declared_queues import shard_notes

if TYPE_CHECKING:
    from lowkiq_lambda.store.shard.reader import ShardReader


class Tuned(msgspec.Struct, frozen=True):
    """`calls` at once in a shard, and `ids` of a call, the most of all shards; None where the worker says them."""

    calls: int | None = None
    ids: int | None = None

    def __str__(self) -> str:
        """In words.

        >>> str(Tuned(7, 40))
        'concurrency 7 (auto), batch size 40 (auto)'
        """
        calls = [] if self.calls is None else [f"concurrency {self.calls} (auto)"]
        ids = [] if self.ids is None else [f"batch size {self.ids} (auto)"]
        return ", ".join([*calls, *ids])


def is_tuned(worker: type[Worker[Any]]) -> bool:
    """Whether the worker leaves a number to its holders."""
    return not (isinstance(worker.concurrency, int) and isinstance(worker.batch_size, int))


def read_tuned(reader: "ShardReader", worker: type[Worker[Any]]) -> Tuned:
    """The numbers of holders, or those to begin with; no command where the worker says both. Raises BackendError."""
    if not is_tuned(worker):
        return Tuned()
    layout = reader.shards.layout
    (notes,) = shard_notes(reader.backend, [[reader.shards[number] for number in layout.live]])
    calls = None if isinstance(worker.concurrency, int) else notes.calls or _first(worker.concurrency)
    ids = None if isinstance(worker.batch_size, int) else notes.ids or _first(worker.batch_size)
    return Tuned(calls, ids)


def calls_now(reader: "ShardReader", worker: type[Worker[Any]] | None) -> int:
    """How many calls of a shard run at once now, at most; 1 for a queue without a worker. Raises BackendError."""
    if worker is None:
        return 1
    return worker.concurrency if isinstance(worker.concurrency, int) else read_tuned(reader, worker).calls or 1


def _first(declared: object) -> int:
    """The least of an Auto."""
    return int(getattr(declared, "least", 1))

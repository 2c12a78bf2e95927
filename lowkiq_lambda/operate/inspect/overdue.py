"""Ids that are due, and whose oldest payload has expired: what holds them up keeps the drain from dropping it."""

from collections.abc import Sequence

from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import ReplyShape


class OverdueReply(ReplyShape, frozen=True):
    """The reply of overdue.lua."""

    scripts = ("overdue",)
    count: int


def overdue_ids(reader: ShardReader, shards: Sequence[ShardRef]) -> int:
    """How many there are, of the first thousand that are due in each shard; of shards that are known to use expiries.

    Raises BackendError.
    """
    backend = reader.backend
    requests = [(backend.as_used(shard), (backend.now(shard),)) for shard in shards]
    return sum(OverdueReply.of(reply).count for reply in reader.ask_each("overdue", requests))

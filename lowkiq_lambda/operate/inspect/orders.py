"""Orders of people that go to all shards of a queue."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from lowkiq_lambda.base.errors import ShardClosed
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Argument, Reply


def order_each(
    reader: ShardReader, name: str, shards: Iterable[ShardRef], args_for: Callable[[ShardRef], Sequence[Argument]]
) -> Iterator[tuple[ShardRef, Reply]]:
    """Run the script in one shard after the other; each with its answer. Raises BackendError.

    Those are left out that a move has closed: the shards that have their jobs now are among the others.
    """
    for shard in shards:
        try:
            reply = reader.backend.run(name, shard, args_for(shard), retry_for=reader.retry_for)
        except ShardClosed as error:
            if error.floors is None:
                raise
        else:
            yield shard, reply

"""What was set aside in shards, for people: looked at, and deleted."""

from lowkiq_lambda.store.inspect.id_ranges import Source
from lowkiq_lambda.store.shard.backend import Reply
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.views import DamagedRecord


def damaged_records(source: Source, largest: int) -> list[DamagedRecord]:
    """What is kept, by shard, the oldest first, of each record so many bytes. Raises BackendError."""
    found = source.ask("damaged_records", dict.fromkeys(source.shards, (largest,)))
    return [_damage(shard, item) for shard, reply in found for item in reply]


def delete_damaged(source: Source, last: int) -> int:
    """Delete what has a number up to `last` in each of the shards; how many records that were. Raises BackendError."""
    backend, patience = source.backend, source.patience
    return sum(backend.run("delete_damaged", shard, [last], patience=patience)[1] for shard in source.shards)


def _damage(shard: ShardRef, item: Reply) -> DamagedRecord:
    number, at, key, id_, why, data, size = item
    return DamagedRecord(
        shard=shard.index,
        number=int(number),
        at=float(at),
        key=_text(key),
        id=_text(id_),
        why=_text(why),
        data=data,
        size=int(size),
    )


def _text(told: bytes) -> str:
    return told.decode(errors="backslashreplace")

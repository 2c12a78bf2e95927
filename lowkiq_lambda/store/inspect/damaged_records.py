"""What was set aside in shards, for people: looked at, and deleted."""

from itertools import chain

from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Reply
from lowkiq_lambda.views import DamagedRecord


def damaged_records(reader: ShardReader, largest: int) -> list[DamagedRecord]:
    """What is kept, by shard, the oldest first, of each record so many bytes. Raises BackendError."""
    records = reader.read("damaged_records", dict.fromkeys(reader.shards, (largest,)), _records)
    return [*chain.from_iterable(records)]


def delete_damaged(reader: ShardReader, last: int) -> int:
    """Delete what has a number up to `last` in each of the shards; how many records that were. Raises BackendError."""
    backend, patience = reader.backend, reader.patience
    return sum(backend.run("delete_damaged", shard, [last], patience=patience)[1] for shard in reader.shards)


def _records(shard: ShardRef, reply: Reply) -> list[DamagedRecord]:
    return [_record(shard, item) for item in reply]


def _record(shard: ShardRef, item: Reply) -> DamagedRecord:
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

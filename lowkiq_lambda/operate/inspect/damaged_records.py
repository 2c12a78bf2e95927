"""Reads and deletes the records that were set aside in shards, for people."""

from itertools import chain

from lowkiq_lambda.operate.inspect.orders import order_each
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Reply, ReplyShape
from lowkiq_lambda.views.shards import DamagedRecord


class DamagedRecordReply(ReplyShape, frozen=True):
    """One record in the reply of damaged_records.lua. Numbers are texts."""

    number: bytes
    at: bytes
    key: bytes
    id: bytes
    why: bytes
    data: bytes
    size: bytes


class DamagedRecordsReply(ReplyShape, frozen=True):
    """The reply of damaged_records.lua."""

    scripts = ("damaged_records",)
    records: list[DamagedRecordReply]


class DeleteDamagedReply(ReplyShape, frozen=True):
    """The reply of delete_damaged.lua."""

    scripts = ("delete_damaged",)
    status: bytes
    deleted: int


def damaged_records(reader: ShardReader, largest: int) -> list[DamagedRecord]:
    """What is kept, by shard, the oldest first, of each record so many bytes. Raises BackendError."""
    records = reader.read("damaged_records", dict.fromkeys(reader.shards, (largest,)), _records)
    return [*chain.from_iterable(records)]


def delete_damaged(reader: ShardReader, last: int) -> int:
    """Delete what has a number up to `last` in each of the shards; how many records that were. Raises BackendError."""
    replies = order_each(reader, "delete_damaged", reader.shards, lambda _: [last])
    return sum(DeleteDamagedReply.of(reply).deleted for _, reply in replies)


def _records(shard: ShardRef, reply: Reply) -> list[DamagedRecord]:
    return [_record(shard, item) for item in DamagedRecordsReply.of(reply).records]


def _record(shard: ShardRef, item: DamagedRecordReply) -> DamagedRecord:
    return DamagedRecord(
        shard=shard.number,
        number=int(item.number),
        at=float(item.at),
        key=_text(item.key),
        id=_text(item.id),
        why=_text(item.why),
        data=item.data,
        size=int(item.size),
    )


def _text(stored: bytes) -> str:
    return stored.decode(errors="backslashreplace")

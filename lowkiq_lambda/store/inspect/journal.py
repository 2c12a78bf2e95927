"""Reads the journals of shards."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lowkiq_lambda.journal_views import JournalEntry
from lowkiq_lambda.store.server.faults import unless_error
from lowkiq_lambda.store.server.pipelines import send_each
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader

_items = msgspec.msgpack.Decoder(list[Any]).decode


def read_journals(
    reader: ShardReader, shards: Sequence[ShardRef], after: Mapping[ShardRef, int] | None = None
) -> list[list[JournalEntry]]:
    """For each shard what is in its journal behind the entry of that number, the oldest first. Raises BackendError."""
    known = after or {}
    commands = [
        (shard.keys[0], ("XRANGE", shard.key("journal"), f"{known.get(shard, 0) + 1}-0", "+")) for shard in shards
    ]
    backend = reader.backend
    answers = backend.retrying(
        reader.retry_for, lambda: [unless_error(answer) for answer in send_each(backend.client, commands)]
    )
    return [[_entry(shard, *pair) for pair in answer] for shard, answer in zip(shards, answers, strict=True)]


def _entry(shard: ShardRef, stream_id: bytes, pairs: Sequence[bytes]) -> JournalEntry:
    fields = dict(zip(pairs[::2], pairs[1::2], strict=True))
    return JournalEntry(
        shard=shard.number,
        number=int(stream_id.partition(b"-")[0]),
        kind=fields[b"kind"].decode(),
        at=float(fields[b"time"]),
        token=fields[b"token"],
        call=fields[b"call"].decode(),
        items=_items(fields[b"body"]),
    )

"""Reads the journals of shards, and the places of the payloads in their entries."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from lowkiq_lambda.base.errors import ShardDamaged
from lowkiq_lambda.store.server.faults import unless_error
from lowkiq_lambda.store.server.pipelines import Command, send_each
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import ReplyShape
from lowkiq_lambda.views.journal import JournalEntry


class PlacesReply(ReplyShape, frozen=True):
    """The reply of places.lua for each id, one behind the other: arrival numbers."""

    scripts = ("places",)
    waiting: list[int]
    in_flight: list[int]
    dead: list[int]


class JournalUntil(NamedTuple):
    """Until when all is written into a journal (Unix seconds, 0: it is not), and whether its shard is closed.

    `written`: the number of the last entry that was written.
    """

    until: float
    is_closed: bool
    written: int


UNREADABLE: Final = "unreadable"
"""The kind of an unreadable entry."""
_IDS_AT_ONCE: Final = 200
_items = msgspec.msgpack.Decoder(list[Any]).decode


def read_journals(
    reader: ShardReader, shards: Sequence[ShardRef], after: Mapping[ShardRef, int] | None = None
) -> list[list[JournalEntry]]:
    """For each shard what is in its journal after the entry of that number, the oldest first. Raises BackendError."""
    positions = after or {}
    commands = [(shard, ("XRANGE", shard.key("journal"), f"{positions.get(shard, 0) + 1}-0", "+")) for shard in shards]
    try:
        answers = asked(reader, commands)
    except ShardDamaged:
        for shard in shards:
            reader.backend.mender.mend(shard)
        answers = asked(reader, commands)
    return [[_entry(shard, *pair) for pair in answer] for shard, answer in zip(shards, answers, strict=True)]


def read_levels(reader: ShardReader, shards: Sequence[ShardRef]) -> list[JournalUntil]:
    """How much each shard writes into its journal. Raises BackendError."""
    fields = ("journal_until", "closed", "journal_seq")
    answers = asked(reader, [(shard, ("HMGET", shard.key("meta"), *fields)) for shard in shards])
    return [
        JournalUntil(float(until or 0), is_closed=closed is not None, written=int(number or 0))
        for until, closed, number in answers
    ]


def read_places(reader: ShardReader, shard: ShardRef, ids: Sequence[str]) -> dict[str, PlacesReply]:
    """Arrival numbers of what of each id waits, is in flight, and lies in the morgue. Raises BackendError."""
    parts = [ids[start : start + _IDS_AT_ONCE] for start in range(0, len(ids), _IDS_AT_ONCE)]
    replies: dict[str, PlacesReply] = {}
    for part in parts:
        (reply,) = reader.ask_each("places", [(shard, part)])
        for number, job_id in enumerate(part):
            replies[job_id] = PlacesReply.of(reply[3 * number : 3 * number + 3])
    return replies


def asked(reader: ShardReader, commands: Sequence[tuple[ShardRef, Command]]) -> list[Any]:
    """The answers to commands, each about a shard, in one round trip for each node. Raises BackendError."""
    calls, client = [(shard.keys[0], command) for shard, command in commands], reader.backend.client
    return reader.backend.retrying(
        reader.retry_for, lambda: [unless_error(answer) for answer in send_each(client, calls)]
    )


def _entry(shard: ShardRef, stream_id: bytes, pairs: Sequence[bytes]) -> JournalEntry:
    fields = dict(zip(pairs[::2], pairs[1::2], strict=True))
    try:
        kind, items = fields[b"kind"].decode(), _items(fields[b"body"])
    except ValueError:
        # It names an id that is not a text, as only a damaged record does.
        kind, items = UNREADABLE, []
    return JournalEntry(
        shard=shard.number,
        shards_count=shard.shards_count,
        number=int(stream_id.partition(b"-")[0]),
        kind=kind,
        at=float(fields[b"time"]),
        token=fields[b"token"],
        call=fields[b"call"].decode(),
        items=items,
    )

"""What becomes of schedule entries when a queue gets other shards: each goes to the shard that its id has then."""

from collections import defaultdict
from collections.abc import Callable, Sequence

import msgspec

from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.layout import QueueShards
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Argument, Reply
from lowkiq_lambda.store.shard.timetables import EntryRecordsReply, with_timetable


class _PlacedRecord(msgspec.Struct, frozen=True):
    """The part of a record that says where it belongs, and which of two holds."""

    id: str | None = None
    last: float = 0.0
    known: dict[str, tuple[float, float]] = {}
    on: float = 0.0
    definition: str | None = None
    since: float = 0.0

    @property
    def rank(self) -> tuple[bool, float]:
        """Of two with one name, as after another id in code, the higher one fires nothing that the other has fired."""
        newest = max((since for since, _ in self.known.values()), default=0.0)
        return self.definition is not None, max(self.last, self.on, self.since, newest)


def carry(
    backend: Backend,
    old: Sequence[ShardRef],
    new: QueueShards,
    order: Callable[[str, ShardRef, Sequence[Argument]], None],
    retry_for: float,
) -> None:
    """Give the new shards the records of the old ones, which are closed. `order` calls a script of a new shard.

    A record without an id is that of an entry which was switched off before any shard had seen it: it stays behind.
    """
    if old[0].shards_count == new[0].shards_count:
        return

    def records(_shard: ShardRef, reply: Reply) -> list[tuple[bytes, bytes, _PlacedRecord]]:
        fields = EntryRecordsReply.of(reply).fields
        pairs = zip(fields[::2], fields[1::2], strict=True)
        return [(name, packed, msgspec.msgpack.decode(packed, type=_PlacedRecord)) for name, packed in pairs]

    reader = ShardReader(backend, retry_for)
    found = reader.read("entry_records", dict.fromkeys(with_timetable(old), ()), records)
    by_shard = defaultdict[int, list[Argument]](list)
    # Of one name the last one stays.
    for name, packed, record in sorted((one for of_shard in found for one in of_shard), key=lambda one: one[2].rank):
        if record.id is not None:
            by_shard[new.number_for(record.id)] += [name, packed]
    for shard in with_timetable(new):
        order("carry_entries", shard, by_shard[shard.index])

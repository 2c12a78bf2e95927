"""Schedule entries, for people: the shards' records of them, and changes at run time."""

from collections.abc import Iterable, Sequence
from typing import Annotated, NamedTuple

import msgspec

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.store.shard.backend import Backend, Call
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Argument, Reply, StatusReply
from lowkiq_lambda.store.shard.timetables import EntryRecordsReply

_Time = Annotated[float, msgspec.Meta(ge=0)]


class NotedFiring(msgspec.Struct, frozen=True, array_like=True):
    """A planned time, when it was decided (Unix seconds), and the outcome."""

    planned: float
    at: float
    outcome: str
    let_go: int = 0
    """How many earlier planned times the decision let go: it came in their place, or they were too late as well.

    No more than 100 are counted.
    """


class EntryRecord(msgspec.Struct, frozen=True):
    """A shard's record of an entry, as include/timetable.lua has it."""

    id: str | None = None
    last: float | None = None
    known: dict[str, tuple[_Time, _Time]] = {}
    off: float | None = None
    on: float | None = None
    switched: bool = False
    definition: str | None = None
    digest: str | None = None
    since: float | None = None
    history: tuple[NotedFiring, ...] = ()

    @property
    def seen_at(self) -> float | None:
        """When some code last declared it."""
        return max((at for _, at in self.known.values()), default=None)


class EntryRow(NamedTuple):
    """A record with its place."""

    shard: ShardRef
    name: str
    record: EntryRecord


class EntryStore:
    """The calls about the entries of some shards, which have the key for them."""

    def __init__(self, backend: Backend, retry_for: float) -> None:
        self._backend = backend
        self._retry_for = retry_for

    def rows(self, shards: Iterable[ShardRef]) -> list[EntryRow]:
        """All records of the shards: one round trip for each node. Raises BackendError."""
        reader = ShardReader(self._backend, self._retry_for)
        rows_of_shards = reader.read("entry_records", dict.fromkeys(shards, ()), rows_in)
        return [row for rows in rows_of_shards for row in rows]

    def put(  # noqa: PLR0913 - what a record is made of
        self, shard: ShardRef, name: str, definition: bytes, digest: str, id: str, *, switch: str
    ) -> str:
        """Make the entry; `switch`: "off" or "on" as somebody switched it elsewhere, if it is new there, or "".

        "OK", "DECLARED" or "FULL", as put_entry.lua has it. Raises BackendError.
        """
        return self._call("put_entry", shard, [name, definition, digest, id, switch])

    def remove(self, shard: ShardRef, name: str) -> bool:
        """Remove an entry made at run time; whether there was one. Raises BackendError."""
        return self._call("remove_entry", shard, [name]) == "OK"

    def switch(self, shard: ShardRef, name: str, *, on: bool, is_declared: bool, starts_off: bool) -> bool:
        """Switch the entry; whether it exists. An entry that no code declares must have a record.

        `starts_off`: its declaration has it off until somebody switches it on. Raises BackendError.
        """
        flags = ["1" if flag else "" for flag in (on, is_declared, starts_off)]
        return self._call("switch_entry", shard, [name, *flags]) != "NONE"

    def note_runs(self, places: Iterable[tuple[ShardRef, str]], outcome: str) -> None:
        """Note in the histories of these entries that a person ran them: one round trip for each node.

        Raises BackendError.
        """
        self._call_each([("note_run", shard, [name, outcome]) for shard, name in places])

    def remove_each(self, places: Iterable[tuple[ShardRef, str]]) -> None:
        """Remove these entries made at run time: one round trip for each node. Raises BackendError."""
        self._call_each([("remove_entry", shard, [name]) for shard, name in places])

    def _call_each(self, calls: Sequence[Call]) -> None:
        for reply in self._backend.run_each(calls) if calls else []:
            if isinstance(reply, LowkiqError):
                raise reply

    def _call(self, script: str, shard: ShardRef, args: Sequence[Argument]) -> str:
        reply = self._backend.run(script, shard, args, retry_for=self._retry_for)
        return StatusReply.of(reply).status.decode()


def rows_in(shard: ShardRef, reply: Reply) -> list[EntryRow]:
    """The records in a reply of entry_records.lua."""
    fields = EntryRecordsReply.of(reply).fields
    pairs = zip(fields[::2], fields[1::2], strict=True)
    return [EntryRow(shard, name.decode(), _record(packed)) for name, packed in pairs]


def _record(packed: bytes) -> EntryRecord:
    return msgspec.msgpack.decode(packed, type=EntryRecord)

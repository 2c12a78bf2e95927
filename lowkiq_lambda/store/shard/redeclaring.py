"""Another declaration for a queue without jobs: close the shards of the old one, replace it, open those of the new.

Each call closes and opens shards under a generation of its own, and a shard rejects every generation that is older
than its last one. So a call may break off anywhere, several may run at once, and their commands may arrive late: two
declarations are never in use at once. docs/lease.md has the proof.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import asdict

from lowkiq_lambda.base.errors import QueueMismatch
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.declarations import (
    Declaration,
    Registered,
    mismatch,
    next_generation,
    register,
    replace_registered,
    shards_of,
)
from lowkiq_lambda.store.shard.keys import IN_USE, RECEIPTS, ShardRef
from lowkiq_lambda.store.shard.layout import QueueShards
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Argument, Reply, StatusReply
from lowkiq_lambda.store.shard.timetables import EntryRecordsReply, with_timetable

_CHANGEABLE: Final = ("shards_count", "merge")


def redeclare(backend: Backend, shards: QueueShards, declaration: Declaration, retry_for: float) -> None:
    """Replace the declaration of a queue without jobs by one with another `shards_count` or `merge`.

    Another call, with either declaration, finishes a change that broke off. Raises QueueMismatch if jobs are left, if
    the codec differs, or if another call came between; and BackendError.
    """
    change = _Change(backend, shards, declaration, retry_for)
    change.begin()
    if change.there.changing:
        change.close_old()
        change.carry_entries()
        change.replace(change.there.settled(declaration))
    change.open()


class _Change:
    """One call of `redeclare`; `there` is the declaration that it registered last."""

    there: Registered

    def __init__(self, backend: Backend, shards: QueueShards, declaration: Declaration, retry_for: float) -> None:
        self._backend = backend
        self._shards = shards
        self._declaration = declaration
        self._retry_for = retry_for
        self._queue_name = shards[0].queue_name

    def begin(self) -> None:
        """Register a generation: from then on no other call's closing, replacing or opening counts."""
        while True:
            before, _ = register(self._backend, self._shards, self._declaration, self._retry_for)
            if before.is_moving:
                raise self._is_moving()
            if _lasting(before.made_with) != _lasting(asdict(self._declaration)):
                raise mismatch(self._queue_name, self._declaration, before, self._backend.prefix)
            generation = next_generation(self._backend, self._shards[0], before.generation)
            begun = Registered(before.made_with, generation, changing=not before.is_made_with(self._declaration))
            if self._swap(before, begun):
                self.there = begun
                return

    def close_old(self) -> None:
        """Close the shards of the old declaration, or open them again if one has jobs."""
        old = [
            shard.using((RECEIPTS, *IN_USE))
            for shard in shards_of(self._queue_name, self.there.made_with, prefix=self._backend.prefix)
        ]
        statuses = {shard: self._order("close", shard) for shard in old}
        if b"STALE" in statuses.values():
            raise self._overtaken()
        occupied = [shard for shard, status in statuses.items() if status == b"JOBS"]
        if occupied:
            self._stay_with(old)
            raise self._has_jobs(occupied)

    def carry_entries(self) -> None:
        """Give the schedule entries to the shards of the new declaration."""

        def order(script: str, shard: ShardRef, args: Sequence[Argument]) -> None:
            if self._order(script, shard, *args) == b"STALE":
                raise self._overtaken()

        old = shards_of(self._queue_name, self.there.made_with, prefix=self._backend.prefix)
        carry(self._backend, old, self._shards, order, self._retry_for)

    def replace(self, new: Registered) -> None:
        """Replace the declaration that this call has registered."""
        if not self._swap(self.there, new):
            raise self._overtaken()
        self.there = new

    def open(self, shards: Sequence[ShardRef] = ()) -> None:
        """Open the shards of the declaration; only once it is registered."""
        merge = self.there.made_with["merge"]
        if b"STALE" in [self._order("open", shard, merge) for shard in shards or self._shards]:
            raise self._overtaken()

    def _stay_with(self, old: Sequence[ShardRef]) -> None:
        stays = Registered(self.there.made_with, self.there.generation)
        self.replace(stays)
        self.open(old)

    def _swap(self, before: Registered, after: Registered) -> bool:
        return replace_registered(self._backend, self._queue_name, before, after, self._retry_for)

    def _order(self, name: str, shard: ShardRef, *args: Argument) -> bytes:
        reply = self._backend.run(name, shard, [self.there.generation, *args], retry_for=self._retry_for)
        return StatusReply.of(reply).status

    def _is_moving(self) -> QueueMismatch:
        return QueueMismatch(
            f"Queue {self._queue_name!r} is being resharded. Let `lowkiq reshard` end, or walk back by its --abort.",
            queue_name=self._queue_name,
        )

    def _overtaken(self) -> QueueMismatch:
        return QueueMismatch(
            f"Queue {self._queue_name!r} was declared anew by another call at the same time. Check its declaration, "
            "and call app.redeclare again if you want another.",
            queue_name=self._queue_name,
        )

    def _has_jobs(self, occupied: Sequence[ShardRef]) -> QueueMismatch:
        indexes = ", ".join(str(shard.number) for shard in occupied)
        old = ", ".join(f"{name}={self.there.made_with[name]!r}" for name in _CHANGEABLE)
        return QueueMismatch(
            f"Queue {self._queue_name!r} still has jobs, waiting, in flight or in the morgue (shards {indexes}). Drain "
            f"them with {old}, and requeue or delete the jobs in the morgue.",
            queue_name=self._queue_name,
        )


def _lasting(made_with: Any) -> dict[str, Any]:  # noqa: ANN401 - a mapping of any values
    """The terms that no call may change."""
    return {name: value for name, value in made_with.items() if name not in _CHANGEABLE}


class _PlacedRecord(msgspec.Struct, frozen=True):
    """The part of a record that has its place, and decides which of two holds."""

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
    entries = reader.read("entry_records", dict.fromkeys(with_timetable(old), ()), records)
    by_shard = defaultdict[int, list[Argument]](list)
    # Of one name the last one stays.
    for name, packed, record in sorted((one for of_shard in entries for one in of_shard), key=lambda one: one[2].rank):
        if record.id is not None:
            by_shard[new.number_for(record.id)] += [name, packed]
    for shard in with_timetable(new):
        order("carry_entries", shard, by_shard[shard.index])

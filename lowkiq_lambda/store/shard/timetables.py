"""The shards' records of schedule entries, for processes that fire them; docs/schedules.md has the promises.

A planned time is decided by one script in the shard of its job: it compares the time with the entry's last one, writes
that down, and pushes. So processes need no leader and no lock, and a time is decided once.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.store.shard.backend import Backend, Call
from lowkiq_lambda.store.shard.keys import EXPIRY, TIMETABLE, ShardRef
from lowkiq_lambda.store.shard.scripts import Argument, Reply, ReplyShape

if TYPE_CHECKING:
    from lowkiq_lambda.store.shard.chunks import NewJob

MISSED: Final = "missed"
"""The note of a planned time that never fires."""
PUBLISHED: Final = 2
"""The `sooner` of a reply of fire.lua if the script has published that by itself."""


class DeclaredEntry(NamedTuple):
    """An entry that code declares: its name, the digest of its times, and the id of its job."""

    name: str
    digest: str
    id: str


class DeclaredReply(ReplyShape, frozen=True):
    """Of an entry that the call named; only planned times after `floor` may fire."""

    name: bytes
    floor: bytes
    switch: bytes


class MadeReply(ReplyShape, frozen=True):
    """Of an entry that was made at run time; `since` its times count."""

    name: bytes
    definition: bytes
    digest: bytes
    floor: bytes
    since: bytes
    switch: bytes


class AgendaReply(ReplyShape, frozen=True):
    """The reply of agenda.lua."""

    scripts = ("agenda",)
    status: bytes
    declared: list[DeclaredReply]
    made: list[MadeReply]


class FireReply(ReplyShape, frozen=True):
    """The reply of fire.lua; all but FIRED without the rest."""

    scripts = ("fire",)
    status: bytes
    outcome: bytes
    sooner: int
    due_at: bytes


class EntryRecordsReply(ReplyShape, frozen=True):
    """The reply of entry_records.lua: names and records by turns."""

    scripts = ("entry_records",)
    fields: list[bytes]


class Firing(NamedTuple):
    """A planned time of an entry, and the decision to write: a push of `job`, or a note if there is no job."""

    shard: ShardRef
    name: str
    digest: str
    planned: float
    job: "NewJob | None" = None
    merge: str = ""
    skips: bool = False
    """Push nothing while the id waits or is in flight."""
    let_go: int = 0
    """How many earlier planned times are let go with it."""


def with_timetable(shards: Sequence[ShardRef]) -> list[ShardRef]:
    """The same shards, with the key that holds their entries."""
    return [replace(shard, features=(*shard.features, TIMETABLE)) for shard in shards]


def agendas(
    backend: Backend, declared: Sequence[tuple[ShardRef, Sequence[DeclaredEntry]]]
) -> list[AgendaReply | LowkiqError]:
    """The record of entries in each of these shards: one round trip for each node.

    Notes in the shards that their entries are declared.
    """
    calls: list[Call] = [("agenda", shard, [*chain.from_iterable(entries)]) for shard, entries in declared]
    return [reply if isinstance(reply, LowkiqError) else AgendaReply.of(reply) for reply in _run(backend, calls)]


def fire(backend: Backend, firings: Sequence[Firing]) -> list[FireReply | LowkiqError]:
    """Decide these planned times, at most one of each entry: one round trip for each node. Not tried again.

    If an answer is lost, the time may have been decided all the same: then the next agenda has it as the floor.
    """
    calls: list[Call] = [("fire", _shard_of(firing), _arguments(firing)) for firing in firings]
    return [reply if isinstance(reply, LowkiqError) else FireReply.of(reply) for reply in _run(backend, calls)]


def _shard_of(firing: Firing) -> ShardRef:
    """Its shard, with the keys that the job needs."""
    expires = firing.job is not None and firing.job.expires_at is not None
    return firing.shard.using((EXPIRY,)) if expires else firing.shard


def _arguments(firing: Firing) -> list[Argument]:
    arguments: list[Argument] = [firing.name, firing.digest, repr(firing.planned), firing.let_go]
    job = firing.job
    if job is None:
        return [*arguments, MISSED]
    channel = firing.shard.channel
    skips = "1" if firing.skips else ""
    return [*arguments, "push", firing.merge, skips, channel, firing.shard.number, job.id, job.packed]


def _run(backend: Backend, calls: Sequence[Call]) -> list[Reply | LowkiqError]:
    return backend.run_each(calls) if calls else []

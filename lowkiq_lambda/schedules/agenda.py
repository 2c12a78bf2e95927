"""The entries to be fired now: those of code and of shards, with the floors of the shards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from lowkiq_lambda.base.errors import (
    BackendUnavailable,
    DeclarationError,
    LowkiqError,
    QueueMismatch,
    ShardClosed,
    is_of_move,
)
from lowkiq_lambda.schedules.entry import ScheduleEntry
from lowkiq_lambda.store.shard.timetables import AgendaReply, DeclaredEntry, MadeReply, agendas, with_timetable

if TYPE_CHECKING:
    from lowkiq_lambda.core import Core
    from lowkiq_lambda.engine.queue import Queue
    from lowkiq_lambda.schedules.entry import Timetable
    from lowkiq_lambda.store.shard.keys import ShardRef
    from lowkiq_lambda.store.shard.layout import QueueShards

Key = tuple[str, str]
"""Queue and name of an entry."""


class Candidate(NamedTuple):
    """An entry, and its state on its shard: only planned times after `floor` may fire."""

    entry: ScheduleEntry
    queue: "Queue"
    shard: "ShardRef"
    digest: str
    floor: float

    @property
    def label(self) -> str:
        """Its name in logs."""
        return named(self.entry.queue_name, self.entry.name)


@dataclass(slots=True)
class Problems:
    """Problems that keep entries from firing, a sentence for each. The other entries still fire."""

    sentences: list[str] = field(default_factory=list)

    def note(self, what: str, error: object) -> None:
        """An entry, or a shard, has this problem."""
        sentence = f"{what}: {error}"
        if sentence not in self.sentences:
            self.sentences.append(sentence)


class AgendaReader:
    """Asks the shards of an app's queues what there is to fire."""

    def __init__(self, core: "Core", timetable: "Timetable") -> None:
        self._core = core
        self._timetable = timetable
        self._shards: dict[str, tuple[QueueShards, list[ShardRef]]] = {}

    def candidates(self, problems: Problems) -> list[Candidate]:
        """The entries that are on. Raises BackendError if no shard can be asked."""
        queues = self._queues(problems)
        digests = self._digests(queues, problems)
        requests = [(shard, digests.get(shard, [])) for queue in queues.values() for shard in self.shards_of(queue)]
        replies = agendas(self._core.backend, requests)
        if replies and all(isinstance(reply, BackendUnavailable) and not is_of_move(reply) for reply in replies):
            raise next(reply for reply in replies if isinstance(reply, LowkiqError))
        declared: dict[Key, Candidate | None] = {}
        at_run_time: dict[Key, tuple[float, Candidate | None]] = {}
        for (shard, entries), reply in zip(requests, replies, strict=True):
            queue = queues[shard.queue_name]
            if isinstance(reply, LowkiqError):
                if isinstance(reply, ShardClosed):
                    queue.doubt_for(shard)
                if is_of_move(reply):
                    # Its entries are on their way to another shard, or are there.
                    continue
                problems.note(f"shard {shard.number} of {shard.queue_name!r}", reply)
                continue
            declared |= self._declared(queue, shard, entries, reply)
            for row in reply.made:
                self._add_made(at_run_time, queue, shard, row, problems)
        return _together(declared, at_run_time, problems)

    def shards_of(self, queue: "Queue") -> list["ShardRef"]:
        """The shards of a queue, with the key of their entries."""
        name = queue.worker.queue_name
        if name not in self._shards or self._shards[name][0] is not queue.shards:
            self._shards[name] = queue.shards, with_timetable(queue.shards)
        return self._shards[name][1]

    def _queues(self, problems: Problems) -> dict[str, "Queue"]:
        queues = {}
        for worker in self._core.queues.workers:
            try:
                queues[worker.queue_name] = self._core.queues.agreed(worker)
            except QueueMismatch as error:
                problems.note(f"queue {worker.queue_name!r}", error)
        return queues

    def _digests(self, queues: Mapping[str, "Queue"], problems: Problems) -> dict["ShardRef", list[DeclaredEntry]]:
        """The declared entries of each shard."""
        by_shard: dict[ShardRef, list[DeclaredEntry]] = {}
        for entry in self._timetable:
            queue = queues.get(entry.queue_name)
            if queue is None:
                continue
            shard = self.shards_of(queue)[queue.shards.number_for(entry.id)]
            try:
                by_shard.setdefault(shard, []).append(DeclaredEntry(entry.name, entry.digest, entry.id))
            except DeclarationError as error:
                problems.note(named(entry.queue_name, entry.name), error)
        return by_shard

    def _declared(
        self, queue: "Queue", shard: "ShardRef", entries: Sequence[DeclaredEntry], reply: AgendaReply
    ) -> dict[Key, Candidate | None]:
        candidates: dict[Key, Candidate | None] = {}
        for (name, digest, _), row in zip(entries, reply.declared, strict=True):
            entry = self._timetable.get(shard.queue_name, name)
            is_on = entry is not None and is_on_by(row.switch, entry)
            candidates[shard.queue_name, name] = (
                Candidate(entry, queue, shard, digest, float(row.floor)) if entry and is_on else None
            )
        return candidates

    @staticmethod
    def _add_made(
        at_run_time: dict[Key, tuple[float, Candidate | None]],
        queue: "Queue",
        shard: "ShardRef",
        row: MadeReply,
        problems: Problems,
    ) -> None:
        name, since = row.name.decode(errors="backslashreplace"), float(row.since)
        key = shard.queue_name, name
        try:
            entry = ScheduleEntry.from_definition(*key, loaded(row.definition))
        except (DeclarationError, msgspec.MsgspecError) as error:
            problems.note(named(*key), error)
            return
        if key in at_run_time and at_run_time[key][0] >= since:
            return
        candidate = Candidate(entry, queue, shard, row.digest.decode(), float(row.floor))
        at_run_time[key] = since, candidate if is_on_by(row.switch, entry) else None


def is_on_by(switch: bytes, entry: ScheduleEntry) -> bool:
    """Whether the entry is on: as somebody switched it, or else as it is declared."""
    return switch == b"on" or (not switch and entry.enabled)


def loaded(definition: bytes | str) -> dict[str, Any]:
    """A definition as it is stored. Raises msgspec.MsgspecError."""
    return msgspec.json.decode(definition, type=dict[str, Any])


def _together(
    declared: Mapping[Key, Candidate | None],
    at_run_time: Mapping[Key, tuple[float, Candidate | None]],
    problems: Problems,
) -> list[Candidate]:
    for key in declared.keys() & at_run_time.keys():
        problems.note(named(*key), "it was made at run time, which counts, and code declares it too: remove one")
    candidates = {**declared, **{key: candidate for key, (_, candidate) in at_run_time.items()}}
    return [candidate for candidate in candidates.values() if candidate]


def named(queue_name: str, name: str) -> str:
    """The name of an entry in logs."""
    return f"entry {name!r} of {queue_name!r}"

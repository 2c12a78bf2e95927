"""The record of a queue's continuous verification: what is recorded now, what was judged of late, what was found.

It is one key of the queue, which the duty alone writes, but for an operator's acknowledgement. It outlives no month
without a duty, and evidence outlives no month at all.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from lowkiq_lambda.operate.verify.rules import Violation
from lowkiq_lambda.store.server.faults import unless_error
from lowkiq_lambda.store.server.pipelines import Command, send_each
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import ShardRef, queue_key
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views.journal import JournalEntry
from lowkiq_lambda.views.verification import DeletedJournal, KeptViolation, Verified

KEPT_FOR: Final = 30 * 86_400
"""Seconds for which evidence is kept, and the record of a queue that no duty verifies any more."""
_HOUR: Final = 3_600
_DAY: Final = 24
"""Hours."""
_MOST_VIOLATIONS: Final = 20
"""So many are kept with their text; the others are counted."""


class Recording(msgspec.Struct):
    """A shard whose journal has everything behind the entry of that number, until a time (Unix seconds)."""

    shards_count: int
    index: int
    after: int
    until: float


class Hour(msgspec.Struct):
    """What was judged in an hour. `passed`, `judged`: seconds of all shards together."""

    number: int
    passed: float = 0.0
    judged: float = 0.0
    payloads: int = 0
    events: int = 0


class VerifyRecord(msgspec.Struct):
    """`credit`: the shard-seconds that may be recorded still, as of `credited_at`. `since`: of the first run."""

    credited_at: float
    credit: float = 0.0
    looked_at: float | None = None
    recordings: list[Recording] = []
    hours: list[Hour] = []
    found: int = 0
    violations: list[KeptViolation] = []
    deleted: list[DeletedJournal] = []
    since: float = 0.0

    def hour(self, now: float) -> Hour:
        """That of this time; those of more than a day ago are forgotten."""
        number = int(now // _HOUR)
        self.hours = [hour for hour in self.hours if number - _DAY < hour.number <= number]
        self.deleted = [one for one in self.deleted if one.at > now - _DAY * _HOUR]
        if not self.hours or self.hours[-1].number != number:
            self.hours.append(Hour(number))
        return self.hours[-1]

    def note(self, now: float, violations: Sequence[Violation], evidence: str) -> None:
        """Keep these, which were found now in a shard; `evidence`: the key of it."""
        self.found += len(violations)
        kept = [
            KeptViolation(
                at=now,
                rule=one.rule,
                id=one.id,
                shard=one.shard,
                shards_count=one.shards_count,
                number=one.number,
                what=one.what,
                evidence=evidence,
            )
            for one in violations
        ]
        self.violations = [*self.violations, *kept][-_MOST_VIOLATIONS:]

    def verified(self, now: float) -> Verified:
        """What people see of it."""
        self.hour(now)
        passed = sum(hour.passed for hour in self.hours)
        return Verified(
            at=now,
            looked_at=self.looked_at,
            span=min(_DAY * _HOUR, now - max(self.since, self.hours[0].number * _HOUR)),
            share=min(1.0, sum(hour.judged for hour in self.hours) / passed) if passed else 0.0,
            payloads=sum(hour.payloads for hour in self.hours),
            events=sum(hour.events for hour in self.hours),
            found=self.found,
            violations=tuple(self.violations),
            deleted=tuple(self.deleted),
        )


_decode: Final = msgspec.json.Decoder(VerifyRecord).decode


def record_key(queue_name: str, prefix: str) -> str:
    """The key of a queue's record."""
    return queue_key(queue_name, "verified", prefix)


def read_records(backend: Backend, queue_names: Sequence[str], retry_for: float) -> list[VerifyRecord | None]:
    """The record of each queue, None if it has none that can be read. Raises BackendError."""
    keys = [record_key(name, backend.prefix) for name in queue_names]
    answers = _asked(backend, [(key, ("GET", key)) for key in keys], retry_for)
    return [_record(answer) for answer in answers]


def write_record(backend: Backend, queue_name: str, record: VerifyRecord, retry_for: float) -> None:
    """Store it. Raises BackendError."""
    key = record_key(queue_name, backend.prefix)
    _asked(backend, [(key, ("SET", key, msgspec.json.encode(record), "EX", KEPT_FOR))], retry_for)


def read_verified(reader: ShardReader) -> Verified | None:
    """What people see of the queue's record, None if it has none. Raises BackendError."""
    first = reader.shards[0]
    (record,) = read_records(reader.backend, [first.queue_name], reader.retry_for)
    return None if record is None else record.verified(reader.backend.now(first))


def acknowledge(reader: ShardReader) -> int:
    """Forget the violations that were found; how many they were. Raises BackendError."""
    name = reader.shards[0].queue_name
    (record,) = read_records(reader.backend, [name], reader.retry_for)
    if record is None or not record.found:
        return 0
    count, record.found, record.violations = record.found, 0, []
    write_record(reader.backend, name, record, reader.retry_for)
    return count


def keep_evidence(
    backend: Backend, shard: ShardRef, now: float, entries: Sequence[JournalEntry], retry_for: float
) -> str:
    """Store the entries that were judged, as JSON without payloads, for a month; the key. Raises BackendError."""
    name = f"evidence:{shard.shards_count}:{shard.index}:{now:.0f}"
    key = queue_key(shard.queue_name, name, backend.prefix)
    _asked(backend, [(key, ("SET", key, _json(entries), "EX", KEPT_FOR))], retry_for)
    return key


def _record(stored: bytes | None) -> VerifyRecord | None:
    try:
        return None if stored is None else _decode(stored)
    except msgspec.MsgspecError:
        return None


def _json(entries: Sequence[JournalEntry]) -> bytes:
    return msgspec.json.encode(
        [{**msgspec.structs.asdict(entry), "token": entry.token.decode(errors="backslashreplace")} for entry in entries]
    )


def _asked(backend: Backend, commands: Sequence[tuple[str, Command]], retry_for: float) -> list[Any]:
    return backend.retrying(retry_for, lambda: [unless_error(answer) for answer in send_each(backend.client, commands)])

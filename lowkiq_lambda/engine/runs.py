"""The runs that a visit's settlings keep, of queues that keep runs (`Worker.keep_runs`)."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, TypeAlias
from zlib import crc32

import msgspec

from lowkiq_lambda.base.fingerprint import fingerprint
from lowkiq_lambda.jobs.job import PLACE, Delivery
from lowkiq_lambda.jobs.keep_runs import MOST_BYTES, KeepRuns
from lowkiq_lambda.store.shard.run_entries import LONGEST, TICKS, VERSION, RunColumns, column, short_id
from lowkiq_lambda.store.shard.scripts import Argument
from lowkiq_lambda.store.shard.session import LeaseSession, OutcomeRecord

ENTRY_RUNS: Final = 1_000
ENTRY_BYTES: Final = 256 * 1024
"""Of payloads, before they are compressed: where more is kept, a settling appends several entries."""
_SHORT: Final = 50
"""Characters: no id of as many has to be cut."""
_SCORE: Final = 8
_NO_OUTCOME: Final = ("saved", "noted", "ended", "some_expired", "rest")
"""The records that stand before an outcome, or for what no handler was given."""


Noted: TypeAlias = tuple[float, float, int, Sequence[Delivery]]
"""A batch that a handler ran: when it began (Unix seconds), how long it took, how many ids it had, and those of them
that an entry is of. A plain tuple, as one is made for each call of a handler."""


class RunKeeper(msgspec.Struct, frozen=True):
    """Makes the runs of visits to one queue's shards.

    `read_error`: gives the text of a stored error.
    """

    kept: KeepRuns
    owner: str
    release: str
    read_error: Callable[[bytes], str]

    def begin(self, session: LeaseSession) -> "PendingRuns":
        """The runs of one visit."""
        return PendingRuns(self, session)

    def limits(self, shards_count: int) -> list[Argument]:
        """What a shard of so many keeps, as include/keep_runs.lua reads it: runs, bytes, seconds."""
        age = "" if self.kept.age is None else self.kept.age
        return [-(-self.kept.runs // shards_count), MOST_BYTES // shards_count, age]


class PendingRuns:
    """Fills while batches run, and gives each settling the runs that it ends."""

    def __init__(self, keeper: RunKeeper, session: LeaseSession) -> None:
        self._keeper = keeper
        self._session = session
        self._limits = keeper.limits(session.shard.shards_count)
        self._noted: list[Noted] = []

    def note(self, began: float, took: float, batch: Sequence[Delivery]) -> None:
        """A batch was run, and its outcomes go with the next settling."""
        self._noted.append((began, took, len(batch), batch))

    def ended(self, outcomes: Sequence[OutcomeRecord], *, is_last: bool = False) -> list[Argument]:
        """The last arguments of the settling with these outcomes; unless it is the last, of these ids alone."""
        by_id = {record[0]: record for record in outcomes if record[1] not in _NO_OUTCOME} if outcomes else {}
        noted = self._noted
        self._noted = []
        if not is_last:
            noted, self._noted = _parted(noted, by_id)
        arguments: list[Argument] = []
        for part in _entries(noted, with_payloads=self._keeper.kept.payloads):
            columns = self._columns(part, by_id)
            arguments += [len(columns.ids), columns.packed()]
        return [*arguments, *self._limits, len(arguments) // 2] if arguments else [0]

    def _columns(self, noted: Sequence[Noted], by_id: dict[str, OutcomeRecord]) -> RunColumns:
        # Each step is for all runs at once: at a batch size of 1 there are a thousand batches, and each pays for it.
        began, took, batches, parts = zip(*noted, strict=True)
        deliveries = [*chain.from_iterable(parts)]
        stored = [delivery.entries for delivery in deliveries]
        ids = [delivery.id for delivery in deliveries]
        keeps_payloads = self._keeper.kept.payloads
        base = min(began)
        errors = _Errors(self._keeper.read_error)
        words: dict[str, int] = {}
        records = [by_id.get(job_id) for job_id in ids] if by_id else []
        outcomes = array("B", [_position(words, record) for record in records])
        failed = array("H", [errors.position(record) for record in records])
        counts = [*map(len, stored)]
        return RunColumns(
            version=VERSION,
            owner=self._keeper.owner,
            release=self._keeper.release,
            token=self._session.token,
            base=base,
            began=_ticks(began, base) if len(noted) > 1 else b"",
            took=_ticks(took),
            sizes=_column("H", [*map(len, parts)]),
            batches=_column("H", batches),
            # With its payloads a run can be replayed, by its whole id.
            ids=ids if keeps_payloads or max(map(len, ids)) <= _SHORT else [*map(short_id, ids)],
            words=[*words],
            outcomes=column(outcomes, 0),
            counts=_column("I", counts),
            digests=array("I", _digests(stored, counts)).tobytes(),
            errors=errors.kept,
            failed=column(failed, 0),
            payloads=_payloads(stored) if keeps_payloads else [],
        )


class _Errors:
    """The errors of one entry, each once."""

    def __init__(self, read: Callable[[bytes], str]) -> None:
        self._read = read
        self._positions: dict[bytes, int] = {}
        self.kept: list[tuple[bytes, bytes]] = []
        """The fingerprint of each, and its text as it is stored."""

    def position(self, record: OutcomeRecord | None) -> int:
        """The position of the outcome's error, from 1; 0 if it has none."""
        texts = [part for part in record if isinstance(part, bytes)] if record else ()
        if not texts:
            return 0
        if texts[0] not in self._positions:
            digits = fingerprint(self._read(texts[0])).digits
            # The last is its short form, where it has one.
            self.kept.append((bytes.fromhex(digits), min(texts, key=len)))
            self._positions[texts[0]] = len(self.kept)
        return self._positions[texts[0]]


def _position(words: dict[str, int], record: OutcomeRecord | None) -> int:
    """The position of its outcome among those of the entry, from 1; 0 for done."""
    word = record[1] if record else "done"
    return 0 if word == "done" else words.setdefault(word, len(words) + 1)


def _column(code: str, numbers: Sequence[int]) -> bytes:
    """A column of numbers from 1 on, of which most often each is 1."""
    return b"" if max(numbers) == 1 else column(array(code, numbers), 1)


def _ticks(seconds: Sequence[float], since: float = 0.0) -> bytes:
    """A column of these times."""
    try:
        return array("I", [int((one - since) * TICKS) for one in seconds]).tobytes()
    except OverflowError:
        return array("I", [min(LONGEST, max(0, int((one - since) * TICKS))) for one in seconds]).tobytes()


def _digests(stored: Sequence[Sequence[bytes]], counts: Sequence[int]) -> list[int]:
    """A number for each run that runs with equal payloads share."""
    if max(counts) == 1:
        return [crc32(entry[PLACE:]) for (entry,) in stored]
    return [*map(_digest, stored)]


def _digest(entries: Sequence[bytes]) -> int:
    digest = 0
    for entry in entries:
        digest = crc32(entry[PLACE:], digest)
    return digest


def _payloads(stored: Iterable[Sequence[bytes]]) -> list[bytes]:
    """The score and the payload of each entry."""
    return [entry[:_SCORE] + entry[PLACE:] for entries in stored for entry in entries]


def _parted(noted: Sequence[Noted], by_id: dict[str, OutcomeRecord]) -> tuple[list[Noted], list[Noted]]:
    """The batches with the runs of these ids alone, and with all others."""
    parts: tuple[list[Noted], list[Noted]] = [], []
    for began, took, size, deliveries in noted:
        for part, is_of_these in zip(parts, (True, False), strict=True):
            if some := [delivery for delivery in deliveries if (delivery.id in by_id) is is_of_these]:
                part.append((began, took, size, some))
    return parts


def _entries(noted: Sequence[Noted], *, with_payloads: bool) -> Iterator[Sequence[Noted]]:
    """The runs by entries: as many as one may have."""
    if not with_payloads and sum([size for _, _, size, _ in noted]) <= ENTRY_RUNS:
        if noted:
            yield noted
        return
    part: list[Noted] = []
    runs, room = 0, ENTRY_BYTES
    for began, took, size, deliveries in noted:
        some: list[Delivery] = []
        for delivery in deliveries:
            length = sum(map(len, delivery.entries)) + len(delivery.id) if with_payloads else 0
            if runs == ENTRY_RUNS or (runs and length > room):
                yield [*part, (began, took, size, some)] if some else part
                part, some, runs, room = [], [], 0, ENTRY_BYTES
            some.append(delivery)
            runs, room = runs + 1, room - length
        part.append((began, took, size, some))
    if part:
        yield part

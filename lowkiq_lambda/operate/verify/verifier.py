"""Reads the journals of a queue, for as long as one wants, and judges them."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from lowkiq_lambda.operate.inspect.journal import PlacesReply, read_journals, read_levels, read_places
from lowkiq_lambda.operate.inspect.journal_stretch import Stretch, last_stretch
from lowkiq_lambda.operate.verify.ledger import FLIGHT, MORGUE, WAITING
from lowkiq_lambda.operate.verify.rules import Content, Judge, Violation, judged
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views.journal import JournalEntry


class VerificationReport(msgspec.Struct, frozen=True):
    """What the journals of a queue say.

    `since`: the time (Unix seconds) from which on nothing is missing in any of them, None if nothing was recorded;
    `shards`: how many of them have been recorded, `seconds`: how long all of them together; `events`, `ids` and
    `payloads`: how much was judged. `deleted`: the numbers of shards of which the journal, or its older part, was
    deleted: a deletion is not a violation, and the deleted part is not verified.
    """

    violations: list[Violation]
    since: float | None
    shards: int
    events: int
    ids: int
    payloads: int = 0
    seconds: float = 0.0
    deleted: list[int] = []


FEWEST_LEFT: Final = 2_000
"""A journal keeps at least so many entries when it drops the oldest (MOST_ENTRIES of include/journal.lua)."""


class Verifier:
    """A verification of the queue that the reader is of, or of some of its shards. Each method raises BackendError."""

    def __init__(self, reader: ShardReader, after: Mapping[ShardRef, int] | None = None) -> None:
        """`after`: the shards to verify, each from the entry on that follows this number, and not if that is deleted.

        None: all that the journals of all shards have.
        """
        self._is_strict = after is not None
        self._reader = reader
        self._shards: Sequence[ShardRef] = reader.shards.with_left() if after is None else [*after]
        self._last = dict(after or {})
        self._entries: dict[ShardRef, list[JournalEntry]] = {shard: [] for shard in self._shards}
        self._deleted: set[int] = set()

    def look(self) -> int:
        """Read new entries, before the journals drop it; how many events have been read."""
        for shard, new in zip(self._shards, read_journals(self._reader, self._shards, self._last), strict=True):
            # A journal that drops its oldest entries keeps more than these.
            if new and new[0].number > self._last.get(shard, 0) + 1 and len(new) < FEWEST_LEFT:
                self._deleted.add(shard.number)
            if new:
                self._last[shard] = new[-1].number
            self._entries[shard] += new
        return sum(map(len, self._entries.values()))

    def entries_of(self, shard: ShardRef) -> Sequence[JournalEntry]:
        """What was read of the shard's journal."""
        return self._entries[shard]

    def report(self) -> VerificationReport:
        """Judge the entries that were read, and compare them with the present content of the shards."""
        levels = dict(zip(self._shards, read_levels(self._reader, self._shards), strict=True))
        self.look()
        now = dict(zip(self._shards, self._reader.backend.now_each(self._shards), strict=True))
        self._deleted |= {shard.number for shard, level in levels.items() if level.written > self._last.get(shard, 0)}
        # The payloads of a closed shard are in other shards now.
        on = {shard: not level.is_closed and level.until > now[shard] for shard, level in levels.items()}
        stretches = {shard: last_stretch(self._entries[shard], is_on=on[shard]) for shard in self._shards}
        judges = {
            shard: judged(stretch.entries, None, stretch.known_from)
            for shard, stretch in stretches.items()
            if stretch.since is not None and (stretch.has_begin or not self._is_spoilt(shard))
        }
        self._compare({shard: judge for shard, judge in judges.items() if stretches[shard].is_open}, stretches)
        return VerificationReport(
            violations=[violation for judge in judges.values() for violation in judge.violations],
            since=max((since for shard in judges if (since := stretches[shard].since) is not None), default=None),
            shards=len(judges),
            events=sum(len(stretches[shard].entries) for shard in judges),
            ids=sum(len({*judge.ledger}) for judge in judges.values()),
            payloads=sum(judge.ledger.payloads for judge in judges.values()),
            seconds=sum(_seconds(stretches[shard], now[shard]) for shard in judges),
            deleted=sorted(self._deleted),
        )

    def _is_spoilt(self, shard: ShardRef) -> bool:
        """Whether a recording that was to be whole has lost its beginning: the rest does not prove it."""
        return self._is_strict and shard.number in self._deleted

    def _compare(self, judges: Mapping[ShardRef, Judge], stretches: Mapping[ShardRef, Stretch]) -> None:
        contents = {shard: self._content(shard, [*judge.ledger]) for shard, judge in judges.items()}
        # A change since the journals were read may be in the shard and not yet in its ledger.
        self.look()
        for shard, judge in judges.items():
            newer = [entry for entry in self._entries[shard] if entry.number > _last(stretches[shard])]
            judge.compare(contents[shard], _named(newer) | {*(judge.ledger.flying() if newer else ())})

    def _content(self, shard: ShardRef, ids: Sequence[str]) -> Content:
        return {job_id: _states(places) for job_id, places in read_places(self._reader, shard, ids).items()}


def _states(places: PlacesReply) -> dict[int, str]:
    return {
        **dict.fromkeys(places.waiting, WAITING),
        **dict.fromkeys(places.in_flight, FLIGHT),
        **dict.fromkeys(places.dead, MORGUE),
    }


def _named(entries: Sequence[JournalEntry]) -> set[str]:
    return {item[0] for entry in entries for item in entry.items if isinstance(item, list) and item}


def _seconds(stretch: Stretch, now: float) -> float:
    """How long the stretch is."""
    since = now if stretch.since is None else stretch.since
    end = now if stretch.is_open else (stretch.entries[-1].at if stretch.entries else since)
    return max(0.0, end - since)


def _last(stretch: Stretch) -> int:
    return stretch.entries[-1].number if stretch.entries else 0

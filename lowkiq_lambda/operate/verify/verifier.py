"""Reads the journals of a queue, for as long as one wants, and judges them."""

from collections.abc import Mapping, Sequence

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
    `shards`: how many of them have been recorded, `events` and `ids`: how much was judged.
    """

    violations: list[Violation]
    since: float | None
    shards: int
    events: int
    ids: int


class Verifier:
    """A verification of the queue that the reader is of. Each method raises BackendError."""

    def __init__(self, reader: ShardReader) -> None:
        self._reader = reader
        self._shards = reader.shards.with_left()
        self._entries: dict[ShardRef, list[JournalEntry]] = {shard: [] for shard in self._shards}

    def look(self) -> int:
        """Read new entries, before the journals drop it; how many events have been read."""
        last = {shard: entries[-1].number for shard, entries in self._entries.items() if entries}
        for shard, new in zip(self._shards, read_journals(self._reader, self._shards, last), strict=True):
            self._entries[shard] += new
        return sum(map(len, self._entries.values()))

    def report(self) -> VerificationReport:
        """Judge the entries that were read, and compare them with the present content of the shards."""
        self.look()
        # The payloads of a closed shard are in other shards now.
        on = {
            shard: not level.is_closed and level.until > self._reader.backend.now(shard)
            for shard, level in zip(self._shards, read_levels(self._reader, self._shards), strict=True)
        }
        stretches = {shard: last_stretch(self._entries[shard], is_on=on[shard]) for shard in self._shards}
        judges = {
            shard: judged(stretch.entries, None, stretch.known_from)
            for shard, stretch in stretches.items()
            if stretch.since is not None
        }
        self._compare({shard: judge for shard, judge in judges.items() if stretches[shard].is_open}, stretches)
        return VerificationReport(
            violations=[violation for judge in judges.values() for violation in judge.violations],
            since=max((since for stretch in stretches.values() if (since := stretch.since) is not None), default=None),
            shards=len(judges),
            events=sum(len(stretches[shard].entries) for shard in judges),
            ids=sum(len({*judge.ledger}) for judge in judges.values()),
        )

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


def _last(stretch: Stretch) -> int:
    return stretch.entries[-1].number if stretch.entries else 0

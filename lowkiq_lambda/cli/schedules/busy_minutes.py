"""How many jobs entries start in each minute of a day, and which of them meet in a shard."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from lowkiq_lambda.cli.output import markdown, whole
from lowkiq_lambda.cli.schedules.moments import DAY, utc
from lowkiq_lambda.cli.schedules.sources import Source
from lowkiq_lambda.jobs.job import shard_for
from lowkiq_lambda.schedules.entry import ScheduleEntry

_MINUTE: Final = 60.0
_FULLEST: Final = 10
_NAMED: Final = 3
"""Names in one cell."""


class Start(NamedTuple):
    """One start of an entry's job, by its minute."""

    minute: float
    entry: ScheduleEntry


def load_table(source: Source, day: float) -> str:
    """What starts on the day that begins then, its fullest minutes, and the ids that meet in a shard."""
    entries = [entry for entry in source.entries if entry.enabled]
    starts = [start for entry in entries for start in _starts(entry, day)]
    by_minute: defaultdict[float, list[str]] = defaultdict(list)
    for minute, entry in starts:
        by_minute[minute].append(entry.name)
    fullest = sorted(by_minute.items(), key=lambda one: (-len(one[1]), one[0]))[:_FULLEST]
    rows = [(_clock(minute), whole(len(names)), _listed(names)) for minute, names in fullest]
    names_off = [entry.name for entry in source.entries if not entry.enabled]
    off = f" Off: {_listed(names_off)}." if names_off else ""
    counts = f"{whole(len(starts))} starts in {whole(len(by_minute))} minutes, by {len(entries)} entries.{off}"
    table = [markdown(("fullest minute", "starts", "entries"), rows)] if rows else []
    return "\n\n".join([f"{utc(day)[:10]} (UTC): {counts}", *table, *_meetings(source, starts), *_unknown(source)])


def _starts(entry: ScheduleEntry, day: float) -> Iterator[Start]:
    before = day - entry.jitter - _MINUTE
    for planned in takewhile(lambda moment: moment < day + DAY, entry.times.after(before)):
        starts_at = planned + entry.jitter_of(planned)
        if day <= starts_at < day + DAY:
            yield Start(starts_at - starts_at % _MINUTE, entry)


def _meetings(source: Source, starts: Sequence[Start]) -> Iterator[str]:
    """The shards in which several ids start in one minute."""
    ids_of: defaultdict[tuple[str, int, float], set[str]] = defaultdict(set)
    for minute, entry in starts:
        if shards_count := source.shards_count.get(entry.queue_name):
            ids_of[entry.queue_name, shard_for(entry.id, shards_count), minute].add(entry.id)
    entries_by_minute: defaultdict[tuple[str, int], dict[float, set[str]]] = defaultdict(dict)
    for (queue_name, shard, minute), ids in ids_of.items():
        if len(ids) > 1:
            entries_by_minute[queue_name, shard][minute] = ids
    if entries_by_minute:
        yield "Ids of one shard that start in the same minute; a shard runs one batch after the other:"
        rows = [
            (
                f"{queue_name} {shard}",
                whole(len(minutes)),
                _clock(min(minutes)),
                _listed(set().union(*minutes.values())),
            )
            for (queue_name, shard), minutes in sorted(entries_by_minute.items())
        ]
        yield markdown(("shard", "minutes", "first", "ids"), rows)


def _unknown(source: Source) -> Iterator[str]:
    if unknown := {entry.queue_name for entry in source.entries} - {*source.shards_count}:
        yield f"It is not known here how many shards these queues have: {', '.join(sorted(unknown))}."


def _clock(minute: float) -> str:
    return utc(minute)[11:16]


def _listed(names: "Sequence[str] | set[str]") -> str:
    counts = sorted(Counter(names).items())
    words = [f"{name} {whole(count)} times" if count > 1 else name for name, count in counts]
    more = len(words) - _NAMED
    return ", ".join(words[:_NAMED]) + (f" and {more} more" if more > 0 else "")

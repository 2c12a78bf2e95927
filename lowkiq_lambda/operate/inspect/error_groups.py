"""Last errors of ids, in groups of those that are alike: read in bounded steps, however many there are."""

import re
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

from lowkiq_lambda.base.fingerprint import fingerprint, first_line, type_of
from lowkiq_lambda.operate.inspect.id_ranges import SearchableList
from lowkiq_lambda.operate.inspect.metrics import queue_totals
from lowkiq_lambda.operate.inspect.paging import check_limit
from lowkiq_lambda.operate.inspect.stored_errors import StoredErrors
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.layout import QueueShards
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import ReplyShape
from lowkiq_lambda.views.errors import SLOTS, ErrorGroup, ErrorGrouping, ErrorGroups, QueueErrors

READ_AT_ONCE: Final = 50_000
"""About how many errors one call reads."""
SECONDS_AT_ONCE: Final = 5.0
STEP: Final = 12_800
"""About how many errors one round trip reads, of all lists together."""
_ABREAST: Final = 200
"""Lists that one round trip reads."""
_MOST: Final = 400
"""Errors of a list that one call of the script reads, about, while other calls wait; and at least:"""
_FEWEST: Final = 50
_HOUR: Final = 3_600
_LISTS: Final[tuple[SearchableList, ...]] = ("waiting", "morgue")
_CURSOR: Final = re.compile(r"\d{1,6}(?:/\d{1,6}:\d{1,20}){0,200}", re.ASCII)


class ErrorTextsReply(ReplyShape, frozen=True):
    """The reply of error_texts.lua: the next cursor, errors read, and each part of a text with times of its ids."""

    scripts = ("error_texts",)
    cursor: bytes
    errors_read: int
    texts: list[tuple[bytes, list[bytes]]]


class _Scan(NamedTuple):
    """A list of a shard that is read."""

    shard: ShardRef
    where: SearchableList


class _Scans:
    """Goes over lists, several of them abreast."""

    def __init__(self, reader: ShardReader, scans: Sequence[_Scan], part: str, empty: AbstractSet[str]) -> None:
        self._reader = reader
        self._scans = scans
        self._empty = empty
        """Names of queues without errors, whose lists are passed over."""
        self._part = part
        self._following = 0
        """The number of the first list that is not begun."""
        self._cursors: dict[int, bytes] = {}
        """In those that are begun and not done, by number."""

    def begin(self, after: str | None) -> None:
        """Go on where that `cursor` was. Raises ValueError for any other text."""
        if after is None:
            return
        if _CURSOR.fullmatch(after):
            first, *others = after.split("/")
            pairs = [other.split(":") for other in others]
            fit = all(int(number) < int(first) and int(cursor) < 1 << 64 for number, cursor in pairs)
            if fit and int(first) <= len(self._scans):
                self._following = int(first)
                self._cursors = {int(number): cursor.encode() for number, cursor in pairs}
                return
        raise ValueError(f"after={after!r} is not the `next` of a call of this.")

    @property
    def are_left(self) -> bool:
        """Whether there is more to read."""
        return bool(self._cursors) or self._following < len(self._scans)

    def cursor(self) -> str:
        """Where it is."""
        return "/".join([str(self._following), *(f"{number}:{at.decode()}" for number, at in self._cursors.items())])

    def step(self) -> Iterator[tuple[_Scan, ErrorTextsReply]]:
        """What one round trip brings."""
        while len(self._cursors) < _ABREAST and self._following < len(self._scans):
            if self._scans[self._following].shard.queue_name not in self._empty:
                self._cursors[self._following] = b"0"
            self._following += 1
        numbers = [*self._cursors]
        step = max(_FEWEST, min(_MOST, STEP // max(1, len(numbers))))
        requests = [
            (scan.shard, (scan.where, self._cursors[number], step, self._part))
            for number in numbers
            for scan in [self._scans[number]]
        ]
        for number, answer in zip(numbers, self._reader.ask_each("error_texts", requests), strict=True):
            reply = ErrorTextsReply.of(answer)
            self._cursors[number] = reply.cursor
            if reply.cursor == b"0":
                del self._cursors[number]
            yield self._scans[number], reply


@dataclass(slots=True)
class _Tally:
    example: str
    waiting: int = 0
    dead: int = 0
    first_at: float | None = None
    last_at: float | None = None
    hours: list[int] = field(default_factory=lambda: [0] * SLOTS)

    def add(self, where: SearchableList, times: Sequence[bytes], now: float) -> None:
        """Count ids, each with the times of its newest and its oldest failure."""
        ids = len(times) // 2
        if where == "morgue":
            self.dead += ids
        else:
            self.waiting += ids
        for newest, oldest in zip(map(float, times[::2]), map(float, times[1::2]), strict=True):
            if newest:
                self.last_at = max(newest, self.last_at or newest)
                self.first_at = min(oldest, self.first_at or oldest)
                hour = SLOTS - 1 - max(0, int((now - newest) // _HOUR))
                if hour >= 0:
                    self.hours[hour] += 1

    def merge(self, other: "_Tally") -> None:
        """Count those of another queue, too."""
        self.waiting += other.waiting
        self.dead += other.dead
        self.first_at = min(filter(None, (self.first_at, other.first_at)), default=None)
        self.last_at = max(filter(None, (self.last_at, other.last_at)), default=None)
        self.hours = [*map(sum, zip(self.hours, other.hours, strict=True))]

    def counts(self) -> dict[str, Any]:
        """The fields of an ErrorCounts."""
        return {**asdict(self), "hours": tuple(self.hours)}


class ErrorPart(NamedTuple):
    """What is asked for: the kind of groups, how many at most, and after which part, the `next` of it."""

    by: ErrorGrouping = "fingerprint"
    limit: int = 100
    after: str | None = None


def error_groups(
    reader: ShardReader,
    queues: Mapping[str, QueueShards],
    errors: StoredErrors,
    part: ErrorPart = ErrorPart(),  # noqa: B008 - it cannot be changed
) -> ErrorGroups:
    """The errors of all ids of the queues that are retried or dead.

    Raises BackendError, and ValueError if `after` is not the `next` of an earlier call.
    """
    check_limit(part.limit)
    lists = [_Scan(shard, where) for of in queues.values() for where in _LISTS for shard in of]
    totals = _totals(reader, queues)
    scans = _Scans(reader, lists, errors.part, {name for name, total in totals.items() if not total})
    scans.begin(part.after)
    tallies, alike = defaultdict[Alike, dict[str, _Tally]](dict), dict[str, Alike]()
    now, count, ends_at = reader.backend.clock.time(), 0, time.monotonic() + SECONDS_AT_ONCE
    while scans.are_left and (not count or (count < READ_AT_ONCE and time.monotonic() < ends_at)):
        for (shard, where), reply in scans.step():
            count += reply.errors_read
            for text, times in reply.texts:
                line = first_line(errors.text(text))
                shared = alike[line] = alike.get(line) or what_is_alike(line, part.by)
                tallies[shared].setdefault(shard.queue_name, _Tally(line)).add(where, times, now)
    groups = sorted((_group(shared, of_queues) for shared, of_queues in tallies.items()), key=_order)
    return ErrorGroups(
        groups=groups[: part.limit],
        counted=count,
        total=max(sum(totals.values()), count),
        next=scans.cursor() if scans.are_left else None,
        others=max(0, len(groups) - part.limit),
    )


class Alike(NamedTuple):
    """The words that errors of one group share, and their fingerprint if they are grouped by it."""

    words: str
    fingerprint: str | None = None


def what_is_alike(line: str, by: ErrorGrouping) -> Alike:
    """The words that an error with this first line shares with the others of its group.

    >>> what_is_alike("shop.Late: no parcel 7", "line").words, what_is_alike("shop.Late: no parcel 7", "type").words
    ('shop.Late: no parcel 7', 'shop.Late')
    """
    if by == "fingerprint":
        return Alike(*fingerprint(line))
    return Alike((type_of(line) or line) if by == "type" else line)


def _totals(reader: ShardReader, queues: Mapping[str, QueueShards]) -> dict[str, int]:
    """How many ids of each queue have an error."""
    metrics = queue_totals(reader, [*queues.values()]) if queues else []
    return {name: each.retries + each.morgue_length for name, each in zip(queues, metrics, strict=True)}


def _group(shared: Alike, of_queues: Mapping[str, _Tally]) -> ErrorGroup:
    queues = [QueueErrors(queue=queue, **tally.counts()) for queue, tally in of_queues.items()]
    queues.sort(key=lambda errors: (-errors.count, errors.queue))
    whole = _Tally(queues[0].example)
    for tally in of_queues.values():
        whole.merge(tally)
    return ErrorGroup(
        type=type_of(shared.words),
        line=shared.words,
        fingerprint=shared.fingerprint,
        queues=tuple(queues),
        **whole.counts(),
    )


def _order(group: ErrorGroup) -> tuple[int, str]:
    return -group.count, group.line

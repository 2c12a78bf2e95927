"""Reads entries of kept runs from all shards of a queue, the newest first."""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, Self

from lowkiq_lambda.base.errors import ShardDamaged
from lowkiq_lambda.operate.inspect.journal import asked
from lowkiq_lambda.store.server.pipelines import Command
from lowkiq_lambda.store.shard.keys import RUNS, ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader

_FIRST_COUNT: Final = 16
_MOST_AT_ONCE: Final = 1_000
_BYTES_AT_ONCE: Final = 256 * 1024
"""Of one shard: while an answer has fewer, the next one has twice as many entries."""


class RunPosition(NamedTuple):
    """The position of a run among all of its queue: entries by time, and the place in its entry."""

    ms: int
    seq: int
    shards_count: int
    shard: int
    place: int

    @classmethod
    def of(cls, text: str) -> Self:
        """As `str` has written it. Raises ValueError."""
        parts = [int(part) for part in text.split(".")]
        if len(parts) != len(cls._fields) or min(parts) < 0:
            raise ValueError(f"{text!r} is not a position of a run")
        return cls(*parts)

    def __str__(self) -> str:
        """As a cursor, and as the name of the run."""
        return ".".join(map(str, self))


class StoredEntry(NamedTuple):
    """An entry as it is stored: its position, that of its first run, and how many runs it has.

    `packed`: its runs; with `is_recovery` those that a dead holder left, as include/keep_recovered.lua packs them.
    """

    position: RunPosition
    runs: int
    packed: bytes
    is_recovery: bool


class _Stream:
    """The entries of one shard that were read, and where to go on."""

    def __init__(self, shard: ShardRef, since_ms: int, after: RunPosition | None) -> None:
        self.shard = shard
        self._key = shard.key(RUNS)
        self._since = str(max(0, since_ms))
        self._before = "+" if after is None else str(after.ms)
        self._count = _FIRST_COUNT
        self.entries: deque[StoredEntry] = deque()
        self.is_over = False

    @property
    def command(self) -> Command:
        """Asks for the next entries."""
        return ("XREVRANGE", self._key, self._before, self._since, "COUNT", self._count)

    def take(self, answer: Sequence[tuple[bytes, Sequence[bytes]]]) -> None:
        """Take in what that command was answered with."""
        self.is_over = len(answer) < self._count
        for number, pairs in answer:
            self.entries.append(_entry(self.shard, number, pairs))
            self._before = f"({number.decode()}"
        if sum(len(entry.packed) for entry in self.entries) < _BYTES_AT_ONCE:
            self._count = min(_MOST_AT_ONCE, 2 * self._count)


class RunEntries:
    """The entries of these shards, the newest first, from this moment on, or after a position."""

    def __init__(
        self, reader: ShardReader, shards: Sequence[ShardRef], since_ms: int, after: RunPosition | None = None
    ) -> None:
        self._reader = reader
        self._streams = [_Stream(shard, since_ms, after) for shard in shards]

    def __iter__(self) -> Iterator[StoredEntry]:
        """Each of them. Raises BackendError."""
        streams = self._streams
        while streams:
            if empty := [stream for stream in streams if not (stream.entries or stream.is_over)]:
                commands = [(stream.shard, stream.command) for stream in empty]
                for stream, answer in zip(empty, _asked(self._reader, commands), strict=True):
                    stream.take(answer)
            streams = [stream for stream in streams if stream.entries]
            if streams:
                yield max(streams, key=lambda stream: stream.entries[0].position).entries.popleft()
                streams = [stream for stream in streams if stream.entries or not stream.is_over]


class NewEntries:
    """The entries that shards have got since the last look, each once."""

    def __init__(self) -> None:
        self._last: dict[str, str] | None = None

    def look(self, reader: ShardReader, shards: Sequence[ShardRef]) -> list[tuple[ShardRef, StoredEntry]]:
        """The oldest first, and up to 1,000 of a shard; the first look has none. Raises BackendError."""
        keys = [shard.key(RUNS) for shard in shards]
        if self._last is None:
            newest = [
                (shard, ("XREVRANGE", key, "+", "-", "COUNT", 1)) for shard, key in zip(shards, keys, strict=True)
            ]
            answers = _asked(reader, newest)
            self._last = {key: answer[0][0].decode() for key, answer in zip(keys, answers, strict=True) if answer}
            return []
        # A shard that was not there has been made by a move: all of its entries are new.
        since = [f"({self._last.get(key, '0-0')}" for key in keys]
        commands = [
            (shard, ("XRANGE", key, begin, "+", "COUNT", _MOST_AT_ONCE))
            for shard, key, begin in zip(shards, keys, since, strict=True)
        ]
        entries: list[tuple[ShardRef, StoredEntry]] = []
        for shard, key, answer in zip(shards, keys, _asked(reader, commands), strict=True):
            entries += [(shard, _entry(shard, *pair)) for pair in answer]
            if answer:
                self._last[key] = answer[-1][0].decode()
        return sorted(entries, key=lambda entry: entry[1].position)


class KeptSince(NamedTuple):
    """From when on the shards have all of their runs (Unix seconds), and how many Redis had no room for."""

    at: float | None
    lost: int


def read_kept_since(reader: ShardReader, shards: Sequence[ShardRef]) -> KeptSince:
    """How far back the runs of these shards reach. Raises BackendError."""
    answers = asked(reader, [(shard, ("HMGET", shard.key("meta"), "runs_dropped", "runs_lost")) for shard in shards])
    dropped = max((int(ms) for ms, _ in answers if ms is not None), default=None)
    lost = sum(int(count or 0) for _, count in answers)
    if dropped is not None:
        return KeptSince(dropped / 1000, lost)
    first = _asked(reader, [(shard, ("XRANGE", shard.key(RUNS), "-", "+", "COUNT", 1)) for shard in shards])
    times = [_numbers(answer[0][0])[0] / 1000 for answer in first if answer]
    return KeptSince(min(times, default=None), lost)


def run_shards(shards: Sequence[ShardRef]) -> list[ShardRef]:
    """The same shards with the key of their runs, which a queue whose code keeps none any more has, too."""
    return [shard.using((RUNS,)) for shard in shards]


def _asked(reader: ShardReader, commands: Sequence[tuple[ShardRef, Command]]) -> list[list[tuple[bytes, list[bytes]]]]:
    try:
        return asked(reader, commands)
    except ShardDamaged:
        for shard, _ in commands:
            reader.backend.mender.mend(shard)
        return asked(reader, commands)


def _entry(shard: ShardRef, number: bytes, pairs: Sequence[bytes]) -> StoredEntry:
    fields = dict(zip(pairs[::2], pairs[1::2], strict=True))
    ms, seq = _numbers(number)
    count = fields.get(b"n", b"")
    position = RunPosition(ms, seq, shard.shards_count, shard.index, 0)
    packed = fields.get(b"r", fields.get(b"l", b""))
    return StoredEntry(position, int(count) if count.isdigit() else 0, packed, is_recovery=b"l" in fields)


def _numbers(number: bytes) -> tuple[int, int]:
    ms, _, seq = number.partition(b"-")
    return int(ms), int(seq)

"""The runs that a queue keeps, by pages: the answer to what ran at 03:12."""

from collections.abc import Iterable, Iterator
from math import isinf
from typing import Final

from lowkiq_lambda.operate.inspect.entry_runs import runs_in
from lowkiq_lambda.operate.inspect.paging import check_limit
from lowkiq_lambda.operate.inspect.run_filter import RunFilter
from lowkiq_lambda.operate.inspect.run_reader import (
    NewEntries,
    RunEntries,
    RunPosition,
    StoredEntry,
    read_kept_since,
    run_shards,
)
from lowkiq_lambda.operate.inspect.stored_errors import StoredErrors
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.layout import QueueShards
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views.runs import KeptRun, RunPage

MOST_SCANNED: Final = 250_000
"""Runs that one page is searched in."""
_MARGIN: Final = 2.0
"""Seconds by which the time of a run and that of its settling may disagree."""


class RunSearch:
    """Walks through the runs of a queue, from the newest on, or after a position."""

    def __init__(
        self, reader: ShardReader, errors: StoredErrors, run_filter: RunFilter, after: RunPosition | None
    ) -> None:
        self._errors = errors
        self._filter = run_filter
        self._after = after
        since_ms = 0 if isinf(run_filter.since) else int((run_filter.since - _MARGIN) * 1000)
        self.shards = _shards(reader, run_filter)
        self._entries = RunEntries(reader, self.shards, since_ms, after)
        self.position = after
        """That of the last run that was looked at."""
        self.unreadable = 0
        self.is_cut = False
        """Whether the search ended before the runs did."""

    def __iter__(self) -> Iterator[tuple[StoredEntry, int, KeptRun]]:
        """Each run that the filter selects, with its entry and its place there. Raises BackendError."""
        scanned = 0
        for entry in self._entries:
            if scanned >= MOST_SCANNED:
                self.is_cut = True
                return
            scanned += entry.runs
            try:
                runs = runs_in(entry, self._errors, self._filter)
            except ValueError:
                self.unreadable += entry.runs
                continue
            for place, run in runs:
                position = entry.position._replace(place=place)
                if self._after is None or position < self._after:
                    yield entry, place, run
                    self.position = position
            self.position = entry.position


class NewRuns:
    """The runs of queues that the filter selects and that are settled from now on, each once."""

    def __init__(self, reader: ShardReader, errors: StoredErrors, run_filter: RunFilter) -> None:
        self._reader = reader
        self._errors = errors
        self._filter = run_filter
        self._entries = NewEntries()
        self.unreadable = 0

    def look(self, queues: Iterable[QueueShards]) -> Iterator[tuple[str, KeptRun]]:
        """Those since the last look, with the names of their queues, as they were settled; the first look has none.

        One round trip for each node. Raises BackendError.
        """
        shards = [shard for queue in queues for shard in run_shards(queue.with_left())]
        for shard, entry in self._entries.look(self._reader, shards):
            try:
                runs = runs_in(entry, self._errors, self._filter)
            except ValueError:
                self.unreadable += entry.runs
                continue
            for _, run in reversed(runs):
                yield shard.queue_name, run


def runs_of(reader: ShardReader, errors: StoredErrors, run_filter: RunFilter, limit: int, after: str | None) -> RunPage:
    """A page of the runs of the reader's queue that the filter selects.

    Pages follow the order of settling, and runs of a page are sorted by when they began. Raises ValueError, and
    BackendError.
    """
    check_limit(limit)
    search = RunSearch(reader, errors, run_filter, _position(after))
    runs: list[KeptRun] = []
    following: RunPosition | None = None
    for _, _, run in search:
        if len(runs) == limit:
            following = search.position
            break
        runs.append(run)
    if search.is_cut:
        following = search.position
    runs.sort(key=lambda run: run.at, reverse=True)
    since, lost = read_kept_since(reader, search.shards)
    next_page = None if following is None else str(following)
    return RunPage(runs, next_page, cut=search.is_cut, kept_since=since, unreadable=search.unreadable, lost=lost)


def _shards(reader: ShardReader, run_filter: RunFilter) -> list[ShardRef]:
    """The shards that may have runs of the filter, those of earlier counts among them."""
    shards = reader.shards
    return run_shards(shards.with_left() if run_filter.id is None else shards.homes_ever(run_filter.id))


def _position(after: str | None) -> RunPosition | None:
    if after is None:
        return None
    try:
        return RunPosition.of(after)
    except (AttributeError, ValueError) as error:
        raise ValueError(f"after={after!r} is not the `next` of a page.") from error

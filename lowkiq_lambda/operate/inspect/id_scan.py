"""Searches without an index: scans of all ids of all shards, a step at a time, up to a limit."""

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from lowkiq_lambda.operate.inspect.id_ranges import ListPosition
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Reply, ReplyShape

STEP: Final = 10_000
"""About how many ids one round trip reads, over all shards."""


@dataclass(frozen=True, slots=True)
class IdScan:
    """The first `most` positions, in the order of `key`, for which `wants` is true. Their value is `value`."""

    listed: Literal["due", "morgue"]
    wants: Callable[[ListPosition], bool]
    key: Callable[[ListPosition], Any]
    reverse: bool
    most: int
    value: float = 0.0
    fresh: bool = False
    """Only ids that have not failed."""

    def best(self, positions: Iterable[ListPosition]) -> list[ListPosition]:
        """The first of them, in order."""
        choose = heapq.nlargest if self.reverse else heapq.nsmallest
        return choose(self.most, positions, key=self.key)


class IdScanReply(ReplyShape, frozen=True):
    """The reply of scan_ids.lua: the next cursor, the number of ids read, and the ids that match."""

    scripts = ("scan_ids",)
    cursor: bytes
    ids_read: int
    ids: list[bytes]


def scan_ids(reader: ShardReader, search: IdScan, at_most: int) -> tuple[list[ListPosition], bool]:
    """The matches among about `at_most` ids, and whether ids are left unread.

    Ids that are there from the beginning to the end are surely read. Raises BackendError.
    """
    matches: set[ListPosition] = set()
    cursors, total_read = dict.fromkeys(reader.shards, b"0"), 0
    while cursors and total_read < at_most:
        count, fresh = max(10, STEP // len(cursors)), "fresh" if search.fresh else ""
        args = {shard: [search.listed, cursor, count, fresh] for shard, cursor in cursors.items()}
        for shard, cursor, ids_read, ids in reader.read("scan_ids", args, _decoded):
            cursors[shard] = cursor
            total_read += ids_read
            positions = (ListPosition(search.value, shard.number, job_id) for job_id in ids)
            matches.update(position for position in positions if search.wants(position))
        cursors = {shard: cursor for shard, cursor in cursors.items() if cursor != b"0"}
        if len(matches) > 4 * search.most:
            matches = set(search.best(matches))
    return search.best(matches), bool(cursors)


def _decoded(shard: ShardRef, reply: Reply) -> tuple[ShardRef, bytes, int, list[str]]:
    step = IdScanReply.of(reply)
    return shard, step.cursor, step.ids_read, [job_id.decode() for job_id in step.ids]

"""Searches that no index serves: through all ids of all shards, a step at a time, up to a limit."""

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from lowkiq_lambda.store.inspect.id_ranges import ListPosition
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Reply, ReplyShape

STEP: Final = 10_000
"""About how many ids are looked at in one round trip, over all shards."""


@dataclass(frozen=True, slots=True)
class IdScan:
    """The first `most` places, in the order of `key`, of those that `wants` holds for. Their value is `value`."""

    listed: Literal["due", "morgue"]
    wants: Callable[[ListPosition], bool]
    key: Callable[[ListPosition], Any]
    reverse: bool
    most: int
    value: float = 0.0
    fresh: bool = False
    """Only ids that have not failed."""

    def best(self, places: Iterable[ListPosition]) -> list[ListPosition]:
        """The first of them, in order."""
        choose = heapq.nlargest if self.reverse else heapq.nsmallest
        return choose(self.most, places, key=self.key)


class IdScanReply(ReplyShape, frozen=True):
    """What scan_ids.lua answers: how many ids it looked at, and those that were wanted."""

    cursor: bytes
    seen: int
    ids: list[bytes]


def scan_ids(reader: ShardReader, search: IdScan, at_most: int) -> tuple[list[ListPosition], bool]:
    """What was found among about `at_most` ids, and whether there are more that were not looked at.

    Ids that are there from the beginning to the end are surely seen. Raises BackendError.
    """
    found: set[ListPosition] = set()
    cursors, looked = dict.fromkeys(reader.shards, b"0"), 0
    while cursors and looked < at_most:
        count, fresh = max(10, STEP // len(cursors)), "fresh" if search.fresh else ""
        asked = {shard: [search.listed, cursor, count, fresh] for shard, cursor in cursors.items()}
        for shard, cursor, seen, ids in reader.read("scan_ids", asked, _scanned):
            cursors[shard] = cursor
            looked += seen
            places = (ListPosition(search.value, shard.index, job_id) for job_id in ids)
            found.update(place for place in places if search.wants(place))
        cursors = {shard: cursor for shard, cursor in cursors.items() if cursor != b"0"}
        if len(found) > 4 * search.most:
            found = set(search.best(found))
    return search.best(found), bool(cursors)


def _scanned(shard: ShardRef, reply: Reply) -> tuple[ShardRef, bytes, int, list[str]]:
    scanned = IdScanReply.of(reply)
    return shard, scanned.cursor, scanned.seen, [job_id.decode() for job_id in scanned.ids]

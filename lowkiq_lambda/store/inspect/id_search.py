"""Searches that people can go on with: shard by shard, a bounded number of ids at a time."""

from typing import Final, Literal, NamedTuple, Self, TypeAlias

from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Reply, ReplyShape

SearchableList: TypeAlias = Literal["waiting", "morgue"]

STEP: Final = 1_000
"""About how many ids one call looks at."""
LOOKED_AT_ONCE: Final = 100_000
"""About how many ids one page's search looks at."""


class IdSearch(NamedTuple):
    """What is looked for: ids that begin so, with errors that hold the text, in whatever case."""

    where: SearchableList
    prefix: str
    text: str


class SearchPosition(NamedTuple):
    """Where a search stands: in a shard, behind an id of the step that the server's cursor begins."""

    shard: int = 0
    cursor: str = "0"
    behind: str | None = None

    def __str__(self) -> str:
        return f"{self.shard}:{self.cursor}{'' if self.behind is None else ':' + self.behind}"

    @classmethod
    def of(cls, text: str, shards: int) -> Self:
        """The spot that a text was made of. Raises ValueError for any other text."""
        shard, cursor, *behind = text.split(":", 2)
        spot = cls(int(shard), str(int(cursor)), behind[0] if behind else None)
        # The server is stricter about numbers than Python is.
        if str(spot) != text or not (0 <= spot.shard < shards and 0 <= int(cursor) < 1 << 64):
            raise ValueError(text)
        return spot


class IdSearchReply(ReplyShape, frozen=True):
    """What search_ids.lua answers: how many ids it looked at, and those that were sought."""

    cursor: bytes
    seen: int
    ids: list[bytes]


def search_ids(reader: ShardReader, sought: IdSearch, limit: int, after: str | None) -> tuple[list[str], str | None]:
    """Up to `limit` ids, and where to go on, if there is more to look at.

    Ids that are there from the beginning to the end are surely found; some may be found twice. Raises BackendError,
    and ValueError for an `after` that is none.
    """
    spot, looked, found = _begin(after, len(reader.shards)), 0, list[str]()
    while spot and len(found) < limit and looked < LOOKED_AT_ONCE:
        ids, seen, following = _step(reader, sought, spot)
        looked += seen
        ids = [job_id for job_id in ids if spot.behind is None or job_id > spot.behind]
        left = limit - len(found)
        found += ids[:left]
        spot = spot._replace(behind=ids[left - 1]) if len(ids) > left else following
    return list(dict.fromkeys(found)), None if spot is None else str(spot)


def _begin(after: str | None, shards: int) -> SearchPosition | None:
    if after is None:
        return SearchPosition()
    try:
        return SearchPosition.of(after, shards)
    except ValueError as error:
        raise ValueError(f"after={after!r} is not the `next` of a search.") from error


def _step(reader: ShardReader, sought: IdSearch, spot: SearchPosition) -> tuple[list[str], int, SearchPosition | None]:
    """The step's ids in order, how many were looked at, and where the next step begins."""
    # As the server makes letters small: those of ASCII only.
    small = sought.text.encode().lower()
    asked = {reader.shards[spot.shard]: (sought.where, spot.cursor, STEP, sought.prefix, small)}
    ((cursor, seen, ids),) = reader.read("search_ids", asked, _found)
    if cursor != b"0":
        following: SearchPosition | None = SearchPosition(spot.shard, cursor.decode())
    else:
        following = SearchPosition(spot.shard + 1) if spot.shard + 1 < len(reader.shards) else None
    return ids, max(seen, 1), following


def _found(_shard: ShardRef, reply: Reply) -> tuple[bytes, int, list[str]]:
    searched = IdSearchReply.of(reply)
    return searched.cursor, searched.seen, sorted(job_id.decode() for job_id in searched.ids)

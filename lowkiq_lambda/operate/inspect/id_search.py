"""Searches page by page: shard by shard, a bounded number of ids at a time."""

from typing import Final, NamedTuple, Self

from lowkiq_lambda.operate.inspect.id_ranges import SearchableList
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Reply, ReplyShape

STEP: Final = 1_000
"""About how many ids one call reads."""
READ_AT_ONCE: Final = 100_000
"""About how many ids the search for one page reads."""


class IdSearch(NamedTuple):
    """Ids that begin with the prefix, and whose errors contain the text, in any case."""

    where: SearchableList
    prefix: str
    text: str


class SearchPosition(NamedTuple):
    """The position of a search: a shard, the server's cursor of a step, and the last id taken from that step."""

    shard: int = 0
    cursor: str = "0"
    taken: str | None = None

    def __str__(self) -> str:
        return f"{self.shard}:{self.cursor}{'' if self.taken is None else ':' + self.taken}"

    @classmethod
    def of(cls, text: str, shards: int) -> Self:
        """The position that `str` made the text of. Raises ValueError for any other text."""
        shard, cursor, *parts = text.split(":", 2)
        position = cls(int(shard), str(int(cursor)), parts[0] if parts else None)
        # The server is stricter about numbers than Python is.
        if str(position) != text or not (0 <= position.shard < shards and 0 <= int(cursor) < 1 << 64):
            raise ValueError(text)
        return position


class IdSearchReply(ReplyShape, frozen=True):
    """The reply of search_ids.lua: the next cursor, the number of ids read, and the ids that match."""

    scripts = ("search_ids",)
    cursor: bytes
    ids_read: int
    ids: list[bytes]


def search_ids(reader: ShardReader, search: IdSearch, limit: int, after: str | None) -> tuple[list[str], str | None]:
    """Up to `limit` ids, and the cursor of the next page, if any ids are left to read.

    Ids that are there from the beginning to the end are surely found; some may be found twice. Raises BackendError,
    TypeError and ValueError for what cannot be searched for, and ValueError if `after` is not the cursor of a search.
    """
    for name, text in (("prefix", search.prefix), ("text", search.text)):
        _check_text(name, text)
    position, total_read, matches = _begin(after, len(reader.shards)), 0, list[str]()
    while position and len(matches) < limit and total_read < READ_AT_ONCE:
        ids, ids_read, following = _step(reader, search, position)
        total_read += ids_read
        ids = [job_id for job_id in ids if position.taken is None or job_id > position.taken]
        left = limit - len(matches)
        matches += ids[:left]
        position = position._replace(taken=ids[left - 1]) if len(ids) > left else following
    return list(dict.fromkeys(matches)), None if position is None else str(position)


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, not {value!r}.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} holds a lone surrogate: {value!r}.") from None


def _begin(after: str | None, shards: int) -> SearchPosition | None:
    if after is None:
        return SearchPosition()
    try:
        return SearchPosition.of(after, shards)
    except ValueError as error:
        raise ValueError(f"after={after!r} is not the `next` of a search.") from error


def _step(
    reader: ShardReader, search: IdSearch, position: SearchPosition
) -> tuple[list[str], int, SearchPosition | None]:
    """The step's ids in order, the number of ids read, and the position of the next step."""
    shard = position.shard
    # The server lowers ASCII letters only, as bytes.lower does.
    args = {reader.shards[shard]: (search.where, position.cursor, STEP, search.prefix, search.text.encode().lower())}
    ((cursor, ids_read, ids),) = reader.read("search_ids", args, _decoded)
    if cursor != b"0":
        following: SearchPosition | None = SearchPosition(shard, cursor.decode())
    else:
        following = SearchPosition(shard + 1) if shard + 1 < len(reader.shards) else None
    return ids, max(ids_read, 1), following


def _decoded(_shard: ShardRef, reply: Reply) -> tuple[bytes, int, list[str]]:
    step = IdSearchReply.of(reply)
    return step.cursor, step.ids_read, sorted(job_id.decode() for job_id in step.ids)

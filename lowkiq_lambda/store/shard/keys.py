"""The keys of a shard: a fixed, small set, all under one hash tag, all given to every script.

==================  =======  ====================================================================
key                 type     holds
==================  =======  ====================================================================
due                 zset     id -> perform_in, of every id that waits
jobs                hash     id -> its record: a single payload, or the mark of several (see box)
box                 zset     payloads of ids that have several: id, place, payload; read by lex
seen                hash     id and payload (or its digest) -> place in the box, for merging
since               zset     id -> its own time, while its next slice queues behind what is due
retry               zset     id -> retry_count, of waiting ids that failed (>= 0)
errors              hash     id -> last error, or its beginning and a reference to the rest, see texts
trouble             hash     id -> what it is suspected of or was blamed for (msgpack)
suspects            zset     id -> perform_in, of ids that must run alone next
groups              hash     group of suspects -> what its first members did (msgpack)
flight              hash     id -> its record as claimed, until it is settled
held                hash     reserved: id -> cursor and delivered payloads of a checkpointed job
morgue              zset     id -> time of its last burial
morgue_payloads     zset     id, place, payload of what is buried; read by lex
morgue_errors       hash     id -> error, as above
meta                hash     lease (token, nonce, call, until, owner), arrival number, counters
lease               string   token, with a time to live
pushes_even, _odd   hash     push token -> the answer it was given, in turns of a minute
failures            hash     id -> its last failures, while it has an error or a morgue_error (msgpack)
texts               hash     what follows the beginning of long errors, each once, and how many ids refer to it
==================  =======  ====================================================================

Beside them is `damaged`, a list of what was set aside, which only the scripts that see to it are given.

The tag holds the escaped queue name, `shards_count` and the shard's number: no name can forge another's key,
and shards of two different counts never share a key. docs/data-model.md has the formats.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import Final, TypeAlias
from urllib.parse import quote

PREFIX: Final = "lowkiq"

SHARD_KEYS: Final = (
    "due",
    "jobs",
    "box",
    "seen",
    "since",
    "retry",
    "errors",
    "trouble",
    "suspects",
    "groups",
    "flight",
    "held",
    "morgue",
    "morgue_payloads",
    "morgue_errors",
    "meta",
    "lease",
    "pushes_even",
    "pushes_odd",
    "failures",
    "texts",
)

SHELF: Final = "damaged"
"""A key beside those: what was set aside. Only the scripts that see to it are given it."""

_POSITIONS: Final = {name: position for position, name in enumerate(SHARD_KEYS)}


@dataclass(frozen=True)
class ShardRef:
    """One shard of one queue: what a lease is taken on."""

    queue_name: str
    shards_count: int
    index: int
    keys: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        tag = f"{escape(self.queue_name)}:{self.shards_count}:{self.index}"
        object.__setattr__(self, "keys", tuple(f"{PREFIX}:{{{tag}}}:{name}" for name in SHARD_KEYS))

    def __hash__(self) -> int:
        # A text keeps its hash.
        return hash(self.keys[0])

    def key(self, name: str) -> str:
        """The shard's key of that name."""
        if name == SHELF:
            return f"{self.keys[0].removesuffix(SHARD_KEYS[0])}{SHELF}"
        return self.keys[_POSITIONS[name]]

    def some(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The keys of these names."""
        if names is SHARD_KEYS:
            return self.keys
        return tuple(map(self.key, names)) if SHELF in names else _picker(names)(self.keys)


@dataclass(frozen=True)
class ShardGroup:
    """Shards of one queue, on one node, that one call of a script may look at together."""

    shards: tuple[ShardRef, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the first, by which their node is found."""
        return self.shards[0].keys

    def some(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The keys of these names, shard by shard."""
        return tuple(chain.from_iterable([shard.some(names) for shard in self.shards]))


Place: TypeAlias = ShardRef | ShardGroup
"""What a call of a script is about."""


@cache
def _picker(names: tuple[str, ...]) -> Callable[[tuple[str, ...]], tuple[str, ...]]:
    if len(names) == 1:
        return lambda keys: (keys[_POSITIONS[names[0]]],)
    return itemgetter(*(_POSITIONS[name] for name in names))


def escape(queue_name: str) -> str:
    """The name in letters that mean nothing to a key or a hash tag; two names never give the same."""
    return quote(queue_name, safe="")


def declaration_key(queue_name: str) -> str:
    """Where a queue keeps what it was made with."""
    return f"{PREFIX}:{{{escape(queue_name)}}}:declaration"


def bell_channel(queue_name: str) -> str:
    """The channel on which a push says that a shard has work sooner than before."""
    return f"{PREFIX}:{escape(queue_name)}:bell"

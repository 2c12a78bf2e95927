"""The keys of a shard: a fixed, small set, all under one hash tag; a script is given those that it names.

==================  =======  ====================================================================
key                 type     holds
==================  =======  ====================================================================
due                 zset     id -> due_at, of every id that waits
jobs                hash     id -> its record: a single payload, or the mark of several (see box)
box                 zset     payloads of ids that have several: id, place, payload; read by lex; started jobs that wait
seen                hash     id and payload (or its digest) -> place in the box, for merging
since               zset     id -> its own time, while its next chunk queues behind what is due
retry               zset     id -> retry_count, of waiting ids that failed (>= 0)
errors              hash     id -> last error, or its beginning and a reference to the rest, see texts
trouble             hash     id -> what it is suspected of or was blamed for (msgpack)
suspects            zset     id -> due_at, of ids that must run alone next
groups              hash     group of suspects -> what its first members did (msgpack)
flight              hash     id -> its record as claimed, until it is settled
morgue              zset     id -> time of its last death
morgue_payloads     zset     id, place, payload of what is dead; read by lex
morgue_errors       hash     id -> error, as above
meta                hash     lease (token, nonce, call, until, owner), arrival number, counters
lease               string   token, with a time to live
pushes_even, _odd   hash     push token -> the answer it was given, in turns of a minute
failures            hash     id -> its last failures, while it has an error or a morgue_error (msgpack)
texts               hash     what follows the beginning of long errors, each once, and how many ids refer to it
journal             stream   the last events of the shard, see docs/journal.md
==================  =======  ====================================================================

Beside them is `damaged`, a list of what was set aside. A feature that not every queue uses has keys of its own.

The tag holds the escaped queue name, `shards_count` and the shard's number: no name can forge another's key,
and shards of two different counts never share a key. docs/data-model.md has the formats.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import Final, Protocol, TypeAlias
from urllib.parse import quote

import msgspec

PREFIX: Final = "lowkiq"
"""The prefix of all keys and channels if the app has no namespace, see `key_prefix`."""

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
    "morgue",
    "morgue_payloads",
    "morgue_errors",
    "meta",
    "lease",
    "pushes_even",
    "pushes_odd",
    "failures",
    "texts",
    "journal",
)

SHELF: Final = "damaged"
"""A key beside those: what was set aside. Those who look for damage leave it alone."""

Pick: TypeAlias = Callable[[tuple[str, ...]], tuple[str, ...]]

DUTIES: Final = "duties"
TENANTS: Final = "tenants"
TIMETABLE: Final = "timetable"
LIMITS: Final = "limits"
MARKS: Final = "marks"
DEBOUNCING: Final = "debouncing"
RECEIPTS: Final = "receipts"
UNIQUE: Final = "unique"
TRACKING: Final = "tracking"
HEADERS: Final = "headers"
EXPIRY: Final = "expiry"
REQUESTS: Final = "requests"
JOURNALLING: Final = "journalling"
BOUNDED: Final = "bounded"
RUNS: Final = "runs"
UNDO: Final = "undo"
TASK_SLOT: Final = "task_slot"
PROCESS_SLOT: Final = "process_slot"
LIMITER: Final = "limiter"
FEATURES: Final[dict[str, tuple[str, ...]]] = {
    DUTIES: (DUTIES,),
    TENANTS: ("lines", "lanes", "served"),
    TIMETABLE: (TIMETABLE,),
    LIMITS: (LIMITS, "permits", "wait_list"),
    MARKS: ("marks_even", "marks_odd"),
    DEBOUNCING: (DEBOUNCING,),
    RECEIPTS: (RECEIPTS,),
    UNIQUE: (),
    TRACKING: ("refs", "rows", "items"),
    HEADERS: ("headers_even", "headers_odd"),
    EXPIRY: ("expiries",),
    REQUESTS: (REQUESTS,),
    JOURNALLING: (),
    BOUNDED: (),
    RUNS: (RUNS,),
    UNDO: (UNDO, "undo_notes"),
    TASK_SLOT: ("task_records", "open_tasks", "task_expiry"),
    PROCESS_SLOT: ("alive", "orders"),
    LIMITER: ("spent", "places", "line", "comes"),
}
"""Keys of features that not every queue uses, by the name of the feature: passed only for shards that use it.

The keys of duties belong to an app instead of a shard; those of limits belong to a queue, those of a limiter to one of
its keys; those of tasks and of processes belong to the server. Those of receipts are passed only with pushes of jobs
that have a key, those of undo only with actions that can be undone, and with their undo. Journalling, uniqueness and a
bound of waiting ids have no keys of their own: with the first two, more scripts get `journal`. Uniqueness comes with
pushes of jobs that are stored only if their id has no work: enqueue.lua looks at `flight` then.
"""

IN_USE: Final = (TRACKING, HEADERS, EXPIRY, REQUESTS, JOURNALLING)
"""Features that a shard begins to use with a push, a retry, or for an operator: `in_use` in its meta has them."""
TASKS: Final = "tasks"
"""In `in_use`, too, while the shard has items of any task: a process has to look after tasks."""
PROCESSES: Final = "processes"


_NO_SHARD: Final = ("",) * len((*SHARD_KEYS, SHELF))
"""In the place of a shard's keys, if there is none."""


def key_names(features: Iterable[str] = ()) -> tuple[str, ...]:
    """The names of all keys of a shard that uses these features, in their order."""
    return (*SHARD_KEYS, SHELF, *(name for feature in features for name in FEATURES[feature]))


def picker(names: tuple[str, ...], features: Iterable[str] = ()) -> Pick:
    """Picks the keys of these names from all that such a shard has."""
    positions = [*map(key_names(features).index, names)]
    if not positions:
        return lambda _keys: ()
    if len(positions) == 1:
        return lambda keys: (keys[positions[0]],)
    return itemgetter(*positions)


@dataclass(frozen=True)
class ShardRef:
    """One shard of one queue: what a lease is taken on."""

    queue_name: str
    shards_count: int
    index: int
    features: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """The features with keys of their own that the queue uses; the same for all of its shards."""
    by_tenant: bool = field(default=False, repr=False, compare=False)
    """Whether the queue has all ids of a tenant in one shard."""
    number: int = field(default=-1, repr=False, compare=False)
    """Its place among all shards of the queue: its index, but for the new shards of a queue that is being resharded."""
    prefix: str = field(default=PREFIX, repr=False)
    """The prefix of its keys, by the namespace of its app."""
    keys: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.number < 0:
            object.__setattr__(self, "number", self.index)
        tag = f"{escape(self.queue_name)}:{self.shards_count}:{self.index}"
        object.__setattr__(self, "keys", tuple(f"{self.prefix}:{{{tag}}}:{name}" for name in key_names(self.features)))

    def __hash__(self) -> int:
        # A text keeps its hash.
        return hash(self.keys[0])

    @property
    def channel(self) -> str:
        """The channel of its queue, see `notification_channel`."""
        return notification_channel(self.queue_name, self.prefix)

    def key(self, name: str) -> str:
        """The shard's key of that name."""
        return self.keys[key_names(self.features).index(name)]

    def some(self, pick: Pick) -> tuple[str, ...]:
        """The keys that a script is given."""
        return pick(self.keys)

    def using(self, features: Collection[str]) -> "ShardRef":
        """The same shard, with the keys of these features too."""
        return _with_features(self, self.features, self.by_tenant, self.number, tuple(features))


@cache
def _with_features(
    shard: ShardRef,
    own: tuple[str, ...],
    by_tenant: bool,  # noqa: ARG001, FBT001 - shards are equal that differ in it
    number: int,  # noqa: ARG001 - as above
    more: tuple[str, ...],
) -> ShardRef:
    """A shard has many keys, which every call of a script would write out anew."""
    features = tuple(name for name in FEATURES if name in own or name in more)
    return shard if features == own else replace(shard, features=features)


class ShardGroup(msgspec.Struct, frozen=True):
    """Shards of one set of features, on one node, that one call of a script may look at together."""

    shards: tuple[ShardRef, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the first, by which their node is found."""
        return self.shards[0].keys

    @property
    def features(self) -> tuple[str, ...]:
        """The features with keys of their own that the queues use."""
        return self.shards[0].features

    def some(self, pick: Pick) -> tuple[str, ...]:
        """The keys that a script is given, shard by shard."""
        return tuple(chain.from_iterable([pick(shard.keys) for shard in self.shards]))


@dataclass(frozen=True)
class QueueRef:
    """A queue, as far as its limits go: their keys lie in one slot, which is not that of its shards."""

    queue_name: str
    prefix: str = field(default=PREFIX, repr=False)
    """As that of a shard."""
    keys: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "keys", tuple(queue_key(self.queue_name, name, self.prefix) for name in FEATURES[LIMITS])
        )

    @property
    def channel(self) -> str:
        """The channel of the queue, see `notification_channel`."""
        return notification_channel(self.queue_name, self.prefix)

    def key(self, name: str) -> str:
        """The queue's key of that name."""
        return self.keys[FEATURES[LIMITS].index(name)]

    def some(self, pick: Pick) -> tuple[str, ...]:
        """The keys that a script is given."""
        return pick((*_NO_SHARD, *self.keys))


class TasksRef:
    """The records of tasks beside their items: one slot for all of them."""

    def __init__(self, prefix: str = PREFIX) -> None:
        self.keys: Final = tuple(f"{prefix}:{{{TASKS}}}:{name}" for name in FEATURES[TASK_SLOT])

    def some(self, pick: Pick) -> tuple[str, ...]:
        """The keys that a script is given."""
        return pick((*_NO_SHARD, *self.keys))


class ProcessesRef:
    """The records of the processes that drain: one slot for all of them."""

    def __init__(self, prefix: str = PREFIX) -> None:
        self.keys: Final = tuple(f"{prefix}:{{{PROCESSES}}}:{name}" for name in FEATURES[PROCESS_SLOT])

    def key(self, name: str) -> str:
        """The key of that name."""
        return self.keys[FEATURES[PROCESS_SLOT].index(name)]

    def some(self, pick: Pick) -> tuple[str, ...]:
        """The keys that a script is given."""
        return pick((*_NO_SHARD, *self.keys))


class LimiterRef:
    """One key of a limiter: what is kept of it has a slot of its own."""

    def __init__(self, name: str, key: str, prefix: str = PREFIX) -> None:
        tag = f"{LIMITER}:{escape(name)}:{escape(key)}"
        self.keys: Final = tuple(f"{prefix}:{{{tag}}}:{each}" for each in FEATURES[LIMITER])

    def some(self, pick: Pick) -> tuple[str, ...]:
        """The keys that a script is given."""
        return pick((*_NO_SHARD, *self.keys))


class Keyed(Protocol):
    """An owner of keys on one node that scripts get: a shard, some of them, a queue, duties, a limiter, or others."""

    @property
    def keys(self) -> tuple[str, ...]:
        """All of them; by the first their node is found."""
        ...

    def some(self, pick: Pick) -> tuple[str, ...]:
        """The keys that a script is given."""
        ...


ScriptTarget: TypeAlias = ShardRef | ShardGroup
"""The shard, or the shards, that one call of a script is given the keys of."""


def escape(queue_name: str) -> str:
    """The name in letters that mean nothing to a key or a hash tag; two names never give the same."""
    return quote(queue_name, safe="")


def key_prefix(namespace: str | None) -> str:
    """The prefix of all keys and channels of an app with this namespace: no other app has it."""
    return PREFIX if namespace is None else f"{namespace}:{PREFIX}"


def declaration_key(queue_name: str, prefix: str = PREFIX) -> str:
    """The key of a queue's declaration."""
    return queue_key(queue_name, "declaration", prefix)


def activity_key(queue_name: str, prefix: str = PREFIX) -> str:
    """The key of the activity of a queue, or of none (""): what people did."""
    return queue_key(queue_name, "activity", prefix)


def releases_key(prefix: str = PREFIX) -> str:
    """The key of the releases that processes of the server have had, and when each was first seen."""
    return f"{prefix}:{{{PROCESSES}}}:releases"


def limiters_key(name: str, prefix: str = PREFIX) -> str:
    """A key of all limiters: `set` has limits of operators by kind and limiter, `put_off` counts refusals."""
    return f"{prefix}:{{limiters}}:{name}"


def told_key(queue_name: str, prefix: str = PREFIX) -> str:
    """The key of the state of a queue that the ticks of functions have reported."""
    return queue_key(queue_name, "told", prefix)


def notification_channel(queue_name: str, prefix: str = PREFIX) -> str:
    """The channel on which a push says that a shard has work sooner than before."""
    return f"{prefix}:{escape(queue_name)}:notify"


def queue_key(queue_name: str, name: str, prefix: str = PREFIX) -> str:
    """A key of a queue that does not belong to one shard."""
    return f"{prefix}:{{{escape(queue_name)}}}:{name}"


def dashboard_key(name: str, prefix: str = PREFIX) -> str:
    """A key of the dashboard that does not belong to one queue."""
    return f"{prefix}:dashboard:{name}"

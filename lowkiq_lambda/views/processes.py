"""Processes that drain, as people see them."""

from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

ProcessKind: TypeAlias = Literal["daemon", "lambda"]
ProcessState: TypeAlias = Literal["starting", "running", "quiet", "stopping"]
"""`quiet`: it begins nothing new; `stopping`: nor does it stay when what runs has ended."""
NEAR_LIMIT: Final = 0.85
"""Of the limit of memory: the rest may be gone between two heartbeats, and is in part the system's."""
ProcessOrder: TypeAlias = Literal["", "quiet", "stop"]


class Doing(msgspec.Struct, frozen=True, kw_only=True):
    """What a thread of a process does: `count` ids of one shard, of which `ids` are the first.

    `since`: when it began with them, Unix seconds.
    """

    queue: str
    shard: int
    since: float
    count: int
    ids: tuple[str, ...]


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """A daemon, one of the processes of a daemon, or an invocation of the drain function, as of its last heartbeat.

    `since`, `seen_at`: Unix seconds, its start, and its last heartbeat. `threads`: how many shards it can drain at
    once. `release`: the version of the user's code in it, if that has one. `rss`: its resident memory in bytes, `peak`:
    the most as of late, `memory`: the limit of its function or container, each 0 if it is unknown. `cpu`: how
    many processors it kept at work since its heartbeat before, as a mean, None with the first one; `cores`: how many it
    may use. `round_trip`: seconds of its last call to Redis; `is_slow`: each of the last five took at least 50 ms.
    `order`: the last order of an operator, which it follows at its next heartbeat. `is_gone`: it sent no heartbeat for
    a minute, so it died or cannot reach Redis.
    """

    id: str = ""
    host: str
    pid: int
    kind: ProcessKind
    version: str
    since: float
    threads: int
    state: ProcessState
    release: str | UnsetType = UNSET
    doing: tuple[Doing, ...] = ()
    rss: int = 0
    peak: int = 0
    memory: int = 0
    cpu: float | None = None
    cores: float = 0.0
    round_trip: float | None = None
    is_slow: bool = False
    seen_at: float = 0.0
    order: ProcessOrder = ""
    is_gone: bool = False

    @property
    def is_near_limit(self) -> bool:
        """Whether it came near its limit of memory as of late, at which the system kills it without a word."""
        return 0 < NEAR_LIMIT * self.memory <= max(self.peak, self.rss)

    @property
    def quiet(self) -> bool:
        """Whether it begins nothing new any more."""
        return self.state in ("quiet", "stopping")

"""The parts of a queue: its shards with their holders, its tenants, and the records that were set aside."""

from typing import Final, Literal, TypeAlias

import msgspec


class DamagedRecord(msgspec.Struct, frozen=True, kw_only=True):
    r"""An unreadable record that was set aside at `at` (Unix seconds) from the key `key`.

    `number`: counts the records that were set aside in the shard. `id`: of the job, or the field; bytes that are not
    UTF-8 are written as `\x..`, and it is empty if the record has none. `data`: the first of its `size` bytes.
    """

    shard: int
    number: int
    at: float
    key: str
    id: str
    why: str
    data: bytes
    size: int


ShardRole: TypeAlias = Literal["open", "closed", "receiving"]


class ShardDetails(msgspec.Struct, frozen=True, kw_only=True):
    """A shard and its holder at `at`. Times are Unix seconds by the server's clock.

    `length`, `retries`, `in_flight`, `morgue_length`, `lag`: as in `Metrics`, but `lag` counts in a paused shard, too.
    `suspects`: ids that run first, alone or together with others. `started`: ids that wait and go on from a cursor.
    `due_at`: when the first waiting id is due. `owner`, `acquired_at` and `token` are those of the holder, or of the
    last one. `held_until`: when the lease ends; 0 after a release.
    `gave_up`: writes of the holder are rejected, because its process is about to exit or an operator evicted it; the
    shard is free at `held_until`. `woken_until`: a drain is being started, and must acquire the lease by then.
    `role`: while the queue gets another number of shards, it may be `closed` or `receiving`: no process acquires it.
    """

    index: int
    at: float
    length: int = 0
    retries: int = 0
    in_flight: int = 0
    morgue_length: int = 0
    suspects: int = 0
    started: int = 0
    lag: float = 0.0
    due_at: float | None = None
    token: int = 0
    owner: str = ""
    acquired_at: float | None = None
    held_until: float = 0.0
    gave_up: bool = False
    paused_until: float | None = None
    woken_until: float | None = None
    role: ShardRole = "open"

    @property
    def is_held(self) -> bool:
        """Whether a holder has the lease."""
        return self.held_until > self.at

    @property
    def is_paused(self) -> bool:
        """Whether the shard is paused, so that no process may acquire the lease."""
        return self.paused_until is not None and self.paused_until > self.at

    @property
    def lease_left(self) -> float:
        """Seconds until the lease ends, unless it is renewed."""
        return max(0.0, self.held_until - self.at)

    @property
    def lost_its_holder(self) -> bool:
        """Whether ids are in flight without a holder."""
        return self.in_flight > 0 and not self.is_held


class TenantView(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant with ids that wait, or of which a shard remembers something, at `at`. Times are Unix seconds.

    `waiting`: ids. `due_at`: when the first of them is due; None without ids. `served_from`: when it can be served, the
    earliest of its shards; past where it waits for others. `served_at`: when it was served last, `paused_until`: the
    end of its pause (infinite: until it is resumed), `rests_until`: when its rate lets the next begin; None where
    there is none.
    """

    tenant: str
    at: float
    waiting: int
    due_at: float | None
    served_from: float
    served_at: float | None = None
    paused_until: float | None = None
    rests_until: float | None = None

    @property
    def is_paused(self) -> bool:
        """Whether an operator has paused the tenant."""
        return self.paused_until is not None and self.paused_until > self.at

    @property
    def is_resting(self) -> bool:
        """Whether the rate keeps the tenant's ids from starting."""
        return self.rests_until is not None and self.rests_until > self.at


TenantOrder: TypeAlias = Literal["fair", "waiting"]
"""In their fair order, the next one first, or by waiting ids, the most first."""


MOST_TENANTS: Final = 1_000
"""Those that one look shows."""


class Tenants(msgspec.Struct, frozen=True):
    """Tenants of a queue, in the order that was asked for; `cut`: there are more."""

    tenants: list[TenantView]
    cut: bool

"""The limits of a queue for people: the limits that count, the shards with a permit, and the waiting shards."""

from collections.abc import Iterator, Sequence

import msgspec

from lowkiq_lambda.jobs.limiting import Limit
from lowkiq_lambda.jobs.rate import Rate


class PermitView(msgspec.Struct, frozen=True):
    """A visit that has one of a queue's permits. `until`: when that ends unless it is prolonged, in Unix seconds."""

    shard: int
    until: float


class WaitView(msgspec.Struct, frozen=True):
    """Another queue that this one waits for, and how many visits to it run now."""

    queue_name: str
    running: int


class LimitsView(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a queue at one moment (`at`); times are Unix seconds by the server's clock.

    `max_running`, `rate`: those that count, None without such a limit; `is_set`: an operator set one of them, at run
    time. `permits`: visits with a permit, the first to end first. `offered`: shards for which a free permit is kept for
    a second. `wait_list`: shards that wait, the next one first. `ids_left`: how many ids may begin now, None without a
    rate; `next_id_at`: when the next id may begin, if none may now. `waits_for`: the queues before this one.
    `undone`: shards that the last `set` or `reset` did not reach because it broke off: call it again.
    """

    queue_name: str
    at: float
    max_running: int | None
    rate: Rate | None
    is_set: bool
    permits: Sequence[PermitView] = ()
    offered: Sequence[int] = ()
    wait_list: Sequence[int] = ()
    ids_left: int | None = None
    next_id_at: float | None = None
    waits_for: Sequence[WaitView] = ()
    undone: Sequence[int] = ()

    @property
    def is_limited(self) -> bool:
        """Whether anything may keep a visit to the queue from beginning."""
        return self.max_running is not None or self.rate is not None or bool(self.waits_for)

    @property
    def blocking(self) -> list[WaitView]:
        """The queues that keep this one from beginning now."""
        return [wait for wait in self.waits_for if wait.running]

    def __str__(self) -> str:
        """All of it, in sentences."""
        return " ".join(self._sentences())

    def _sentences(self) -> Iterator[str]:
        if not self.is_limited:
            yield f"{self.queue_name} has no limits."
        if self.max_running is not None:
            yield f"{self.queue_name}: {len(self.permits)} of {self.max_running} permits are taken{self._by()}."
        if self.rate is not None:
            later = "" if self.next_id_at is None else f", the next in {max(0.0, self.next_id_at - self.at):.1f} s"
            ids = f"{self.ids_left} of {self.rate.ids} ids in {self.rate.per:g} s"
            yield f"{self.queue_name}: {ids} may begin now{later}."
        if self.wait_list:
            yield f"On the wait list: {_shards(self.wait_list)}."
        if self.offered:
            yield f"A permit was just offered to {_shards(self.offered)}."
        for wait in self.waits_for:
            yield f"{self.queue_name} waits for {wait.queue_name}, of which {wait.running} shards are visited now."
        if self.undone:
            yield f"The last change has not reached {_shards(self.undone)}: make it again."

    def _by(self) -> str:
        held = [
            f"shard {permit.shard} until {max(0.0, permit.until - self.at):.1f} s from now" for permit in self.permits
        ]
        return f" ({', '.join(held)})" if held else ""


def _shards(indexes: Sequence[int]) -> str:
    return f"shard{'s' if len(indexes) > 1 else ''} {', '.join(map(str, indexes))}"


class LimiterView(msgspec.Struct, frozen=True, kw_only=True):
    """A limiter that handlers ask, and one of its keys, at one moment.

    `limit`: the one that counts; `is_set`: an operator set it. `left`: points or places that are free for the key now.
    `waiting`: jobs with a ticket for the key. `put_off`: refusals of the limiter so far, of all keys.
    """

    name: str
    key: str
    limit: Limit
    is_set: bool
    left: int
    waiting: int
    put_off: int

    def __str__(self) -> str:
        """All of it, in sentences."""
        of = f"{self.name}/{self.key}" if self.key else self.name
        by = ", set by an operator" if self.is_set else ""
        return f"{of}: {self.limit!r}{by}. {self.left} left, {self.waiting} waiting. {self.put_off} put off so far."

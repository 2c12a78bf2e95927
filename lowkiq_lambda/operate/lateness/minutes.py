"""A minute of a queue, and what else is known of it: the evidence by which its lateness is judged. Values alone."""

from typing import Final

import msgspec

from lowkiq_lambda.store.shard.history import LATE

FULL: Final = 0.85
"""Of a shard's slots, busy: the rest goes to claims and settlings, so that more is hardly reached."""
HELD: Final = 0.9
"""Of a minute, under a lease: somebody is nearly always there."""
MOSTLY: Final = 2 / 3
"""Of the late shards that have to be full: a few may have come to their end, or begun."""
UNHELD: Final = 0.5
"""Of a minute, under a lease, below which a shard waits for a holder rather than for its slots."""


class ShardMinute(msgspec.Struct, frozen=True, kw_only=True):
    """A shard in a minute. `lag`, `waited`: seconds at its end, of all due ids, and of those that no holder has.

    `busy`: the share of its slots' time in which a call ran; `held`: the share of the minute under a lease.
    """

    lag: float
    waited: float
    busy: float
    held: float
    has_work: bool

    @property
    def is_full(self) -> bool:
        """Whether its slots were busy all the time, so that nothing but more slots or shorter calls helps it."""
        return self.busy >= FULL and self.held >= HELD

    def lacks_holder(self, waits: float) -> bool:
        """Whether ids have waited for longer than `waits` (seconds) in a shard that mostly nobody held."""
        return self.waited > waits and self.held < UNHELD


class Minute(msgspec.Struct, frozen=True, kw_only=True):
    """A queue in a minute: ids that ended, failures, and the present at its end.

    `held_back`: the lag of ids that wait for limits. `took`, `fill`: seconds and ids of a call, as means. `computing`:
    the share of calls' time in which a processor worked; `processors`: the share of what the processes may use.
    `threads`: of the processes that take work. What is None is not known.
    """

    seconds: float
    ended: int
    failed: int
    length: int
    retries: int
    held_back: float
    took: float | None
    fill: float | None
    computing: float | None
    processors: float | None
    threads: int
    shards: tuple[ShardMinute, ...]

    def late(self, limit: float) -> list[ShardMinute]:
        """The shards whose oldest due id has waited for longer."""
        return [shard for shard in self.shards if shard.lag > limit]

    @property
    def working(self) -> int:
        """How many shards have due ids, or ids in flight."""
        return sum(shard.has_work for shard in self.shards)

    def speaks_for_shards(self, limit: float) -> bool:
        """Whether most of the late shards were full: they would need more slots, if nothing else stands against it."""
        late = self.late(limit)
        return bool(late) and sum(shard.is_full for shard in late) >= MOSTLY * len(late)


class Present(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a queue beside its minutes.

    `at_it`: a clause with the people or the change at work, or empty. `limits`: the limits that count, in words.
    `suspects`: ids that run alone, as they failed in company or their process died. `usual`: seconds of a call in the
    median hour of the last week, of calls with as many ids. `hot`: the share of its load that the busiest shard would
    keep with twice the shards, and `hottest` the id with the most payloads in it, with its `part` of its present
    shard. `computing`: as in `Minute`, where handlers show none. `waits`: seconds for which ids may wait for a holder.
    `most`: to which holders raise `concurrency` by themselves; None: code says it.
    """

    limit: float = LATE
    waits: float = 2.0
    concurrency: int = 1
    most: int | None = None
    shards: int = 1
    at_it: str = ""
    limits: str = ""
    suspects: int = 0
    usual: float | None = None
    hot: float | None = None
    hottest: str = ""
    part: float = 0.0
    computing: float | None = None

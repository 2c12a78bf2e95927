"""What a simulation brings."""

import msgspec


class ShardOutcome(msgspec.Struct, frozen=True):
    """Seconds of one shard: `busy` in calls, `held` under a lease, `holderless` with due work that nobody held."""

    busy: float
    held: float
    holderless: float
    payloads: int


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a trace with a choice. Times are seconds.

    `jobs`: payloads that were performed; `calls` of the handler had `runs` ids in all. `p50` to `p99`, `mean`, `most`:
    how long the payloads waited until the first call that had them. `busy`: share of the time in which the slots of
    the compute had calls, from the first push to the last end; `seconds`: handlers' time in all.
    `visits` of shards; `invocations` of a function, and `billed` seconds of them. `end`: when all was done.
    `dead`: payloads that failed for good.
    `others_p95`: as `p95`, of all tenants but the one with most payloads; None where there is one, or none is known.
    `lag`: the longest wait of what began in each `step`; `depth`: payloads that waited at the end of it.
    """

    jobs: int
    calls: int
    runs: int
    p50: float
    p95: float
    p99: float
    mean: float
    most: float
    busy: float
    seconds: float
    visits: int
    invocations: int
    billed: float
    end: float
    step: float
    lag: tuple[float, ...]
    depth: tuple[int, ...]
    shards: tuple[ShardOutcome, ...]
    others_p95: float | None = None
    dead: int = 0

    @property
    def busiest(self) -> float:
        """Seconds of calls in the shard that had most of them."""
        return max(shard.busy for shard in self.shards)

    @property
    def skew(self) -> float:
        """How many times as much as the mean shard the busiest one has worked; 1.0: all the same."""
        total = sum(shard.busy for shard in self.shards)
        return self.busiest * len(self.shards) / total if total else 1.0

    @property
    def held(self) -> float:
        """Seconds in which the mean shard was held."""
        return sum(shard.held for shard in self.shards) / len(self.shards)

    @property
    def holderless(self) -> float:
        """Seconds in which the mean shard had due work and no holder."""
        return sum(shard.holderless for shard in self.shards) / len(self.shards)

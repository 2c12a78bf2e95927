"""What kept the drains of a queue from their work: batches far slower than usual, and processes that stood still."""

import logging
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from lowkiq_lambda.engine.budget import BatchTiming
    from lowkiq_lambda.store.shard.keys import ShardRef

logger = logging.getLogger(__name__)

_KNOWN_FOR: Final = 3_600.0
"""Seconds after the last one for which stalls count."""


class Hindrances(msgspec.Struct):
    """What kept the drains of a queue from their work as of late. Times are Unix seconds, all else seconds.

    `unused`: what a drain left of its budget, as it expected another batch as slow as the slowest; such a prediction
    counts until `unused_until`. `stalls`: how often a process did not renew a lease in time, though nothing but the
    process itself kept it from that; the longest was `stalled`, the last ended at `stalled_at`.
    """

    unused: float = 0.0
    unused_until: float = 0.0
    stalls: int = 0
    stalled: float = 0.0
    stalled_at: float = 0.0

    def note_stall(self, seconds: float, at: float) -> None:
        """A lease was renewed so many seconds late, or not at all; noticed at `at`."""
        if not self.stalls_lately(at):
            self.stalls, self.stalled = 0, 0.0
        # A process that stands still is late with all of its leases at once.
        is_same = at - self.stalled_at < seconds
        self.stalls, self.stalled = self.stalls + (not is_same), max(self.stalled, seconds)
        self.stalled_at = max(self.stalled_at, at)

    def stalls_lately(self, now: float) -> int:
        """How many there were, if the last is not long ago."""
        return self.stalls if now - self.stalled_at < _KNOWN_FOR else 0

    def join(self, other: "Hindrances") -> None:
        """Take in what another holder noted. Each counts on from what it took in, so the higher count has both."""
        if other.unused_until >= self.unused_until:
            self.unused, self.unused_until = other.unused, other.unused_until
        at = max(self.stalled_at, other.stalled_at)
        lately = [one for one in (self, other) if one.stalls_lately(at)]
        self.stalls = max((one.stalls for one in lately), default=0)
        self.stalled = max((one.stalled for one in lately), default=0.0)
        self.stalled_at = at


def tell_of_unused(hindrances: Hindrances, timing: "BatchTiming", shard: "ShardRef", now: float) -> None:
    """Log that a single slow batch is why a visit leaves much of its time unused."""
    text = (
        "%s: a drain ends with %.1f s unused: a batch took %.1f s, %.0f s ago, and the next one may; "
        "usually it takes %.3g s. This counts for %.0f s more"
    )
    ago, lasts = now - timing.seen_at, hindrances.unused_until - now
    fields = {"queue": shard.queue_name, "shard": shard.number, "unused": round(hindrances.unused, 3)}
    details = shard.queue_name, hindrances.unused, timing.slowest, ago, timing.usual, lasts
    logger.warning(text, *details, extra=fields)

"""What the drain function says about itself: metrics after every settling.

Each metric is on its way before the next batch starts, so that an invocation that Lambda kills has told all that it
got done. Only what Redis has acknowledged is told.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lowkiq_lambda.aws.emf import publish
from lowkiq_lambda.engine.budget import StopReason
from lowkiq_lambda.engine.drain import Drain
from lowkiq_lambda.protocols import SettledEvent
from lowkiq_lambda.store.shard.keys import ShardRef

_COUNTED: Final = ("done", "failed", "retried", "buried", "refused", "checkpointed", "recovered")


@dataclass(frozen=True, slots=True)
class Telemetry:
    """The metrics of one function; an Observer of its drains."""

    namespace: str
    function: str

    def cold_start(self) -> None:
        """The first invocation of this environment has begun."""
        publish(self.namespace, self.function, None, {"cold_start": 1})

    def started(self, drain: Drain) -> None:
        """The first probe brought each queue's lag. Where it is 0 the end tells it, so an idle tick is one line."""
        for queue, lag in lag_by_queue(drain.lags_at_start or {}).items():
            if lag > 0:
                publish(self.namespace, self.function, queue, {"lag_at_start": lag})

    def settled(self, event: SettledEvent) -> None:
        """Redis has acknowledged this."""
        values: dict[str, float] = {name: event.counts[name] for name in _COUNTED if event.counts.get(name)}
        if event.took:
            values["batch_duration"] = sum(event.took) / len(event.took)
            values["slowest_batch"] = max(event.took)
        if values:
            publish(self.namespace, self.function, event.queue_name, values, batches=len(event.took))

    def ended(self, drain: Drain) -> None:
        """The invocation is about to end: the lag that is left, and why each shard was left."""
        at_start, at_end = lag_by_queue(drain.lags_at_start or {}), lag_by_queue(drain.lags)
        for queue, reasons in reasons_by_queue(drain).items():
            values: dict[str, float] = {f"ended_{reason.replace(' ', '_')}": n for reason, n in reasons.items()}
            if at_start.get(queue) == 0:
                values["lag_at_start"] = 0.0
            if queue in at_end:
                values["lag_at_end"] = at_end[queue]
            publish(self.namespace, self.function, queue, values, reason=" ".join(sorted(reasons)))


def lag_by_queue(lags: Mapping[ShardRef, float]) -> dict[str, float]:
    """The largest lag of each queue's shards."""
    most: dict[str, float] = {}
    for shard, lag in lags.items():
        most[shard.queue_name] = max(lag, most.get(shard.queue_name, 0.0))
    return most


def reasons_by_queue(drain: Drain) -> dict[str, Counter[StopReason]]:
    """How many shards of each queue were left for which reason."""
    reasons: dict[str, Counter[StopReason]] = {}
    for shard in drain.shards:
        if shard in drain.reasons:
            reasons.setdefault(shard.queue_name, Counter())[drain.reasons[shard]] += 1
    return reasons

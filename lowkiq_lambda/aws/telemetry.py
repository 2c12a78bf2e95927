"""What the drain function says about itself: of its work in one line of its log, and, where asked for, in metrics.

Each metric is on its way before the next batch starts, so that an invocation that Lambda kills has told all that it
got done. Only what Redis has acknowledged is told.
"""

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from lowkiq_lambda.aws.logs import publish
from lowkiq_lambda.engine.budget import StopReason
from lowkiq_lambda.engine.loop import Loop
from lowkiq_lambda.settings.aws import Settings
from lowkiq_lambda.settings.protocols import SettledEvent
from lowkiq_lambda.store.shard.keys import ShardRef

_COUNTED: Final = (
    "done",
    "failed",
    "retried",
    "rejected",
    "discarded",
    "expired",
    "cancelled",
    "checkpointed",
    "recovered",
)


class _Work(msgspec.Struct):
    """What was settled of a queue."""

    counts: Counter[str] = msgspec.field(default_factory=Counter)
    batches: int = 0
    seconds: float = 0.0
    slowest: float = 0.0


class Telemetry:
    """Adds up the work of one invocation, and publishes nothing; an Observer of its drain."""

    def __init__(self) -> None:
        # Visits of several shards settle in threads of their own.
        self._lock = threading.Lock()
        self._work: dict[str, _Work] = {}

    def cold_start(self) -> None:
        """The first invocation of this environment has begun."""

    def started(self, loop: Loop) -> None:
        """The first probe brought each queue's lag."""

    def settled(self, event: SettledEvent) -> None:
        """Redis has acknowledged this."""
        with self._lock:
            work = self._work.setdefault(event.queue_name, _Work())
            work.counts.update(event.counts)
            work.batches += len(event.took)
            work.seconds += sum(event.took)
            work.slowest = max(work.slowest, *event.took, 0.0)

    def ended(self, loop: Loop) -> None:
        """The invocation is about to end: the lag that is left, and why each shard was left."""

    def line(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of the log's line of an invocation that answers this: without idle queues, and with its `work`.

        So the line of an idle minute is as long for a hundred queues as for one.
        """
        busy = {name: of_queue for name, of_queue in answer["queues"].items() if not _is_idle(of_queue)}
        tick = {"tick": line_of_tick(answer["tick"])} if "tick" in answer else {}
        return {**answer, **tick, "queues": busy, **({"work": self._told()} if self._work else {})}

    def _told(self) -> dict[str, dict[str, Any]]:
        """For each queue its ids by outcome, and of its batches how many, their seconds, and the slowest."""
        return {
            queue: {
                **work.counts,
                "batches": work.batches,
                "seconds": round(work.seconds, 3),
                "slowest": round(work.slowest, 3),
            }
            for queue, work in self._work.items()
        }


class PublishedTelemetry(Telemetry):
    """Publishes the metrics of one function after each settling, by queue."""

    def __init__(self, namespace: str, function: str) -> None:
        super().__init__()
        self._namespace = namespace
        self._function = function

    def cold_start(self) -> None:
        """The first invocation of this environment has begun."""
        publish(self._namespace, self._function, None, {"cold_start": 1})

    def started(self, loop: Loop) -> None:
        """The first probe brought each queue's lag. Where it is 0 the end tells it, so an idle tick is one line."""
        for queue, lag in lag_by_queue(loop.lags_at_start or {}).items():
            if lag > 0:
                publish(self._namespace, self._function, queue, {"lag_at_start": lag})

    def settled(self, event: SettledEvent) -> None:
        """Redis has acknowledged this."""
        super().settled(event)
        values: dict[str, float] = {name: event.counts[name] for name in _COUNTED if event.counts.get(name)}
        if event.took:
            values["batch_duration"] = sum(event.took) / len(event.took)
            values["slowest_batch"] = max(event.took)
        if values:
            publish(self._namespace, self._function, event.queue_name, values, batches=len(event.took))
        if dead := event.counts.get("dead"):
            # Of the function as a whole a tick counts them, those of daemons too: nobody dies twice there.
            publish(self._namespace, self._function, event.queue_name, {"dead": dead}, roll_up=False)

    def ended(self, loop: Loop) -> None:
        """The invocation is about to end: the lag that is left, and why each shard was left."""
        at_start, at_end = lag_by_queue(loop.lags_at_start or {}), lag_by_queue(loop.lags)
        for queue, reasons in reasons_by_queue(loop).items():
            values: dict[str, float] = {f"ended_{reason.replace(' ', '_')}": n for reason, n in reasons.items()}
            if at_start.get(queue) == 0:
                values["lag_at_start"] = 0.0
            if queue in at_end:
                values["lag_at_end"] = at_end[queue]
            publish(self._namespace, self._function, queue, values, reason=" ".join(sorted(reasons)))


def telemetry_of(settings: Settings, function: str) -> Telemetry:
    """What tells of an invocation of the function, as the settings say."""
    return PublishedTelemetry(settings.metrics_namespace, function) if settings.metrics == "queues" else Telemetry()


def lag_by_queue(lags: Mapping[ShardRef, float]) -> dict[str, float]:
    """The largest lag of each queue's shards."""
    most: dict[str, float] = {}
    for shard, lag in lags.items():
        most[shard.queue_name] = max(lag, most.get(shard.queue_name, 0.0))
    return most


def reasons_by_queue(loop: Loop) -> dict[str, Counter[StopReason]]:
    """How many shards of each queue were left for which reason."""
    reasons: dict[str, Counter[StopReason]] = {}
    for shard in loop.shards:
        if shard in loop.reasons:
            reasons.setdefault(shard.queue_name, Counter())[loop.reasons[shard]] += 1
    return reasons


def summary(loop: Loop) -> dict[str, Any]:
    """What an invocation returns: why it ended, ids by outcome, and for each queue its lags and why shards were left.

    `left` is how many shards have work that nobody does now. A queue's `predicted` stands where no further batch of it
    was predicted to fit: for how many seconds one was expected to run.
    """
    at_start, at_end = lag_by_queue(loop.lags_at_start or {}), lag_by_queue(loop.lags)
    return {
        "reason": loop.reason,
        "counts": dict(loop.counts),
        "left": len(loop.left),
        "queues": {
            queue: {
                "shards": dict(reasons),
                "lag_at_start": _rounded(at_start.get(queue)),
                "lag_at_end": _rounded(at_end.get(queue)),
                **({"predicted": round(loop.predictions[queue], 3)} if queue in loop.predictions else {}),
            }
            for queue, reasons in reasons_by_queue(loop).items()
        },
    }


def line_of_tick(summary: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the log's line of a tick that answers this: without queues in which nothing is."""
    if not summary.get("queues"):
        return {**summary}
    return {**summary, "queues": {name: each for name, each in summary["queues"].items() if any(each.values())}}


def _is_idle(of_queue: Mapping[str, Any]) -> bool:
    return of_queue["shards"].keys() == {"empty"} and not (of_queue["lag_at_start"] or of_queue["lag_at_end"])


def _rounded(lag: float | None) -> float | None:
    return None if lag is None else round(lag, 3)

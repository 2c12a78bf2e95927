"""What became of an id, as the journal of its shard has it."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.declare.worker import Worker

SHOWN: Final = 100
_WORDS: Final[Mapping[str, str]] = {
    "pushed": "A payload was pushed.",
    "joined": "A payload merged with an equal one.",
    "superseded": "A newer payload replaced one.",
    "claimed": "A drain claimed it.",
    "done": "It was done.",
    "retried": "It failed, and waits for its retry.",
    "returned": "It was returned to the queue.",
    "suspected": "It is suspected of the death of its holder.",
    "checkpointed": "Its cursor was saved, and it waits to go on.",
    "recovered": "Its holder ended, and the next one put it back.",
    "dead": "A payload failed for the last time.",
    "held": "Its oldest payload failed for the last time, and is held.",
    "released": "An operator released it.",
    "refused": "It ended with Failed.",
    "killed": "An operator buried it.",
    "deleted": "A payload was deleted.",
    "redriven": "It came back from the morgue.",
    "trimmed": "A bound of the morgue removed a payload.",
    "evicted": "An operator evicted its holder.",
}
_BAD: Final = frozenset({"dead", "refused", "trimmed"})
_WARN: Final = frozenset({"retried", "suspected", "recovered", "held", "evicted", "killed", "deleted"})


class TimelineEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event, in a sentence. `token`: of the holder, or None. `tone`: "bad", "warn" or "" for its mark."""

    at: float
    sentence: str
    payloads: int | None
    shard: int
    token: int | None
    tone: str


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """The last events, the newest first, and how many older ones are left out.

    `since`: pushes, claims and outcomes are complete from then on, None where the journal does not have them now.
    """

    events: list[TimelineEvent]
    more: int
    since: float | None


def timeline(context: RequestContext, worker: type[Worker[Any]], job_id: str) -> Timeline:
    """What is known of the id. Raises BackendError."""
    told = context.app.operate.queries(worker).biography(job_id)
    events = [
        TimelineEvent(
            at=event.at,
            sentence=_WORDS.get(event.kind, event.kind),
            payloads=event.payloads,
            shard=event.shard,
            token=event.token,
            tone="bad" if event.kind in _BAD else "warn" if event.kind in _WARN else "",
        )
        for event in reversed(told.events[-SHOWN:])
    ]
    return Timeline(events=events, more=max(0, len(told.events) - SHOWN), since=told.since)

"""The duties of an app, for people to look at."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.duty_claims import DutyClaims, DutyStateReply, Period


@dataclass(frozen=True, slots=True)
class DutyState:
    """A duty, and what became of its last run. Times are Unix seconds by the server's clock; None: it never ran."""

    name: str
    every: float
    is_running: bool
    last_run: float | None
    """When the last run began, or the present one."""
    last_seconds: float | None
    """How long the last run took; None too where nobody has said that it is over."""
    next_run: float
    """When it is due, as far as its claims say. A time that is over: nobody came to run it."""
    failures: int
    """In a row."""
    last_error: str | None
    """Of the last run, where that failed, or nobody has said that it is over."""


def duty_states(
    backend: Backend, queue_names: Iterable[str], duties: Sequence[Period], retry_for: float
) -> list[DutyState]:
    """The state of each. Raises BackendError."""
    if not duties:
        return []
    replies = DutyClaims(backend, queue_names).states(duties, retry_for)
    return [_duty_state(name, every, reply) for (name, every), reply in zip(duties, replies, strict=True)]


def _duty_state(name: str, every: float, reply: DutyStateReply) -> DutyState:
    dead = reply.unfinished - reply.is_claimed
    took = None
    if reply.unfinished == 0 and reply.began_at is not None and reply.ended_at is not None:
        took = max(0.0, reply.ended_at - reply.began_at)
    return DutyState(
        name=name,
        every=every,
        is_running=reply.is_claimed,
        last_run=reply.began_at,
        last_seconds=took,
        next_run=reply.due_at,
        failures=reply.failed + dead,
        last_error="nobody has said that its last run is over: its process died, or lost Redis"
        if dead
        else reply.error or None,
    )

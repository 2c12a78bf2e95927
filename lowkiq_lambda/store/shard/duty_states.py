"""The duties of an app, for people to look at."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.duty_claims import DutyClaims, DutyRecord, Period


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
    backend: Backend, queue_names: Iterable[str], duties: Sequence[Period], retry_for: float, scope: str = ""
) -> list[DutyState]:
    """The state of each; `scope` as in `DutyKey.of`. Raises BackendError."""
    if not duties:
        return []
    records = DutyClaims(backend, queue_names, scope).states(duties, retry_for)
    return [_duty_state(name, every, record) for (name, every), record in zip(duties, records, strict=True)]


def _duty_state(name: str, every: float, record: DutyRecord) -> DutyState:
    dead = record.unfinished - record.is_claimed
    took = None
    if record.unfinished == 0 and record.began_at is not None and record.ended_at is not None:
        took = max(0.0, record.ended_at - record.began_at)
    return DutyState(
        name=name,
        every=every,
        is_running=record.is_claimed,
        last_run=record.began_at,
        last_seconds=took,
        next_run=record.due_at,
        failures=record.failed + dead,
        last_error="nobody has said that its last run is over: its process died, or lost Redis"
        if dead
        else record.error or None,
    )

"""What happened to a job and what will, in one list: pushes, runs, failures, and who did what to it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.jobs.job import Failure
from lowkiq_lambda.operate.inspect.activity import read_activity
from lowkiq_lambda.operate.presentation.formatting import duration, exact, selected, visible
from lowkiq_lambda.operate.queue_operations import QueueOperations
from lowkiq_lambda.store.server.together import Together
from lowkiq_lambda.views.activity import KEPT, ActivityEntry
from lowkiq_lambda.views.jobs import JobExplanation
from lowkiq_lambda.views.journal import Biography, LifeEvent
from lowkiq_lambda.views.runs import KeptRun

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
    "blocked": "Its oldest payload failed for the last time, and is blocked.",
    "unblocked": "An operator unblocked it.",
    "rejected": "It, or a payload of it, ended with Rejected.",
    "ended": "A payload was done, and the others go on.",
    "discarded": "A payload was discarded.",
    "expired": "The time of a payload was over.",
    "killed": "An operator killed it.",
    "deleted": "A payload was deleted.",
    "restored": "An operator took back that a payload was deleted.",
    "restored_dead": "An operator took back that a dead payload was deleted.",
    "edited": "An operator edited a payload.",
    "requeued": "An operator requeued it.",
    "trimmed": "A bound of the morgue removed a payload.",
    "evicted": "An operator evicted its holder.",
}
_BAD: Final = frozenset({"dead", "rejected", "discarded", "expired", "trimmed"})
_WARN: Final = frozenset({"retried", "suspected", "recovered", "blocked", "evicted", "killed", "deleted", "edited"})
_OPERATOR: Final = "An operator "
_STEM: Final = 4
"""Letters that the name of an action and that of its event have in common, as "kill" and "killed"."""
_SAME: Final = 5.0
"""Seconds between an event in a journal and the line that its action leaves, at most."""
_STAGES: Final = 3
"""Failures in the strip; the older ones are in the list."""


class TimelineEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event, in a sentence. `more`: what is told beside it; `error`: its text, or None; `tone`: "bad", "warn" or "".

    `is_planned`: it has not happened yet.
    """

    at: float
    sentence: str
    more: str = ""
    error: str | None = None
    tone: str = ""
    is_planned: bool = False


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """The last events, the newest first, and how many older ones are left out.

    `since`: pushes, claims and outcomes are complete from then on, None where the journal does not have them now.
    """

    events: list[TimelineEvent]
    more: int
    since: float | None


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the strip above the list: its name, when it began, or `note`. `tone`: as of an event, or "next"."""

    name: str
    at: float | None = None
    note: str = ""
    tone: str = ""


class JobPast(NamedTuple):
    """What was read of an id for its timeline."""

    life: Biography
    runs: list[KeptRun]
    acts: list[ActivityEntry]


def read_past(context: RequestContext, worker: type[Worker[Any]], queue: QueueOperations, job_id: str) -> JobPast:
    """What is known of the id. Raises BackendError."""
    backend, retry_for = context.app.core.backend, context.app.config.redis_retry_for
    with Together() as side:
        life = side.look(queue.glimpse().biography, job_id)
        runs = side.look(queue.runs, id=job_id, limit=SHOWN) if worker.keep_runs is not None else None
        acts = side.look(read_activity, backend, retry_for, [worker.queue_name], KEPT)
    return JobPast(life.result, runs.result if runs else [], [act for act in acts.result if _is_on(act, job_id)])


def _is_on(act: ActivityEntry, job_id: str) -> bool:
    """Whether the line of the activity names the id."""
    name = selected([job_id]).partition(": ")[2]
    return name in act.target.partition(": ")[2].split(", ") or act.target.endswith(f" of {visible(job_id)}")


def timeline(past: JobPast, situation: JobExplanation) -> Timeline:
    """All of it in one list, with what is planned."""
    acts, runs, life = [*past.acts], [*past.runs], past.life
    events = [_of_life(event, acts) for event in reversed(life.events[-SHOWN:]) if not _is_told(event, situation)]
    events += [_of_failure(failure, runs) for failure in situation.failures]
    events += map(_of_run, runs)
    # Those that no event of a journal tells of.
    events += [
        TimelineEvent(at=act.at, sentence=f"{visible(act.who)}: {act.action.replace('_', ' ')}.", more=_reason(act))
        for act in acts
    ]
    events.sort(key=lambda event: event.at, reverse=True)
    return Timeline(
        events=[*_planned(situation), *events[:SHOWN]], more=max(0, len(life.events) - SHOWN), since=life.since
    )


def stages_of(situation: JobExplanation, max_retry_count: float) -> list[Stage]:
    """The strip: the last failures, what it does now, and the next try."""
    if situation.is_unknown:
        return []
    tries = max_retry_count + 1
    stages = [
        Stage(name=f"Try {exact(failure.retry_count + 1)} failed", at=failure.at, tone="bad")
        for failure in reversed(situation.failures[:_STAGES])
    ]
    following = f"Try {exact(situation.retry_count + 2)} of {exact(tries)}"
    if situation.in_flight:
        return [*stages, Stage(name="Runs now", note=following, tone="warn")]
    if situation.due_at is None:
        return [*stages, Stage(name="Dead", at=situation.dead_since, tone="bad")]
    if situation.blocked_since is not None:
        return [*stages, Stage(name="Blocked", at=situation.blocked_since, tone="warn")]
    ahead = situation.due_at - situation.shard.at
    wait = f"for {duration(ahead)} more" if ahead > 0 else f"due for {duration(-ahead)}"
    return [
        *stages,
        Stage(name="Waits", note=wait, tone="warn"),
        Stage(name=following, at=situation.due_at, tone="next"),
    ]


def _planned(situation: JobExplanation) -> Iterator[TimelineEvent]:
    if situation.due_at is not None and situation.blocked_since is None and situation.due_at > situation.shard.at:
        words = f"Try {exact(situation.retry_count + 2)} is planned." if situation.failures else "It is planned to run."
        yield TimelineEvent(at=situation.due_at, sentence=words, tone="warn", is_planned=True)


def _is_told(event: LifeEvent, situation: JobExplanation) -> bool:
    """Whether a failure tells of it, with its error."""
    return event.kind == "retried" and any(abs(failure.at - event.at) < _SAME for failure in situation.failures)


def _of_failure(failure: Failure, runs: list[KeptRun]) -> TimelineEvent:
    """The failure, with how long its run took where that is kept: that one is taken out of the list."""
    run = next((run for run in runs if run.error is not None and abs(_end_of(run) - failure.at) < _SAME), None)
    after = ""
    if run is not None:
        runs.remove(run)
        after = "" if run.took is None else f" after {duration(run.took)}"
    decided = "" if failure.rule in {"", "expired"} else f"{visible(failure.rule)} decided"
    return TimelineEvent(
        at=failure.at,
        sentence=f"Try {exact(failure.retry_count + 1)} failed{after}.",
        more=decided,
        error=visible(failure.error),
        tone="bad",
    )


def _of_life(event: LifeEvent, acts: list[ActivityEntry]) -> TimelineEvent:
    """The event, with who did it where a line of the activity says so: that one is taken out of the list."""
    words = _WORDS.get(event.kind, event.kind)
    sentence = f"{words.removesuffix('.')} by {visible(event.rule)}." if event.rule else words
    payloads = f"{exact(event.payloads)} payloads" if event.payloads is not None and event.payloads > 1 else ""
    holder = "" if event.token is None else f", holder {event.token}"
    parts = [payloads, f"shard {event.shard}{holder}"]
    if sentence.startswith(_OPERATOR):
        alike = (act for act in acts if act.action[:_STEM] == event.kind[:_STEM])
        act = next((act for act in alike if abs(act.at - event.at) < _SAME), None)
        if act is not None:
            acts.remove(act)
            sentence, parts = f"{visible(act.who)} {sentence.removeprefix(_OPERATOR)}", [*parts, _reason(act)]
    return TimelineEvent(
        at=event.at,
        sentence=sentence,
        more=" · ".join(filter(None, parts)),
        tone="bad" if event.kind in _BAD else "warn" if event.kind in _WARN else "",
    )


def _reason(act: ActivityEntry) -> str:
    return f"“{visible(act.reason)}”" if act.reason else ""


def _end_of(run: KeptRun) -> float:
    return run.at + (run.took or 0.0)


def _of_run(run: KeptRun) -> TimelineEvent:
    length = "" if run.took is None else f" of {duration(run.took)}"
    payloads = f"{exact(run.payloads)} payloads" if run.payloads and run.payloads > 1 else ""
    return TimelineEvent(
        at=_end_of(run),
        sentence=f"A run{length} ended: {run.outcome}.",
        more=" · ".join(filter(None, [payloads, f"shard {run.shard}, holder {run.token}"])),
        error=None if run.error is None else visible(run.error),
        tone="bad" if run.outcome in _BAD else "warn" if run.outcome in _WARN else "",
    )

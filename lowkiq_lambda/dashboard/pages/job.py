"""One job: its state, its payloads, its past, its task, and the reason why it is not running."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final

import msgspec
from starlette.responses import Response

from lowkiq_lambda.base.errors import JobError, NoSuchTask
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.pages.parts import chosen_worker, no_queue
from lowkiq_lambda.dashboard.pages.payloads import PayloadRenderer, RenderedPayload, RenderedProgress
from lowkiq_lambda.dashboard.pages.rows import shown_id
from lowkiq_lambda.dashboard.task_words import KINDS, MEANINGS
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.jobs.job import Failure, JobView, MorgueJob
from lowkiq_lambda.operate.presentation.changed_leaves import ChangedLeaves, changes_of_texts
from lowkiq_lambda.operate.presentation.formatting import duration, unescaped, visible
from lowkiq_lambda.operate.presentation.jobs import why
from lowkiq_lambda.operate.queue_operations import QueueOperations
from lowkiq_lambda.tasks.task import Task
from lowkiq_lambda.tasks.views import STATUSES, Item
from lowkiq_lambda.views.jobs import JobExplanation
from lowkiq_lambda.views.journal import LifeEvent

_LONGEST_ID: Final = 1_000
_LARGE: Final = 100_000
"""Characters of payloads; a larger page is refreshed seldom."""
_OFTEN: Final = 3
"""Seconds until a page is refreshed."""
_SELDOM: Final = 15
_LARGEST: Final = 1_000_000
"""Characters of payloads of one part; API Gateway's limit is 6 MB."""

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


class KeyedPayload(RenderedPayload, frozen=True, kw_only=True):
    """A payload with a key that is stable across refreshes and unique in its part."""

    key: str
    changes: ChangedLeaves | None = None
    """In which leaves it differs from the payload before it; None for the first, and where that cannot be said."""


class JobPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a job that is in one state. `at`: its due time, or its time of death."""

    place: str
    title: str
    at: float
    retry_count: float | None
    error: str | None
    payloads: list[KeyedPayload]
    more: int
    failures: tuple[Failure, ...]
    progress: RenderedProgress | None


def show(context: RequestContext) -> Response:
    """The page, or its live region."""
    worker, job_id = chosen_worker(context), context.query.get("id")
    if worker is None:
        return no_queue(context)
    if job_id is None:
        return context.render("job_ask.html", queue=worker.queue_name, shards=context.app.operate(worker).shards())
    queue = context.app.operate(worker)
    try:
        situation, meant = _meant(queue, job_id)
    except JobError as error:
        return context.refuse(400, f"Invalid id: {error}.")
    parts = [*_parts(context, worker.queue_name, queue, meant)]
    return context.render(
        "job_live.html" if context.is_partial else "job.html",
        queue=worker.queue_name,
        id=meant,
        typed=visible(job_id) if meant != job_id else "",
        name=shown_id(meant),
        whole=shown_id(meant, _LONGEST_ID),
        task=None if context.is_partial else task_of(context, worker.queue_name, meant),
        # A journal is read as a whole, so not with each refresh.
        timeline=None if context.is_partial else timeline(context, worker, meant),
        situation=situation,
        diagnosis=why(context.app.operate, worker, situation),
        max_retry_count=worker.max_retry_count,
        parts=parts,
        # Failures belong to the id, so each part has the same.
        failures=next((part.failures for part in parts if part.failures), ()),
        toolbar="job",
        refresh=_OFTEN if sum(len(payload.text) for part in parts for payload in part.payloads) < _LARGE else _SELDOM,
    )


def _meant(queue: QueueOperations, job_id: str) -> tuple[JobExplanation, str]:
    """The explanation of the id; if it is unknown, of an id that the pages show in this form. Raises JobError."""
    explanation = queue.explain(job_id)
    other = unescaped(job_id)
    if explanation.is_unknown and other != job_id:
        with suppress(JobError):
            of_other = queue.explain(other)
            if not of_other.is_unknown:
                return of_other, other
    return explanation, job_id


def _parts(context: RequestContext, queue_name: str, queue: QueueOperations, job_id: str) -> Iterator[JobPart]:
    renderer = PayloadRenderer(context, queue_name)
    for job in queue.in_flight.fetch([job_id]):
        yield _part("flight", "In flight", renderer, job)
    for job in queue.waiting.fetch([job_id]):
        yield _part("waiting", "Waiting", renderer, job)
    for dead in queue.morgue.fetch([job_id]):
        yield _part("morgue", "In the morgue", renderer, dead)


def _shown(renderer: PayloadRenderer, job: JobView | MorgueJob) -> list[KeyedPayload]:
    """The first payloads, up to the limit of a page."""
    rows, left, digests = list[KeyedPayload](), _LARGEST, Counter[str]()
    for scored in job.payloads:
        if left <= 0:
            break
        payload = renderer.whole(job.id, scored)
        digest = sha256(f"{payload.score!r} {payload.text}".encode(errors="replace")).hexdigest()[:16]
        # Of the texts, which are masked.
        changes = changes_of_texts(rows[-1].text, payload.text) if rows else None
        key = f"{digest}-{digests[digest]}"
        rows.append(KeyedPayload(**msgspec.structs.asdict(payload), key=key, changes=changes))
        digests[digest] += 1
        left -= len(payload.text)
    return rows


def _part(place: str, title: str, renderer: PayloadRenderer, job: JobView | MorgueJob) -> JobPart:
    payloads = _shown(renderer, job)
    return JobPart(
        place=place,
        title=title,
        at=job.updated_at if isinstance(job, MorgueJob) else job.due_at,
        retry_count=None if isinstance(job, MorgueJob) else job.retry_count,
        error=None if job.error is None else visible(job.error),
        payloads=payloads,
        more=job.more_payloads + len(job.payloads) - len(payloads),
        failures=job.failures,
        progress=None if job.progress is None else renderer.progress(job.id, job.progress),
    )


class TaskOfJob(msgspec.Struct, frozen=True, kw_only=True):
    """The task, and the item as the task knows it; None if it has another status by now."""

    id: str
    name: str
    item: Item | None
    meaning: str
    kind: str


def task_of(context: RequestContext, queue: str, job_id: str) -> TaskOfJob | None:
    """The task in the address; None without one, or if it is forgotten."""
    task_id = context.query.get("task", "")
    if not task_id:
        return None
    try:
        task = context.app.tasks.get(task_id)
        name = task.progress().name
        item = _item(task, context.query.get("item", ""))
    except NoSuchTask:
        return None
    if item is not None and (item.queue_name, item.id) != (queue, job_id):
        item = None
    meaning, kind = (MEANINGS[item.status], KINDS.get(item.status, "")) if item else ("", "")
    return TaskOfJob(id=task_id, name=name, item=item, meaning=meaning, kind=kind)


def _item(task: Task, place: str) -> Item | None:
    """The item of a place such as failed-3."""
    name, _, number = place.partition("-")
    status = next((one for one in STATUSES.values() if one == name), None)
    if status is None or not (number.isascii() and number.isdecimal() and int(number[:10]) > 0):
        return None
    items = task.items(status, f"{status}-{int(number[:10]) - 1}", 1).items
    return next((item for item in items if str(item.number) == number), None)


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


def _sentence(event: LifeEvent) -> str:
    words = _WORDS.get(event.kind, event.kind)
    return f"{words.removesuffix('.')} by {visible(event.rule)}." if event.rule else words


def timeline(context: RequestContext, worker: type[Worker[Any]], job_id: str) -> Timeline:
    """What is known of the id. Raises BackendError."""
    biography = context.app.operate(worker).biography(job_id)
    events = [
        TimelineEvent(
            at=event.at,
            sentence=_sentence(event),
            payloads=event.payloads,
            shard=event.shard,
            token=event.token,
            tone="bad" if event.kind in _BAD else "warn" if event.kind in _WARN else "",
        )
        for event in reversed(biography.events[-SHOWN:])
    ]
    events += _runs_of(context, worker, job_id)
    events.sort(key=lambda event: event.at, reverse=True)
    return Timeline(events=events[:SHOWN], more=max(0, len(biography.events) - SHOWN), since=biography.since)


def _runs_of(context: RequestContext, worker: type[Worker[Any]], job_id: str) -> Iterator[TimelineEvent]:
    """The kept runs of the id, if the queue keeps any."""
    if worker.keep_runs is None:
        return
    for run in context.app.operate(worker).runs(id=job_id, limit=SHOWN):
        length = "" if run.took is None else f" of {duration(run.took)}"
        error = "" if run.error is None else f": {visible(run.error)}"
        yield TimelineEvent(
            at=run.at + (run.took or 0.0),
            sentence=f"A run{length} ended: {run.outcome}{error}.",
            payloads=run.payloads or None,
            shard=run.shard,
            token=run.token,
            tone="bad" if run.outcome in _BAD else "warn" if run.outcome in _WARN else "",
        )

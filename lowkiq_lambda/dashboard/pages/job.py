"""One job: its state, its payloads, its past, its task, and the reason why it is not running."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec
from starlette.responses import Response

from lowkiq_lambda.base.errors import JobError, NoSuchTask
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.pages.job_timeline import JobPast, read_past, stages_of, timeline
from lowkiq_lambda.dashboard.pages.parts import chosen_worker, no_queue
from lowkiq_lambda.dashboard.pages.payloads import PayloadRenderer, RenderedPayload, RenderedProgress
from lowkiq_lambda.dashboard.pages.rows import shown_id
from lowkiq_lambda.dashboard.task_words import KINDS, MEANINGS
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.jobs.job import JobView, MorgueJob, id_text
from lowkiq_lambda.operate.presentation.changed_leaves import ChangedLeaves, changes_of_texts
from lowkiq_lambda.operate.presentation.formatting import unescaped, visible
from lowkiq_lambda.operate.presentation.jobs import most_retries, why
from lowkiq_lambda.operate.queue_operations import QueueOperations
from lowkiq_lambda.store.server.together import Together
from lowkiq_lambda.tasks.task import Task
from lowkiq_lambda.tasks.views import STATUSES, Item
from lowkiq_lambda.views.jobs import JobExplanation

_LONGEST_ID: Final = 1_000
_LARGE: Final = 100_000
"""Characters of payloads; a larger page is refreshed seldom."""
_OFTEN: Final = 3
"""Seconds until a page is refreshed."""
_SELDOM: Final = 15
_LARGEST: Final = 1_000_000
"""Characters of payloads of one part; API Gateway's limit is 6 MB."""


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
        look = _look(context, worker, queue, job_id)
    except JobError as error:
        return context.refuse(400, f"Invalid id: {error}.")
    most = most_retries(worker, look.situation)
    meant, parts = look.id, [*_parts(PayloadRenderer(context, worker.queue_name), look)]
    return context.render(
        "job_live.html" if context.is_partial else "job.html",
        queue=worker.queue_name,
        id=meant,
        typed=visible(job_id) if meant != job_id else "",
        name=shown_id(meant),
        whole=shown_id(meant, _LONGEST_ID),
        task=look.task,
        timeline=timeline(look.past, look.situation) if look.past else None,
        situation=look.situation,
        diagnosis=why(context.app.operate, worker, look.situation),
        max_retry_count=most,
        parts=parts,
        stages=stages_of(look.situation, most),
        toolbar="job",
        refresh=_OFTEN if sum(len(payload.text) for part in parts for payload in part.payloads) < _LARGE else _SELDOM,
    )


class _Look(NamedTuple):
    """All that is read of an id."""

    id: str
    situation: JobExplanation
    in_flight: list[JobView]
    waiting: list[JobView]
    dead: list[MorgueJob]
    task: "TaskOfJob | None"
    past: JobPast | None


def _look(context: RequestContext, worker: type[Worker[Any]], queue: QueueOperations, job_id: str) -> _Look:
    """All that is read of the id, or, if it is unknown, of an id that the pages show in this form. Raises JobError."""
    look = _look_at(context, worker, queue, id_text(job_id))
    other = unescaped(job_id)
    if look.situation.is_unknown and other != job_id:
        with suppress(JobError):
            look_at_other = _look_at(context, worker, queue, id_text(other))
            if not look_at_other.situation.is_unknown:
                return look_at_other
    return look


def _look_at(context: RequestContext, worker: type[Worker[Any]], queue: QueueOperations, job_id: str) -> _Look:
    ids, is_whole = [job_id], not context.is_partial
    # Before the looks, each of which would read the declaration.
    _ = queue.reader
    with Together() as side:
        situation = side.look(queue.explain, job_id)
        in_flight, waiting = side.look(queue.in_flight.fetch, ids), side.look(queue.waiting.fetch, ids)
        dead = side.look(queue.morgue.fetch, ids)
        task = side.look(task_of, context, worker.queue_name, job_id) if is_whole else None
        # A journal is read as a whole, so not with each refresh.
        past = side.look(read_past, context, worker, queue, job_id) if is_whole else None
    return _Look(
        id=job_id,
        situation=situation.result,
        in_flight=in_flight.result,
        waiting=waiting.result,
        dead=dead.result,
        task=task.result if task else None,
        past=past.result if past else None,
    )


def _parts(renderer: PayloadRenderer, look: _Look) -> Iterator[JobPart]:
    for job in look.in_flight:
        yield _part("flight", "In flight", renderer, job)
    for job in look.waiting:
        yield _part("waiting", "Waiting", renderer, job)
    for dead in look.dead:
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

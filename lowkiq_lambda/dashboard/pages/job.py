"""One job: its state, its payloads, and the reason why it is not running."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from typing import Final

import msgspec
from starlette.responses import Response

from lowkiq_lambda.base.errors import JobError
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.pages.job_task import task_of
from lowkiq_lambda.dashboard.pages.payloads import PayloadRenderer, RenderedPayload, RenderedProgress
from lowkiq_lambda.dashboard.pages.queue import chosen_worker, no_queue
from lowkiq_lambda.dashboard.pages.rows import shown_id
from lowkiq_lambda.dashboard.pages.timeline import timeline
from lowkiq_lambda.jobs.job import Failure, JobView, MorgueJob
from lowkiq_lambda.operate.inspect.queries import Queries
from lowkiq_lambda.operate.presentation.formatting import unescaped, visible
from lowkiq_lambda.operate.presentation.jobs import why
from lowkiq_lambda.views.queues import JobExplanation

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


class JobPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a job that is in one state. `at`: its due time, or its burial time."""

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
        return context.render(
            "job_ask.html", queue=worker.queue_name, shards=context.app.operate.queries(worker).shards()
        )
    queries = context.app.operate.queries(worker)
    try:
        situation, meant = _meant(queries, job_id)
    except JobError as error:
        return context.refuse(400, f"Invalid id: {error}.")
    parts = [*_parts(context, worker.queue_name, queries, meant)]
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


def _meant(queries: Queries, job_id: str) -> tuple[JobExplanation, str]:
    """The explanation of the id; if it is unknown, of an id that the pages show in this form. Raises JobError."""
    explanation = queries.explain(job_id)
    other = unescaped(job_id)
    if explanation.is_unknown and other != job_id:
        with suppress(JobError):
            of_other = queries.explain(other)
            if not of_other.is_unknown:
                return of_other, other
    return explanation, job_id


def _parts(context: RequestContext, queue_name: str, queries: Queries, job_id: str) -> Iterator[JobPart]:
    renderer = PayloadRenderer(context, queue_name)
    for job in queries.processing_fetch([job_id]):
        yield _part("flight", "In flight", renderer, job)
    for job in queries.fetch([job_id]):
        yield _part("waiting", "Waiting", renderer, job)
    for buried in queries.morgue_fetch([job_id]):
        yield _part("morgue", "In the morgue", renderer, buried)


def _shown(renderer: PayloadRenderer, job: JobView | MorgueJob) -> list[KeyedPayload]:
    """The first payloads, up to the limit of a page."""
    shown, left, digests = list[KeyedPayload](), _LARGEST, Counter[str]()
    for scored in job.payloads:
        if left <= 0:
            break
        payload = renderer.whole(job.id, scored)
        digest = sha256(f"{payload.score!r} {payload.text}".encode(errors="replace")).hexdigest()[:16]
        shown.append(KeyedPayload(**msgspec.structs.asdict(payload), key=f"{digest}-{digests[digest]}"))
        digests[digest] += 1
        left -= len(payload.text)
    return shown


def _part(place: str, title: str, renderer: PayloadRenderer, job: JobView | MorgueJob) -> JobPart:
    payloads = _shown(renderer, job)
    return JobPart(
        place=place,
        title=title,
        at=job.updated_at if isinstance(job, MorgueJob) else job.perform_in,
        retry_count=None if isinstance(job, MorgueJob) else job.retry_count,
        error=None if job.error is None else visible(job.error),
        payloads=payloads,
        more=job.more_payloads + len(job.payloads) - len(payloads),
        failures=job.failures,
        progress=None if job.progress is None else renderer.progress(job.id, job.progress),
    )

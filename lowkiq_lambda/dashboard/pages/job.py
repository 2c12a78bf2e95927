"""One job: where it is, what its payloads are, and why it is not running."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from starlette.responses import Response

from lowkiq_lambda.dashboard.formatting import visible
from lowkiq_lambda.dashboard.pages.payloads import Reader, Shown
from lowkiq_lambda.dashboard.pages.queue import chosen, no_queue
from lowkiq_lambda.dashboard.pages.rows import shown_id
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.dashboard.why import why
from lowkiq_lambda.errors import JobError
from lowkiq_lambda.job import Failure, JobView, MorgueJob
from lowkiq_lambda.store.queries import Queries

_LONGEST_ID: Final = 1_000
_LARGEST: Final = 1_000_000
"""Characters of payloads that are shown of one place; API Gateway takes six megabytes."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What lies of the job in one place. `at`: when it is due, or when it died."""

    place: str
    title: str
    at: float
    retry_count: float | None
    error: str | None
    payloads: list[Shown]
    more: int
    failures: tuple[Failure, ...]


def show(visit: Visit) -> Response:
    """The page, or what changes on it."""
    worker, job_id = chosen(visit), visit.query.get("id")
    if worker is None:
        return no_queue(visit)
    if job_id is None:
        return visit.page("job_ask.html", queue=worker.queue_name)
    queries = visit.app.queries(worker)
    try:
        seen = queries.situation(job_id)
    except JobError as error:
        return visit.refuse(400, f"That can be no id: it {error}.")
    known: dict[str, Any] = {
        "queue": worker.queue_name,
        "id": job_id,
        "seen": seen,
        "answer": why(seen),
        "max_retry_count": worker.max_retry_count,
    }
    if visit.is_partial:
        return visit.page("job_live.html", **known)
    parts = [*_parts(visit, worker.queue_name, queries, job_id)]
    # They are the id's, wherever parts of it are.
    failures = next((part.failures for part in parts if part.failures), ())
    name, whole = shown_id(job_id), shown_id(job_id, _LONGEST_ID)
    return visit.page("job.html", **known, name=name, whole=whole, parts=parts, failures=failures, toolbar="job")


def _parts(visit: Visit, queue_name: str, queries: Queries, job_id: str) -> Iterator[Part]:
    reader = Reader(visit, queue_name)
    for job in queries.processing_fetch([job_id]):
        yield _part("flight", "In flight", reader, job)
    for job in queries.fetch([job_id]):
        yield _part("waiting", "Waiting", reader, job)
    for buried in queries.morgue_fetch([job_id]):
        yield _part("morgue", "In the morgue", reader, buried)


def _shown(reader: Reader, job: JobView | MorgueJob) -> list[Shown]:
    """As many of its payloads as a page takes."""
    shown, left = list[Shown](), _LARGEST
    for scored in job.payloads:
        if left <= 0:
            break
        shown.append(reader.whole(job.id, scored))
        left -= len(shown[-1].text)
    return shown


def _part(place: str, title: str, reader: Reader, job: JobView | MorgueJob) -> Part:
    payloads = _shown(reader, job)
    return Part(
        place=place,
        title=title,
        at=job.updated_at if isinstance(job, MorgueJob) else job.perform_in,
        retry_count=None if isinstance(job, MorgueJob) else job.retry_count,
        error=None if job.error is None else visible(job.error),
        payloads=payloads,
        more=job.more_payloads + len(job.payloads) - len(payloads),
        failures=job.failures,
    )

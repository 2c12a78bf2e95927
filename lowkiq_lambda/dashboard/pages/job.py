"""One job: where it is, what its payloads are, and why it is not running."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from typing import Final

import msgspec
from starlette.responses import Response

from lowkiq_lambda.dashboard.formatting import unescaped, visible
from lowkiq_lambda.dashboard.pages.payloads import Reader, Shown
from lowkiq_lambda.dashboard.pages.queue import chosen, no_queue
from lowkiq_lambda.dashboard.pages.rows import shown_id
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.dashboard.why import why
from lowkiq_lambda.errors import JobError
from lowkiq_lambda.job import Failure, JobView, MorgueJob
from lowkiq_lambda.store.inspect.queries import Queries
from lowkiq_lambda.views import JobExplanation

_LONGEST_ID: Final = 1_000
_LARGE: Final = 100_000
"""Characters of payloads from which on the page is seldom refreshed."""
_OFTEN: Final = 3
"""Seconds until a page is refreshed."""
_SELDOM: Final = 15
_LARGEST: Final = 1_000_000
"""Characters of payloads that are shown of one place; API Gateway takes six megabytes."""


class Keyed(Shown, frozen=True, kw_only=True):
    """A payload with what tells it from the others of its part, from one refresh to the next."""

    key: str


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What lies of the job in one place. `at`: when it is due, or when it died."""

    place: str
    title: str
    at: float
    retry_count: float | None
    error: str | None
    payloads: list[Keyed]
    more: int
    failures: tuple[Failure, ...]


def show(visit: Visit) -> Response:
    """The page, or what changes on it."""
    worker, job_id = chosen(visit), visit.query.get("id")
    if worker is None:
        return no_queue(visit)
    if job_id is None:
        return visit.page("job_ask.html", queue=worker.queue_name, shards=visit.app.queries(worker).shards())
    queries = visit.app.queries(worker)
    try:
        seen, meant = _meant(queries, job_id)
    except JobError as error:
        return visit.refuse(400, f"That can be no id: it {error}.")
    parts = [*_parts(visit, worker.queue_name, queries, meant)]
    return visit.page(
        "job_live.html" if visit.is_partial else "job.html",
        queue=worker.queue_name,
        id=meant,
        asked=visible(job_id) if meant != job_id else "",
        name=shown_id(meant),
        whole=shown_id(meant, _LONGEST_ID),
        seen=seen,
        answer=why(seen),
        max_retry_count=worker.max_retry_count,
        parts=parts,
        # They are the id's, wherever parts of it are.
        failures=next((part.failures for part in parts if part.failures), ()),
        toolbar="job",
        refresh=_OFTEN if sum(len(one.text) for part in parts for one in part.payloads) < _LARGE else _SELDOM,
    )


def _meant(queries: Queries, job_id: str) -> tuple[JobExplanation, str]:
    """What there is under the id; where that is nothing, under the one that pages show as it. Raises JobError."""
    seen = queries.explain(job_id)
    other = unescaped(job_id)
    if seen.is_unknown and other != job_id:
        with suppress(JobError):
            found = queries.explain(other)
            if not found.is_unknown:
                return found, other
    return seen, job_id


def _parts(visit: Visit, queue_name: str, queries: Queries, job_id: str) -> Iterator[Part]:
    reader = Reader(visit, queue_name)
    for job in queries.processing_fetch([job_id]):
        yield _part("flight", "In flight", reader, job)
    for job in queries.fetch([job_id]):
        yield _part("waiting", "Waiting", reader, job)
    for buried in queries.morgue_fetch([job_id]):
        yield _part("morgue", "In the morgue", reader, buried)


def _shown(reader: Reader, job: JobView | MorgueJob) -> list[Keyed]:
    """As many of its payloads as a page takes."""
    shown, left, seen = list[Keyed](), _LARGEST, Counter[str]()
    for scored in job.payloads:
        if left <= 0:
            break
        one = reader.whole(job.id, scored)
        digest = sha256(f"{one.score!r} {one.text}".encode(errors="replace")).hexdigest()[:16]
        shown.append(Keyed(**msgspec.structs.asdict(one), key=f"{digest}-{seen[digest]}"))
        seen[digest] += 1
        left -= len(one.text)
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

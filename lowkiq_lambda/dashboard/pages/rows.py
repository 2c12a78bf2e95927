"""Jobs as rows of a list."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.pages.payloads import PayloadRenderer, shortened
from lowkiq_lambda.declare.worker import Worker, shard_index
from lowkiq_lambda.jobs.job import NEVER_FAILED, JobView, MorgueJob, ProgressView
from lowkiq_lambda.operate.presentation.formatting import quoted, visible
from lowkiq_lambda.operate.presentation.progress_words import progress_words
from lowkiq_lambda.store.shard.nodes import FAR

_LONGEST_ID: Final = 80
LONGEST_LINK: Final = 6_000


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """A job. `at`: its due time, or its time of death. `blocked`: it has none, until an operator unblocks it.

    `link`: None for an id that is too long for an address. `preview`: of its first payload; None for a large one.
    `progress`: of a started job, with its words; without its cursor, which a row does not show.
    """

    key: str
    id: str
    name: str
    link: str | None
    shard: int
    at: float
    ahead: float
    blocked: bool
    retry_count: float
    error: str | None
    payloads: int
    preview: str | None
    progress: ProgressView | None
    progress_words: str


def rows_of(context: RequestContext, worker: type[Worker[Any]], jobs: Iterable[JobView | MorgueJob]) -> list[JobRow]:
    """A row for each job."""
    renderer, now = PayloadRenderer(context, worker.queue_name), context.site.now()
    return [_row(context, worker, renderer, now, number, job) for number, job in enumerate(jobs)]


def _row(  # noqa: PLR0913, PLR0917 - shared by all rows, and of one row
    context: RequestContext,
    worker: type[Worker[Any]],
    renderer: PayloadRenderer,
    now: float,
    number: int,
    job: JobView | MorgueJob,
) -> JobRow:
    at = job.updated_at if isinstance(job, MorgueJob) else job.due_at
    return JobRow(
        key=f"job-{number}",
        id=job.id,
        name=shown_id(job.id),
        link=context.link("job", queue=worker.queue_name, id=job.id) if len(quoted(job.id)) <= LONGEST_LINK else None,
        shard=shard_index(worker, job.id),
        at=at,
        ahead=at - now,
        blocked=at >= FAR,
        retry_count=NEVER_FAILED if isinstance(job, MorgueJob) else job.retry_count,
        error=None if job.error is None else _line_of(job.error),
        payloads=len(job.payloads) + job.more_payloads,
        preview=renderer.line(job.id, job.payloads[0]) if job.payloads else None,
        progress=job.progress,
        progress_words=visible(progress_words(job.progress)) if job.progress else "",
    )


def _line_of(error: str) -> str:
    """One line of an error: the last of a Python traceback, the first of any other text."""
    lines = error.strip().splitlines() or [""]
    return shortened(visible(lines[-1 if lines[0].startswith("Traceback (") else 0]))


def shown_id(job_id: str, length: int = _LONGEST_ID) -> str:
    """A visible form of the id, of at most `length` characters."""
    if not job_id.strip():
        return f"“{visible(job_id)}”"
    text = visible(job_id[: length + 1])
    return text if len(text) <= length else f"{text[: length - 1]}…"

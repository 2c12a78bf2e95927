"""`lowkiq show`: a job, wherever it is."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import msgspec
from cyclopts import Parameter

from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.cli.codes import DONE, FAILED
from lowkiq_lambda.cli.output import remark, say, write_json
from lowkiq_lambda.cli.parts import AppOption, command_app, flag
from lowkiq_lambda.cli.queues import QueueName, app_of, queue_of
from lowkiq_lambda.operate.presentation.formatting import ago, plain, utc, visible

if TYPE_CHECKING:
    from lowkiq_lambda.operate.presentation.jobs import DeadJob, JobDetails, Payload, ProgressResponse, WaitingJob

JobId: TypeAlias = Annotated[str, Parameter(name="ID", help="The id of the job.")]

_HELP: Final = """
Show the job of an ID in QUEUE: its place, its payloads, its progress, its failures, and why it runs or does not.

A job may wait, be in flight and lie in the morgue at once, with different payloads. The app's mask hides the same \
here as on the dashboard. An ID that begins with a hyphen comes after --.
"""
_EPILOGUE: Final = """
EXIT CODES
  0  The job is shown.
  1  The queue has no job of this id.
  2  The command line, the settings or the app cannot work.
  3  Redis cannot be reached.

EXAMPLES
  A job:
    lowkiq show SyncOrder 17
  Its oldest payload that waits:
    lowkiq show SyncOrder 17 --json | jq '.waiting.payloads[0].payload'
"""
command: Final = command_app("show", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq show [OPTIONS] QUEUE ID")


@command.default
def show(
    queue: QueueName,
    job_id: JobId,
    /,
    *,
    app: AppOption = None,
    json: Annotated[bool, flag("Write an object as GET /api/v1/job does; times are Unix seconds.")] = False,
) -> int:
    """Show it; the exit code."""
    from lowkiq_lambda.operate.presentation.jobs import JobSerializer, job_details, no_job, why

    loaded = app_of(app)
    named_queue = queue_of(loaded, queue)
    serializer = JobSerializer(named_queue.name, named_queue.shards.number_for, loaded.config.mask)
    details = job_details(
        named_queue.operate, serializer, job_id, partial(why, loaded.operate, named_queue.agreed_worker)
    )
    if details is None:
        remark(visible(no_job(named_queue.operate, job_id)))
        return FAILED
    if json:
        write_json(details)
    else:
        say(*_lines(details, SystemClock.time()))
    return DONE


def _lines(details: "JobDetails", now: float) -> Iterator[str]:
    from lowkiq_lambda.operate.presentation.diagnosis_words import EXPIRED

    waiting, processing, dead = details.waiting, details.processing, details.morgue
    if processing is not None:
        yield f"in flight, in shard {processing.shard}"
        yield from _rest(processing)
    if waiting is not None:
        due = waiting.rests or f"due {_moment(waiting.due_at, now)}"
        yield f"waiting in shard {waiting.shard}, {due}, {_failed(waiting.retry_count)}"
        yield from _rest(waiting)
    if dead is not None:
        yield f"in the morgue of shard {dead.shard}, since {_moment(dead.updated_at, now)}"
        yield from _rest(dead)
    if details.failures:
        yield "failures, the newest first"
    for failure in details.failures:
        rule = f" ({visible(failure.rule)} decided)" if failure.rule not in {"", EXPIRED} else ""
        yield f"  {_moment(failure.at, now)}: {_one_line(failure.error)}{rule}"
    yield f"why: {details.why}"


def _rest(job: "WaitingJob | DeadJob") -> Iterator[str]:
    for payload in job.payloads:
        yield f"  score {plain(payload.score)}: {_shown(payload.payload, payload)}"
    if job.more_payloads:
        yield f"  and {job.more_payloads:,} more payloads"
    if job.progress is not None:
        yield visible(f"  progress: {job.progress.words}")
        yield f"  cursor: {_shown(job.progress.cursor, job.progress)}"
    if job.error:
        yield f"  error: {_one_line(job.error)}"


def _shown(value: msgspec.Raw | msgspec.UnsetType, holder: "Payload | ProgressResponse") -> str:
    """The value, or why the holder does not have it."""
    if isinstance(value, msgspec.Raw):
        return visible(bytes(value).decode())
    if isinstance(holder.left_out, int):
        return f"({holder.left_out:,} bytes, which are not shown)"
    if isinstance(holder.unreadable, bytes):
        return f"(cannot be decoded: {holder.unreadable!r})"
    return "(not shown, as the app's mask failed)"


def _failed(retry_count: int) -> str:
    from lowkiq_lambda.operate.presentation.diagnosis_words import times

    return "never failed" if retry_count < 0 else f"failed {times(retry_count + 1)}"


def _moment(at: float, now: float) -> str:
    return f"{ago(at - now)} ({utc(at)})"


def _one_line(error: str) -> str:
    return visible(next(iter(error.splitlines()), ""))

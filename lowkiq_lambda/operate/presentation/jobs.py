"""Jobs as JSON, for the API and for the command line."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec

from lowkiq_lambda.declare.worker import Worker, at_most, shard_index
from lowkiq_lambda.jobs.job import Failure, JobView, MorgueJob, ProgressView, ScoredPayload
from lowkiq_lambda.operate.operations import Operations
from lowkiq_lambda.operate.presentation.diagnosis import Diagnosis, diagnose
from lowkiq_lambda.operate.presentation.diagnosis_words import NO_JOB
from lowkiq_lambda.operate.presentation.formatting import utc, visible
from lowkiq_lambda.operate.presentation.limit_words import limits_of
from lowkiq_lambda.operate.presentation.masking import MaskFailed, Masking
from lowkiq_lambda.operate.presentation.payload_json import payload_json
from lowkiq_lambda.operate.presentation.progress_words import progress_words
from lowkiq_lambda.operate.queue_operations import QueueOperations
from lowkiq_lambda.settings.protocols import Mask
from lowkiq_lambda.store.shard.nodes import FAR, FOREVER
from lowkiq_lambda.views.jobs import JobExplanation

_DROPPED: Final = frozenset({"discarded", "expired"})
LARGEST_PAYLOAD: Final = 1024 * 1024
"""Bytes of JSON; the response leaves larger payloads out."""


class Payload(msgspec.Struct, frozen=True, kw_only=True):
    """A payload with its score, and one of four fields.

    `payload`: the payload as JSON. `unreadable`: the stored bytes in base64, which the app's codec cannot decode.
    `left_out`: the size in bytes of a payload that is too large for a response. `mask_failed`: true if the app's mask
    raised; then the response does not have the payload.
    """

    score: float
    payload: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    unreadable: bytes | msgspec.UnsetType = msgspec.UNSET
    left_out: int | msgspec.UnsetType = msgspec.UNSET
    mask_failed: bool | msgspec.UnsetType = msgspec.UNSET


class FailureResponse(msgspec.Struct, frozen=True, kw_only=True):
    """One failure of a job. `at`: Unix seconds. `retry_count`: 0 for the first. `error`: its first and last line.

    `rule`: the rule of the worker that decided about it, as in `kill_on(SchemaError)`; empty for none.
    """

    at: float
    retry_count: int
    error: str
    rule: str


class ProgressResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a started job, over all of its runs, with one of four fields for its cursor.

    `cursor`: the cursor as JSON. `unreadable`: the stored progress in base64, which the library cannot decode; then the
    numbers are 0. `left_out` and `mask_failed` as in a payload. `items`: the number of changes of the cursor; `total`:
    the number of items that the job expects, or null. `interruptions`: the number of runs that were stopped before the
    end; `reason`: of the last one. `failures`: the number of runs that failed. `seconds`: the duration of all runs.
    `started_at`: the beginning of the first run in Unix seconds. `fraction`: the part that is done, from 0 to 1, or
    null.
    """

    items: int
    total: int | None
    interruptions: int
    failures: int
    seconds: float
    started_at: float | None
    reason: str
    fraction: float | None
    cursor: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    unreadable: bytes | msgspec.UnsetType = msgspec.UNSET
    left_out: int | msgspec.UnsetType = msgspec.UNSET
    mask_failed: bool | msgspec.UnsetType = msgspec.UNSET

    @property
    def words(self) -> str:
        """It in words, without the cursor."""
        numbers = {name: getattr(self, name) for name in ProgressView.__struct_fields__ if name != "cursor"}
        cursor = self.unreadable if isinstance(self.unreadable, bytes) else None
        return progress_words(ProgressView(cursor=cursor, **numbers))


class JobResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A job. `more_payloads`: the number of payloads that the response leaves out.

    `progress`: of a job that has saved a cursor and has not ended; null for other jobs.
    """

    id: str
    shard: int
    payloads: list[Payload]
    more_payloads: int
    error: str | None
    progress: ProgressResponse | None


class WaitingJob(JobResponse, frozen=True, kw_only=True):
    """A waiting job or one in flight. `due_at`: Unix seconds. `retry_count`: -1 before the first failure."""

    due_at: float
    retry_count: int

    @property
    def rests(self) -> str:
        """The word blocked or paused, of one that is due only once an operator acts; else empty."""
        return "blocked" if self.due_at >= FAR else "paused" if self.due_at >= FOREVER else ""


class DeadJob(JobResponse, frozen=True, kw_only=True):
    """A job in the morgue. `updated_at`: the time of its last death, in Unix seconds."""

    updated_at: float


class WaitingJobs(msgspec.Struct, frozen=True, kw_only=True):
    """A page of jobs.

    `next`: the cursor of the next page, null at the end. `cut`: the search stopped before the end of the list.
    """

    jobs: list[WaitingJob]
    next: str | None
    cut: bool = False


class DeadJobs(msgspec.Struct, frozen=True, kw_only=True):
    """A page of jobs in the morgue; `next` and `cut` as in `WaitingJobs`."""

    jobs: list[DeadJob]
    next: str | None
    cut: bool = False


class JobDetails(msgspec.Struct, frozen=True, kw_only=True):
    """One job. It may wait, be in flight and lie in the morgue at once, with different payloads.

    `failures`: the last five since its last success, newest first. `why`: a sentence for people that explains why the
    job is or is not running. `next_at`: the time of the next expected event. `expires_at`: after that time its oldest
    payload is not handed to a handler.
    """

    waiting: WaitingJob | None
    processing: WaitingJob | None
    morgue: DeadJob | None
    failures: list[FailureResponse]
    why: str
    next_at: float | None
    expires_at: float | None


class JobSerializer:
    """Serializes jobs of one queue, with masked payloads."""

    def __init__(self, queue_name: str, shard_of: Callable[[str], int], mask: Mask | None) -> None:
        self._shard_of = shard_of
        self._masking = Masking(mask, queue_name)

    def waiting(self, job: JobView) -> WaitingJob:
        """A waiting job or one in flight."""
        return WaitingJob(**self._common(job), due_at=job.due_at, retry_count=int(job.retry_count))

    def dead(self, job: MorgueJob) -> DeadJob:
        """A job in the morgue."""
        return DeadJob(**self._common(job), updated_at=job.updated_at)

    def failures(self, job: JobView | MorgueJob) -> list[FailureResponse]:
        """The failures that Redis keeps of the job."""
        return [_failure(failure) for failure in job.failures]

    def _common(self, job: JobView | MorgueJob) -> dict[str, Any]:
        return {
            "id": job.id,
            "shard": self._shard_of(job.id),
            "payloads": [self._payload(job.id, scored) for scored in job.payloads],
            "more_payloads": job.more_payloads,
            "error": job.error if job.error is None else _encodable(job.error),
            "progress": self._progress(job.id, job.progress),
        }

    def _payload(self, job_id: str, scored: ScoredPayload) -> Payload:
        return Payload(score=scored.score, **self.masked("payload", job_id, scored.payload))

    def _progress(self, job_id: str, progress: ProgressView | None) -> ProgressResponse | None:
        if progress is None:
            return None
        fields = msgspec.structs.asdict(progress)
        return ProgressResponse(**(fields | {"cursor": msgspec.UNSET} | self.masked("cursor", job_id, progress.cursor)))

    def masked(self, name: str, job_id: str, value: object) -> dict[str, Any]:
        """The field of the value, or the one that stands in for it."""
        try:
            masked = self._masking.of(job_id, value)
        except MaskFailed:
            return {"mask_failed": True}
        is_unreadable = isinstance(masked, bytes)
        encoded = masked if isinstance(masked, bytes) else payload_json(masked)
        if len(encoded) > LARGEST_PAYLOAD:
            return {"left_out": len(encoded)}
        return {"unreadable": encoded} if is_unreadable else {name: msgspec.Raw(encoded)}


def serializer_for(worker: type[Worker[Any]], mask: Mask | None) -> JobSerializer:
    """That of the worker's queue."""
    return JobSerializer(worker.queue_name, partial(shard_index, worker), mask)


def why(operations: Operations, worker: type[Worker[Any]] | None, situation: JobExplanation) -> Diagnosis:
    """Why the job runs, or does not; the app may have no worker for its queue. Raises QueueMismatch, BackendError."""
    if worker is None:
        return diagnose(situation, 1)
    limits = limits_of(operations, worker, situation)
    return diagnose(situation, at_most(worker.concurrency), limits, most_retries(worker, situation))


def most_retries(worker: type[Worker[Any]], situation: JobExplanation) -> int:
    """How often the job is retried at most: by the rule that decided about its last failure, else by its worker."""
    decided = situation.failures[0].rule if situation.failures else ""
    by_rule = next((rule.most for rule in worker.on_error if rule.name == decided), None)
    return worker.max_retry_count if by_rule is None else min(by_rule, worker.max_retry_count)


def job_details(
    queue: QueueOperations, serializer: JobSerializer, job_id: str, explain: Callable[[JobExplanation], Diagnosis]
) -> JobDetails | None:
    """The job, wherever it is; None if the queue has no job of this id. Raises JobError, BackendError."""
    # In the order of a job's states, so that a job that moves meanwhile is found at least once.
    waiting, in_flight = queue.waiting.fetch([job_id]), queue.in_flight.fetch([job_id])
    dead = queue.morgue.fetch([job_id])
    views: list[JobView | MorgueJob] = [*waiting, *in_flight, *dead]
    if not views:
        return None
    situation = queue.explain(job_id)
    diagnosis = explain(situation)
    return JobDetails(
        waiting=next(map(serializer.waiting, waiting), None),
        processing=next(map(serializer.waiting, in_flight), None),
        morgue=next(map(serializer.dead, dead), None),
        failures=next((serializer.failures(each) for each in views if each.failures), []),
        why=diagnosis.sentence,
        next_at=diagnosis.next_at,
        expires_at=situation.expires_at,
    )


def trace_of(queue: QueueOperations, job_id: str) -> str:
    """A sentence on what a payload of an id left behind when it was dropped, if there is anything. Raises BackendError.

    The journal has the last payload that a rule discarded, or that expired. Else it is the last run that is kept.
    """
    events = [event for event in queue.biography(job_id).events if event.kind in _DROPPED]
    if events and events[-1].kind == "expired":
        return f"A payload of it expired, which was found at {utc(events[-1].at)}."
    if events:
        error = f"the error has the fingerprint {events[-1].fingerprint}"
        return f"{visible(events[-1].rule)} dropped a payload of it at {utc(events[-1].at)}; {error}."
    for run in queue.runs(id=job_id, limit=1):
        error = "" if run.error is None else f", {visible(run.error)}"
        return f"Its last kept run began at {utc(run.at)}: {run.outcome}{error}."
    return ""


def no_job(queue: QueueOperations, job_id: str) -> str:
    """What is known of an id of which the queue has no job. Raises BackendError."""
    return f"{NO_JOB} {trace_of(queue, job_id)}".rstrip()


def _failure(failure: Failure) -> FailureResponse:
    return FailureResponse(
        at=failure.at,
        retry_count=int(failure.retry_count),
        error=_encodable(failure.error),
        rule=_encodable(failure.rule),
    )


def _encodable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()

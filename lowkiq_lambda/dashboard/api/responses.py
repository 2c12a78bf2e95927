"""Jobs as JSON of a bounded size."""

from collections.abc import Iterable
from typing import Any, Final, TypeVar

import msgspec

from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.masking import MaskFailed, Masking
from lowkiq_lambda.dashboard.payload_json import payload_json
from lowkiq_lambda.job import Failure, JobView, MorgueJob, ScoredPayload, shard_for
from lowkiq_lambda.worker import Worker

LARGEST_PAYLOAD: Final = 1024 * 1024
"""Bytes of JSON; the response leaves larger payloads out."""
LARGEST_PAGE: Final = 2 * 1024 * 1024
"""Bytes of JSON. API Gateway's limit is 6 MB, and each quotation mark counts twice."""


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


class JobResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A job. `more_payloads`: the number of payloads that the response leaves out."""

    id: str
    shard: int
    payloads: list[Payload]
    more_payloads: int
    error: str | None


class WaitingJob(JobResponse, frozen=True, kw_only=True):
    """A waiting job or one in flight. `perform_in`: Unix seconds. `retry_count`: -1 before the first failure."""

    perform_in: float
    retry_count: float


class BuriedJob(JobResponse, frozen=True, kw_only=True):
    """A job in the morgue. `updated_at`: the time of its last burial, in Unix seconds."""

    updated_at: float


Serialized = TypeVar("Serialized", bound=JobResponse)


class JobSerializer:
    """Serializes jobs of one queue, with masked payloads."""

    def __init__(self, context: RequestContext, worker: type[Worker]) -> None:
        self._worker = worker
        self._masking = Masking(context, worker.queue_name)

    def waiting(self, job: JobView) -> WaitingJob:
        """A waiting job or one in flight."""
        return WaitingJob(**self._common(job), perform_in=job.perform_in, retry_count=job.retry_count)

    def buried(self, job: MorgueJob) -> BuriedJob:
        """A job in the morgue."""
        return BuriedJob(**self._common(job), updated_at=job.updated_at)

    def failures(self, job: JobView | MorgueJob) -> list[Failure]:
        """The failures that Redis keeps of the job."""
        return [Failure(failure.at, failure.retry_count, _encodable(failure.error)) for failure in job.failures]

    def _common(self, job: JobView | MorgueJob) -> dict[str, Any]:
        return {
            "id": job.id,
            "shard": shard_for(job.id, self._worker.shards_count),
            "payloads": [self._payload(job.id, scored) for scored in job.payloads],
            "more_payloads": job.more_payloads,
            "error": job.error if job.error is None else _encodable(job.error),
        }

    def _payload(self, job_id: str, scored: ScoredPayload) -> Payload:
        score = scored.score
        try:
            payload = self._masking.of(job_id, scored.payload)
        except MaskFailed:
            return Payload(score=score, mask_failed=True)
        if isinstance(payload, bytes):
            if len(payload) > LARGEST_PAYLOAD:
                return Payload(score=score, left_out=len(payload))
            return Payload(score=score, unreadable=payload)
        encoded = payload_json(payload)
        if len(encoded) > LARGEST_PAYLOAD:
            return Payload(score=score, left_out=len(encoded))
        return Payload(score=score, payload=msgspec.Raw(encoded))


def fitting(jobs: Iterable[Serialized]) -> list[Serialized]:
    """The first jobs that fit into one response, at least one."""
    fit: list[Serialized] = []
    size = 0
    for job in jobs:
        size += len(msgspec.json.encode(job))
        if size > LARGEST_PAGE and fit:
            break
        fit.append(job)
    return fit


def _encodable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()

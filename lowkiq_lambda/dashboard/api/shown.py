"""Jobs as programs are shown them: whatever is in them, it becomes JSON of a bounded size."""

from collections.abc import Iterable
from typing import Any, Final, TypeVar

import msgspec

from lowkiq_lambda.dashboard.masking import MaskFailed, Masking
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.job import Failure, JobView, MorgueJob, ScoredPayload, shard_for
from lowkiq_lambda.worker import Worker

LARGEST_PAYLOAD: Final = 1024 * 1024
"""Bytes of JSON; a larger payload is left out."""
LARGEST_PAGE: Final = 2 * 1024 * 1024
"""Bytes of JSON; API Gateway takes 6 MB, with each quotation mark counted twice."""


class Payload(msgspec.Struct, frozen=True, kw_only=True):
    """A payload with its score, in one of four ways.

    `payload`: as JSON. `unreadable`: the bytes that lie in Redis, in base64, where the app's codec cannot read them.
    `left_out`: the size in bytes of one that is too large to be shown. `mask_failed`: true where the app's mask raised,
    so that nothing of it is shown.
    """

    score: float
    payload: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    unreadable: bytes | msgspec.UnsetType = msgspec.UNSET
    left_out: int | msgspec.UnsetType = msgspec.UNSET
    mask_failed: bool | msgspec.UnsetType = msgspec.UNSET


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A job. `more_payloads`: how many follow those that are shown."""

    id: str
    shard: int
    payloads: list[Payload]
    more_payloads: int
    error: str | None


class Waiting(Shown, frozen=True, kw_only=True):
    """A job that waits or is in flight. `perform_in`: Unix seconds; `retry_count` -1: it has not failed."""

    perform_in: float
    retry_count: float


class Buried(Shown, frozen=True, kw_only=True):
    """A job in the morgue, and since when, in Unix seconds."""

    updated_at: float


One = TypeVar("One", bound=Shown)


class Shower:
    """Shows jobs of one queue, through the mask that people's looks go through."""

    def __init__(self, visit: Visit, worker: type[Worker]) -> None:
        self._worker = worker
        self._masking = Masking(visit, worker.queue_name)

    def waiting(self, job: JobView) -> Waiting:
        """A job that waits or is in flight."""
        return Waiting(**self._common(job), perform_in=job.perform_in, retry_count=job.retry_count)

    def buried(self, job: MorgueJob) -> Buried:
        """A job in the morgue."""
        return Buried(**self._common(job), updated_at=job.updated_at)

    def failures(self, job: JobView | MorgueJob) -> list[Failure]:
        """How it has failed so far."""
        return [Failure(one.at, one.retry_count, _storable(one.error)) for one in job.failures]

    def _common(self, job: JobView | MorgueJob) -> dict[str, Any]:
        return {
            "id": job.id,
            "shard": shard_for(job.id, self._worker.shards_count),
            "payloads": [self._payload(job.id, one) for one in job.payloads],
            "more_payloads": job.more_payloads,
            "error": job.error if job.error is None else _storable(job.error),
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
        encoded = _encoded(payload)
        if len(encoded) > LARGEST_PAYLOAD:
            return Payload(score=score, left_out=len(encoded))
        return Payload(score=score, payload=msgspec.Raw(encoded))


def fitting(jobs: Iterable[One]) -> list[One]:
    """As many as one answer takes, from the first on: at least that."""
    fit: list[One] = []
    size = 0
    for job in jobs:
        size += len(msgspec.json.encode(job))
        if size > LARGEST_PAGE and fit:
            break
        fit.append(job)
    return fit


def _encoded(payload: object) -> bytes:
    try:
        return msgspec.json.encode(payload, enc_hook=repr)
    except Exception:  # noqa: BLE001 - an app's codec makes what it likes, also what refers to itself
        return msgspec.json.encode(_storable(repr(payload)))


def _storable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()

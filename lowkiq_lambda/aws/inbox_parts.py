"""How the jobs of a call are dealt to messages: those of one id together, in their order."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple
from uuid import uuid4

from lowkiq_lambda.aws.inbox_messages import MOST_JOBS, body_of, packed_job
from lowkiq_lambda.aws.sqs import BATCH_BYTES
from lowkiq_lambda.base.errors import JobError
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.jobs.job import id_text
from lowkiq_lambda.push.checking import KEY_TTL
from lowkiq_lambda.settings.config import Config

DEDUPLICATED_FOR: Final = 300.0
"""Seconds for which SQS remembers a deduplication id."""
AROUND: Final = 1_024
"""Bytes of a message that are not its jobs, at most: the attribute, and the body around them."""


class JobsOfId(NamedTuple):
    """Jobs of one id that travel in one message."""

    job_id: str
    queue_name: str
    positions: list[int]
    body: str
    keys: list[str] | None
    """Where each of the jobs has one that is remembered for as long as SQS would."""

    @property
    def group(self) -> str:
        """The same for all jobs of the id, and for no others."""
        return _digest(self.queue_name, self.job_id)

    @property
    def deduplication_id(self) -> str:
        """By which SQS tells that a message has come before."""
        return _digest(self.queue_name, self.job_id, *self.keys) if self.keys else uuid4().hex


def parts_of(worker: type[Worker[Any]], jobs: Sequence[Mapping[str, Any]], config: Config) -> list[list[JobsOfId]]:
    """The messages of each id, in order: one, where its jobs fit into one. JobError for one that fits into none."""
    by_id: dict[str, list[tuple[int, bytes]]] = {}
    for position, job in enumerate(jobs):
        packed = packed_job(job, config)
        if len(packed) > BATCH_BYTES - AROUND:
            too_long = f"takes {len(packed):,} bytes of a message, and SQS takes {BATCH_BYTES - AROUND:,}"
            raise JobError(too_long, position=position, field="payload")
        by_id.setdefault(id_text(job["id"]), []).append((position, packed))
    return [[_part(worker, job_id, chunk, jobs) for chunk in _cut(packed)] for job_id, packed in by_id.items()]


def _cut(packed: list[tuple[int, bytes]]) -> list[list[tuple[int, bytes]]]:
    chunks: list[list[tuple[int, bytes]]] = []
    size = BATCH_BYTES
    for one in packed:
        size += len(one[1]) + 1
        if size > BATCH_BYTES - AROUND or len(chunks[-1]) == MOST_JOBS:
            chunks.append([])
            size = len(one[1])
        chunks[-1].append(one)
    return chunks


def _part(
    worker: type[Worker[Any]], job_id: str, chunk: Sequence[tuple[int, bytes]], jobs: Sequence[Mapping[str, Any]]
) -> JobsOfId:
    positions = [position for position, _ in chunk]
    keys = [str(jobs[position]["key"]) for position in positions if _is_remembered(jobs[position])]
    whole = keys if len(keys) == len(positions) else None
    return JobsOfId(job_id, worker.queue_name, positions, body_of(worker, [packed for _, packed in chunk]), whole)


def _is_remembered(job: Mapping[str, Any]) -> bool:
    """Whether a second push with the job's key may be swallowed for as long as SQS does."""
    ttl = job.get("key_ttl", KEY_TTL)
    seconds = ttl.total_seconds() if hasattr(ttl, "total_seconds") else ttl
    return "key" in job and seconds >= DEDUPLICATED_FOR


def waves(parts: Sequence[Sequence[JobsOfId]]) -> list[list[JobsOfId]]:
    """Never two messages of one id in one wave: of a batch SQS may refuse the first and take the second."""
    longest = max((len(of_id) for of_id in parts), default=0)
    return [[of_id[number] for of_id in parts if number < len(of_id)] for number in range(longest)]


def _digest(*texts: str) -> str:
    return sha256("".join(f"{len(text)}:{text}" for text in texts).encode()).hexdigest()

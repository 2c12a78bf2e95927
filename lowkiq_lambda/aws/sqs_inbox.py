"""An inbox: jobs go to a queue of SQS, and the ingest function pushes them from there.

For a process that cannot reach Redis, or may not wait for it. In a FIFO queue the jobs of one id keep their order.
"""

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Unpack
from uuid import uuid4

from msgspec import UNSET

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.aws.inbox_messages import ATTRIBUTE, MOST_JOBS, VERSION, body_of, packed_job
from lowkiq_lambda.aws.sqs import BATCH_BYTES, InboxRefused, Sqs, SqsMessage
from lowkiq_lambda.base.clock import Clock, SystemClock
from lowkiq_lambda.base.errors import ConfigError, DeclarationError, JobError, PushInterrupted
from lowkiq_lambda.declare.options import JobOptions
from lowkiq_lambda.declare.pushable import AnyWorker, one_job
from lowkiq_lambda.declare.worker import HOME, LATEST, Worker, count_of, shard_index, worker_of
from lowkiq_lambda.jobs.job import Pushed, id_text
from lowkiq_lambda.push.checking import KEY_TTL, Checker
from lowkiq_lambda.push.conflicts import refuse_functions
from lowkiq_lambda.push.pushes import push_through
from lowkiq_lambda.settings.config import Config
from lowkiq_lambda.settings.protocols import Jobs

if TYPE_CHECKING:
    from lowkiq_lambda.declare.options import Id

_URL: Final = re.compile(r"https?://[^/]+/.+")
_REGION: Final = re.compile(r"https://sqs\.([a-z]{2}[a-z0-9-]+)\.")

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


class SqsInbox:
    """The inbox behind the URL of a queue; for `push`, and for `Config(when_unavailable=SqsInbox(url))`.

    Safe to use from several threads. Raises ConfigError for a text that is not the URL of a queue.
    """

    def __init__(self, url: str, *, clock: Clock | None = None) -> None:
        if not _URL.fullmatch(url):
            raise ConfigError(f"An inbox takes the URL of a queue, as https://sqs.REGION.amazonaws.com/…, not {url!r}.")
        self.url = url
        region = _REGION.match(url)
        self._sqs = Sqs(url, region[1] if region else None)
        self._clock = clock or SystemClock()

    def __repr__(self) -> str:
        return f"SqsInbox({self.url!r})"

    @property
    def is_fifo(self) -> bool:
        """Whether the queue keeps the order of each id."""
        return self.url.endswith(".fifo")

    def push_many(self, worker: AnyWorker, jobs: Jobs) -> list[Pushed]:
        """What `push_many` of the worker does, by way of the queue: checks, client middlewares, and no Redis.

        Raises JobError and DeclarationError; InboxRefused where SQS took no job; PushInterrupted where it took a part.
        """
        worker = worker_of(worker)
        return push_through(_app_of(worker).client_middlewares, self._push, worker, jobs)

    def push(self, worker: AnyWorker, id: "Id", payload: object = UNSET, **options: Unpack[JobOptions]) -> Pushed:
        """Queue one job by way of the queue, as `push_many` does with several."""
        return self.push_many(worker, [one_job(id, payload, options)])[0]

    def take(self, worker: type[Worker[Any]], jobs: Sequence[Mapping[str, Any]]) -> list[Pushed]:
        """Send checked jobs that went through the client middlewares; their outcomes. Errors as of `push_many`."""
        try:
            return self._send(worker, jobs)
        except JobError as error:
            raise InboxRefused(f"SQS cannot take the jobs: {error}") from error

    def _push(self, worker: type[Worker[Any]], jobs: Jobs) -> list[Pushed]:
        jobs, config = [*jobs], _app_of(worker).config
        checker = Checker(
            count_of(worker),
            config.dump_payload,
            config.max_payload_bytes,
            now=self._clock.time,
            by_tenant=worker.tenants == HOME,
            needs_score=worker.merge == LATEST,
            expires_in=worker.expires_in,
            unique=worker.unique,
        )
        checker.check_all(jobs)
        return self._send(worker, jobs)

    def _send(self, worker: type[Worker[Any]], jobs: Sequence[Mapping[str, Any]]) -> list[Pushed]:
        refuse_functions(jobs)
        taken, unknown = set[int](), list[int]()
        parts = parts_of(worker, jobs, _app_of(worker).config)
        error: Exception | None = None
        failed_ids = set[str]()
        for wave in waves(parts):
            left = [part for part in wave if part.job_id not in failed_ids]
            answer = self._sqs.send([self._message(place, part) for place, part in enumerate(left)])
            written = {*answer.taken}
            failed_ids |= {part.job_id for place, part in enumerate(left) if place not in written}
            taken.update(position for place in answer.taken for position in left[place].positions)
            unknown += [position for place in answer.unknown for position in left[place].positions]
            error = error or answer.error
        if error:
            raise _broken_off(error, len(jobs), sorted(taken), sorted(unknown))
        now = self._clock.time()
        return [_pushed(worker, job, now) for job in jobs]

    def _message(self, place: int, part: JobsOfId) -> SqsMessage:
        fields: dict[str, Any] = {
            "MessageBody": part.body,
            "MessageAttributes": {ATTRIBUTE: {"DataType": "String", "StringValue": VERSION}},
        }
        if self.is_fifo:
            fields["MessageGroupId"] = part.group
            fields["MessageDeduplicationId"] = part.deduplication_id
        return SqsMessage(place, fields, len(part.body.encode()) + AROUND)


def _broken_off(error: Exception, count: int, written: list[int], unknown: list[int]) -> Exception:
    if not written and not unknown:
        return _refused(error)
    not_written = sorted({*range(count)} - {*written} - {*unknown})
    broken = PushInterrupted(
        f"SQS took {len(written)} of {count} jobs ({error}); of {len(unknown)} it is unknown.",
        written=written,
        not_written=not_written,
        unknown=unknown,
    )
    broken.__cause__ = error
    return broken


def _refused(error: Exception) -> InboxRefused:
    if isinstance(error, InboxRefused):
        return error
    refused = InboxRefused(f"SQS did not take the jobs: {error}")
    refused.__cause__ = error
    return refused


def _pushed(worker: type[Worker[Any]], job: Mapping[str, Any], now: float) -> Pushed:
    job_id = id_text(job["id"])
    return Pushed(id=job_id, shard=shard_index(worker, job_id), merged=False, due_at=_due_at(job, now), buffered=True)


def _due_at(job: Mapping[str, Any], now: float) -> float:
    at, delay = job.get("due_at"), job.get("delay", 0.0)
    if at is not None:
        return float(at.timestamp() if hasattr(at, "timestamp") else at)
    return now + float(delay.total_seconds() if hasattr(delay, "total_seconds") else delay)


def _app_of(worker: type[Worker[Any]]) -> Lowkiq:
    if not isinstance(worker.app, Lowkiq):
        raise DeclarationError(f"{worker.__name__} is not bound to an app: decorate it with @app.worker.")
    return worker.app


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

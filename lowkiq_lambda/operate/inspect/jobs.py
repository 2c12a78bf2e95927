"""Jobs for people: read in bounded calls, and decoded so that no payload or error can break a page."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias, TypeVar

from lowkiq_lambda.jobs.job import (
    NEVER_FAILED,
    PLACE,
    Failure,
    JobView,
    MorgueJob,
    ScoredPayload,
    id_text,
    score_of,
)
from lowkiq_lambda.operate.inspect.id_ranges import at_once
from lowkiq_lambda.operate.inspect.payload_query import PayloadQuery
from lowkiq_lambda.operate.inspect.progress import progress_view
from lowkiq_lambda.operate.inspect.stored_errors import StoredErrors
from lowkiq_lambda.operate.inspect.stored_payloads import StoredPayloads
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.layout import QueueShards
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Reply, ReplyShape

PAYLOADS_SHOWN: Final = 1_000
"""Of one job."""
BYTES_SHOWN: Final = 256 * 1024
"""Of one job's payloads; the first is shown at any size."""
UNLIMITED: Final = 2**53
GLIMPSE: Final = (1, 4 * 1024, 4 * 1024)
"""For a job in a list: its payloads, their bytes, and the bytes of the largest."""
PAYLOADS_AT_ONCE: Final = 10_000
"""In one round trip, over all shards."""
BYTES_AT_ONCE: Final = 16 * 1024 * 1024

View = TypeVar("View", bound=JobView | MorgueJob)
JobList: TypeAlias = Literal["waiting", "flight", "morgue"]


class FailureReply(ReplyShape, frozen=True):
    """One failure of a job, as read_jobs.lua returns it. Times and counts are texts."""

    at: bytes
    retry_count: bytes
    error: bytes
    rule: bytes = b""


class JobReply(ReplyShape, frozen=True):
    """A job, as read_jobs.lua returns it. Times and counts are texts."""

    id: bytes
    at: bytes
    """due_at; in the morgue, updated_at."""
    retry_count: bytes | None
    error: bytes | None
    payloads: int
    """Their number."""
    entries: list[bytes]
    """The first payloads, as they are stored."""
    progress: bytes | None
    """Of a started job."""
    failures: tuple[FailureReply, ...] = ()


class JobsReply(ReplyShape, frozen=True):
    """The reply of read_jobs.lua: how many of the ids it has looked up, and the jobs that were there."""

    scripts = ("read_jobs",)
    ids_read: int
    jobs: list[JobReply]


def id_texts(ids: Iterable[object]) -> list[str]:
    """The ids as they are stored, each once. Raises JobError for an invalid id, TypeError for a lone one."""
    value: object = ids
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError(f"ids are given as a list, not as one {type(ids).__name__}")
    return list(dict.fromkeys(map(id_text, ids)))


def by_shard(ids: Iterable[str], shards: QueueShards) -> dict[ShardRef, Sequence[str]]:
    """The ids by the shard that has them."""
    return _grouped(ids, shards.home_of)


def _grouped(ids: Iterable[str], home_of: Callable[[str], ShardRef]) -> dict[ShardRef, Sequence[str]]:
    ids_of: defaultdict[ShardRef, list[str]] = defaultdict(list)
    for job_id in ids:
        ids_of[home_of(job_id)].append(job_id)
    return {**ids_of}


def _decoder(view: Callable[[JobReply], View]) -> Callable[[ShardRef, Reply], tuple[ShardRef, int, list[View]]]:
    def decode(shard: ShardRef, reply: Reply) -> tuple[ShardRef, int, list[View]]:
        decoded = JobsReply.of(reply)
        return shard, decoded.ids_read, [view(job) for job in decoded.jobs]

    return decode


class JobReader:
    """Reads jobs. Raises BackendError while Redis cannot serve."""

    def __init__(
        self,
        reader: ShardReader,
        payloads: StoredPayloads,
        errors: StoredErrors,
        *,
        glimpse: bool = False,
        literal: bytes = b"",
    ) -> None:
        self.reader = reader
        self.payloads = payloads
        self.errors = errors
        self._glimpse = glimpse
        self._literal = literal

    def glimpse(self) -> "JobReader":
        """A reader for lists: a job has its first payload only, and none if that is large."""
        return JobReader(self.reader, self.payloads, self.errors, glimpse=True)

    def look_up(
        self, where: JobList, ids: Iterable[str], view: Callable[[JobReply], View], *, failures: bool = False
    ) -> dict[str, View]:
        """The jobs that are there now, by id; with `failures`, each with its last ones."""
        texts = [*ids]
        views = self._look_up(by_shard(texts, self.reader.shards), where, view, failures=failures)
        missing = [job_id for job_id in texts if job_id not in views] if self.reader.shards.layout.is_moving else ()
        if missing:
            # They may be on their way, or have arrived since the layout was read.
            elsewhere = _grouped(missing, self.reader.shards.other_home_of)
            views |= self._look_up(elsewhere, where, view, failures=failures)
        return views

    def holding(self, where: JobList, ids: Iterable[str], query: PayloadQuery) -> list[str]:
        """Those of the ids that are there and have a payload that meets the query, among the first of each."""
        texts = [*ids]
        whole = JobReader(self.reader, self.payloads, self.errors, literal=self.payloads.literal(query))
        jobs: Mapping[str, JobView | MorgueJob] = (
            whole.look_up("morgue", texts, self.morgue_job)
            if where == "morgue"
            else whole.look_up(where, texts, self.job)
        )
        meets = self.payloads.meets
        return [one for one in texts if one in jobs and any(meets(one, each[0], query) for each in jobs[one].payloads)]

    def _look_up(
        self,
        left: dict[ShardRef, Sequence[str]],
        where: JobList,
        view: Callable[[JobReply], View],
        *,
        failures: bool,
    ) -> dict[str, View]:
        views: dict[str, View] = {}
        while left:
            payloads, size = max(1, PAYLOADS_AT_ONCE // len(left)), max(1, BYTES_AT_ONCE // len(left))
            limits = GLIMPSE if self._glimpse else (PAYLOADS_SHOWN, BYTES_SHOWN, UNLIMITED)
            common = [where, *limits, payloads, size, "1" if failures else "", self._literal]
            args = {shard: [*common, *at_once(ids)] for shard, ids in left.items()}
            for shard, ids_read, jobs in self.reader.read("read_jobs", args, _decoder(view)):
                views |= {job.id: job for job in jobs}
                left[shard] = left[shard][ids_read:]
            left = {shard: of_shard for shard, of_shard in left.items() if of_shard}
        return views

    def entries(self, where: JobList, job_id: str) -> list[bytes]:
        """The places and payloads of an id as they are stored, as many as are shown. Raises BackendError."""
        entries: list[bytes] = []

        def view(reply: JobReply) -> JobView:
            entries[:] = reply.entries
            return self.job(reply)

        self.look_up(where, [job_id], view)
        return entries

    def job(self, reply: JobReply) -> JobView:
        """A job that waits or is in flight."""
        return JobView(
            reply.id.decode(),
            self._payloads(reply.entries),
            float(reply.at),
            NEVER_FAILED if reply.retry_count is None else float(reply.retry_count),
            self._error(reply.error),
            reply.payloads - len(reply.entries),
            self._failures(reply.failures),
            progress_view(reply.progress),
        )

    def morgue_job(self, reply: JobReply) -> MorgueJob:
        """A job in the morgue."""
        return MorgueJob(
            reply.id.decode(),
            self._payloads(reply.entries),
            float(reply.at),
            self._error(reply.error),
            reply.payloads - len(reply.entries),
            self._failures(reply.failures),
            progress_view(reply.progress),
        )

    def _payloads(self, entries: Sequence[bytes]) -> list[ScoredPayload]:
        return [ScoredPayload(self.payloads.decoded(entry[PLACE:]), score_of(entry)) for entry in entries]

    def _failures(self, failures: Sequence[FailureReply]) -> tuple[Failure, ...]:
        text = self.errors.text
        return tuple(
            Failure(float(each.at), float(each.retry_count), text(each.error), each.rule.decode(errors="replace"))
            for each in failures
        )

    def _error(self, stored: bytes | None) -> str | None:
        return None if stored is None else self.errors.text(stored)

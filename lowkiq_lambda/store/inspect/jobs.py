"""Jobs as people look at them: looked up in bounded calls, decoded so that nothing in them can break a page."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, TypeAlias, TypeVar

from lowkiq_lambda.job import (
    NEVER_FAILED,
    PLACE,
    Failure,
    JobView,
    MorgueJob,
    ScoredPayload,
    id_text,
    score_of,
    shard_for,
)
from lowkiq_lambda.store.inspect.id_ranges import at_once
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Reply, ReplyShape

PAYLOADS_SHOWN: Final = 1_000
"""Of one job."""
BYTES_SHOWN: Final = 256 * 1024
"""Of one job's payloads; the first is shown whatever its size."""
UNLIMITED: Final = 2**53
GLIMPSE: Final = (1, 4 * 1024, 4 * 1024)
"""Payloads of one job, their bytes, and bytes of the largest, where a job is one of many in a list."""
PAYLOADS_AT_ONCE: Final = 10_000
"""In one round trip, over all shards."""
BYTES_AT_ONCE: Final = 16 * 1024 * 1024

View = TypeVar("View", bound=JobView | MorgueJob)
Where: TypeAlias = Literal["waiting", "flight", "morgue"]


class FailureReply(ReplyShape, frozen=True):
    """One failure of a job, as read_jobs.lua tells it. Times and counts are texts."""

    at: bytes
    retry_count: bytes
    error: bytes


class JobReply(ReplyShape, frozen=True):
    """A job, as read_jobs.lua and in_flight_jobs.lua tell it. Times and counts are texts."""

    id: bytes
    at: bytes
    """perform_in; of what lies in the morgue, updated_at."""
    retry_count: bytes | None
    error: bytes | None
    payloads: int
    """How many there are."""
    entries: list[bytes]
    """Of the first of them."""
    failures: tuple[FailureReply, ...] = ()


def id_texts(ids: Iterable[object]) -> list[str]:
    """The ids as they are stored, each once. Raises JobError for what can be no id, TypeError for a lone one."""
    if isinstance(ids, str | bytes):
        raise TypeError(f"ids are given as a list, not as one {type(ids).__name__}")
    return list(dict.fromkeys(map(id_text, ids)))


def by_shard(ids: Iterable[str], shards: Sequence[ShardRef]) -> dict[ShardRef, Sequence[str]]:
    """The ids by the shard that has them."""
    found: defaultdict[ShardRef, list[str]] = defaultdict(list)
    for job_id in ids:
        found[shards[shard_for(job_id, len(shards))]].append(job_id)
    return {**found}


def _shower(view: Callable[[JobReply], View]) -> Callable[[ShardRef, Reply], tuple[ShardRef, int, list[View]]]:
    def show(shard: ShardRef, reply: Reply) -> tuple[ShardRef, int, list[View]]:
        looked_up, *jobs = reply
        return shard, looked_up, [view(JobReply.of(found)) for found in jobs]

    return show


class JobReader:
    """Looks jobs up. Raises BackendError where Redis cannot serve."""

    def __init__(
        self,
        reader: ShardReader,
        load_payload: Callable[[bytes], object],
        load_error: Callable[[bytes], str],
        *,
        glimpse: bool = False,
    ) -> None:
        self.reader = reader
        self._load_payload = load_payload
        self._load_error = load_error
        self._glimpse = glimpse

    def glimpse(self) -> "JobReader":
        """One who shows of each job only the first payload, and that only where it is small."""
        return JobReader(self.reader, self._load_payload, self._load_error, glimpse=True)

    def look_up(
        self, where: Where, ids: Iterable[str], view: Callable[[JobReply], View], *, failures: bool = False
    ) -> dict[str, View]:
        """What is there now, by id; with `failures` each tells the last ones."""
        left = by_shard(ids, self.reader.shards)
        views: dict[str, View] = {}
        while left:
            payloads, size = max(1, PAYLOADS_AT_ONCE // len(left)), max(1, BYTES_AT_ONCE // len(left))
            of_one = GLIMPSE if self._glimpse else (PAYLOADS_SHOWN, BYTES_SHOWN, UNLIMITED)
            told = [where, *of_one, payloads, size, "1" if failures else ""]
            asked = {shard: [*told, *at_once(ids)] for shard, ids in left.items()}
            for shard, looked_up, jobs in self.reader.read("read_jobs", asked, _shower(view)):
                views |= {one.id: one for one in jobs}
                left[shard] = left[shard][looked_up:]
            left = {shard: of_shard for shard, of_shard in left.items() if of_shard}
        return views

    def in_flight(self) -> list[JobView]:
        """What is in flight, in no order."""
        asked = dict.fromkeys(self.reader.shards, ())
        replies = self.reader.read(
            "in_flight_jobs", asked, lambda _shard, reply: [self.job(JobReply.of(found)) for found in reply]
        )
        return [job for jobs in replies for job in jobs]

    def job(self, found: JobReply) -> JobView:
        """A job that waits or is in flight."""
        return JobView(
            found.id.decode(),
            self._payloads(found.entries),
            float(found.at),
            NEVER_FAILED if found.retry_count is None else float(found.retry_count),
            self._error(found.error),
            found.payloads - len(found.entries),
            self._failures(found.failures),
        )

    def morgue_job(self, found: JobReply) -> MorgueJob:
        """A job in the morgue."""
        return MorgueJob(
            found.id.decode(),
            self._payloads(found.entries),
            float(found.at),
            self._error(found.error),
            found.payloads - len(found.entries),
            self._failures(found.failures),
        )

    def _payloads(self, entries: Sequence[bytes]) -> list[ScoredPayload]:
        return [ScoredPayload(self._payload(entry[PLACE:]), score_of(entry)) for entry in entries]

    def _payload(self, dumped: bytes) -> object:
        try:
            return self._load_payload(dumped)
        except Exception:  # noqa: BLE001 - whatever a codec raises, the rest of the page can be shown
            return dumped

    def _failures(self, noted: Sequence[FailureReply]) -> tuple[Failure, ...]:
        return tuple(Failure(float(each.at), float(each.retry_count), self._text(each.error)) for each in noted)

    def _error(self, stored: bytes | None) -> str | None:
        return None if stored is None else self._text(stored)

    def _text(self, stored: bytes) -> str:
        try:
            return str(self._load_error(stored))
        except Exception:  # noqa: BLE001 - as for a payload
            return stored.decode(errors="replace")

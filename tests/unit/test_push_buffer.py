"""The buffer of pushes, while some jobs of it are on their way: what comes, goes and is given up meanwhile."""

from collections.abc import Iterable
from itertools import count

import pytest

from lowkiq_lambda.base.errors import BackendUnavailable, LowkiqError
from lowkiq_lambda.push.buffer import BufferedJobs, JobBuffer, Kept
from lowkiq_lambda.store.shard.chunks import NewJob
from lowkiq_lambda.store.shard.keys import ShardRef

SHARD = ShardRef("orders", 1, 0)
WAY = "a way to Redis"
_numbers = count()


def buffered_of(*ids: str, was_sent: bool = False) -> BufferedJobs:
    """Jobs of the shard; their ids are its token."""
    jobs = [Kept(NewJob(0, job_id, b"\0{}", None), {"id": job_id}, 0.0, next(_numbers)) for job_id in ids]
    return BufferedJobs(SHARD, ",".join(ids).encode(), jobs, was_sent=was_sent)


def buffer_of(*buffered: BufferedJobs, max_jobs: int = 100, drops_oldest: bool = False) -> JobBuffer[str]:
    """They were kept in this order."""
    buffer = JobBuffer[str](max_jobs, drops_oldest=drops_oldest)
    for buffered_jobs in buffered:
        buffer.add(WAY, [buffered_jobs])
    return buffer


def waiting(buffer: JobBuffer[str]) -> list[list[str]]:
    """The ids that wait, by the call that sends them."""
    line = buffer.line_of(SHARD)
    return [ids_of(buffered_jobs.jobs) for buffered_jobs in line.buffered] if line else []


def ids_of(jobs: Iterable[Kept]) -> list[str]:
    """In their order."""
    return [job.new.id for job in jobs]


def test_jobs_that_were_never_sent_travel_together() -> None:
    """A later push joins the jobs that wait."""
    assert [["a", "b"]] == waiting(buffer_of(buffered_of("a"), buffered_of("b")))


def test_no_job_joins_jobs_that_may_have_been_written() -> None:
    """The server answers a token that it knows with what it wrote then: a job that had joined would be lost."""
    buffer = buffer_of(buffered_of("a", was_sent=True), buffered_of("b"))

    assert [["a"], ["b"]] == waiting(buffer)


def test_jobs_that_may_have_been_written_join_no_others() -> None:
    """Under another token it would be written twice."""
    buffer = buffer_of(buffered_of("a"), buffered_of("b", was_sent=True))

    assert [["a"], ["b"]] == waiting(buffer)


@pytest.mark.parametrize("comes", ["on the way", "behind a failure"])
def test_a_push_behind_an_attempt_joins_nothing_of_it(comes: str) -> None:
    """From their first attempt on jobs may have been written, whatever became of that."""
    buffer = buffer_of(buffered_of("a"))
    (sent,) = buffer.start([SHARD])
    if comes == "behind a failure":
        buffer.end(sent, BackendUnavailable())
    buffer.add(WAY, [buffered_of("b")])

    assert [["a"], ["b"]] == waiting(buffer)


@pytest.mark.parametrize("error", [None, BackendUnavailable()])
def test_jobs_that_were_given_up_on_their_way_end_alone(error: LowkiqError | None) -> None:
    """Whatever became of it: nothing waits, and nothing is counted."""
    buffer = buffer_of(buffered_of("a"))
    (sent,) = buffer.start([SHARD])
    buffer.give_up()
    buffer.end(sent, error)

    assert ([], 0) == (waiting(buffer), buffer.jobs)


@pytest.mark.parametrize("error", [None, BackendUnavailable()])
def test_what_was_pushed_after_jobs_that_were_given_up_waits_on(error: LowkiqError | None) -> None:
    """The end of the older one takes none of it away, and says nothing about it."""
    buffer = buffer_of(buffered_of("a"))
    (sent,) = buffer.start([SHARD])
    buffer.give_up()
    buffer.add(WAY, [buffered_of("b")])
    buffer.end(sent, error)

    line = buffer.line_of(SHARD)
    assert line is not None
    assert ([["b"]], 1, None) == (waiting(buffer), buffer.jobs, line.error)


def test_what_is_on_its_way_gives_no_way_to_newer_jobs() -> None:
    """It is soon written, and must not be told to be lost: the oldest of those that rest are."""
    buffer = buffer_of(buffered_of("a"), max_jobs=2, drops_oldest=True)
    buffer.start([SHARD])
    lost = [gone for job_id in ("b", "c", "d") for gone in buffer.add(WAY, [buffered_of(job_id)])]

    assert ["b", "c"] == ids_of(one.job for one in lost)
    assert [["a"], ["d"]] == waiting(buffer)

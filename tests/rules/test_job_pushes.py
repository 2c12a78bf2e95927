"""Large pushes, pushes that break off, and producers side by side (E-70, E-71)."""

import threading
from collections import Counter
from random import Random

import pytest

from lowkiq_lambda import BackendFull, Config, JobError, Lowkiq, PushInterrupted
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Notes
from tests.kit.workers import declare, jobs_of
from tests.kit.looks import left_behind
from tests.kit.servers import MakeServer


def test_e70_a_hundred_thousand_jobs_in_one_call(app: Lowkiq, queue_name: str) -> None:
    """E-70, LB-28: a push is cut into calls that Redis takes easily, and loses nothing."""
    worker = declare(app, queue_name, Notes(), shards_count=5, batch_size=1_000)

    pushed = worker.perform_async([{"id": n} for n in range(100_000)])

    assert 100_000 == len({one.id for one in pushed})
    assert {"jobs": 100_000, "due": 100_000} == left_behind(app, worker)
    assert {"done": 100_000} == app.drain()
    assert {} == left_behind(app, worker)


def test_e70_a_bad_job_at_the_end_writes_nothing(app: Lowkiq, queue_name: str) -> None:
    """E-70: all jobs are checked before any is written, however many there are."""
    worker = declare(app, queue_name, Notes(), shards_count=2)

    with pytest.raises(JobError, match="job 20000: score") as caught:
        worker.perform_async([*({"id": n} for n in range(20_000)), {"id": "bad", "score": "high"}])

    assert (20_000, {}) == (caught.value.position, left_behind(app, worker))


def test_e70_a_push_that_breaks_off_tells_what_was_written(
    make_server: MakeServer, clock: ManualClock, queue_name: str
) -> None:
    """E-70, E-41: each position is in exactly one of written, not_written and unknown, and the lists are true."""
    server = make_server(maxmemory="12mb")
    app = Lowkiq(Config(redis_url=server.url), clock=clock)
    notes = Notes()
    worker = declare(app, queue_name, notes, shards_count=3, batch_size=100)

    with pytest.raises(PushInterrupted, match=r"The push broke off .*: \d+ jobs are written") as caught:
        worker.perform_async([{"id": n, "payload": "x" * 1_000} for n in range(20_000)])
    with pytest.raises(BackendFull, match="maxmemory"):
        worker.perform_async([{"id": "one more", "payload": "x" * 1_000_000}])
    app.drain()

    broken = caught.value
    positions = Counter([*broken.written, *broken.not_written, *broken.unknown])
    assert dict.fromkeys(range(20_000), 1) == positions
    assert isinstance(broken.__cause__, BackendFull)
    assert sorted(map(str, broken.written)) == sorted(job_id for batch in notes.ids for job_id in batch)
    assert broken.not_written


def test_e71_producers_side_by_side_lose_nothing(app: Lowkiq, queue_name: str) -> None:
    """E-71: several threads push to the same ids; each payload is there once, in order of score."""
    notes = Notes()
    worker = declare(app, queue_name, notes, batch_size=10)
    versions = list(range(400))
    Random(71).shuffle(versions)

    def push(part: list[int]) -> None:
        for version in part:
            worker.perform_async([{"id": version % 3, "payload": version, "score": version}])

    threads = [threading.Thread(target=push, args=[versions[n::4]]) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    app.drain()

    assert {str(n): list(range(n, 400, 3)) for n in range(3)} == notes.batches[0]


def test_lb30_pushed_tells_what_was_merged_in_chunks_too(app: Lowkiq, queue_name: str) -> None:
    """LB-30: over many calls to the server the answers stand by the jobs' positions."""
    worker = declare(app, queue_name, Notes(), shards_count=2)
    worker.perform_async(jobs_of([str(n) for n in range(0, 6_000, 2)]))

    pushed = worker.perform_async(jobs_of([str(n) for n in range(6_000)]))

    assert [(str(n), n % 2 == 0) for n in range(6_000)] == [(one.id, one.merged) for one in pushed]

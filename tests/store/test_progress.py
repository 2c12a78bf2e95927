"""How far started jobs have come, as people are told."""

import math
from typing import Any

import msgspec
import pytest

from lowkiq_lambda import JobView, MorgueJob, ProgressView
from lowkiq_lambda.jobs.progress import JobProgress
from lowkiq_lambda.store.shard.codec import dump_json
from tests.kit.desk import Desk
from tests.kit.started import Starter, put_off

CURSOR = ["eu", 61_204]
COUNTED: dict[str, Any] = {
    "items": 61_204,
    "failures": 1,
    "interruptions": 3,
    "seconds": 212.5,
    "started_at": 1_700_000_000.0,
    "total": 100_000,
    "reason": "out of time",
}
HALFWAY = JobProgress(cursor=dump_json(CURSOR), **COUNTED)
SHOWN = ProgressView(cursor=CURSOR, **COUNTED, fraction=COUNTED["items"] / COUNTED["total"])


def test_a_started_job_shows_its_progress_in_each_list(desk: Desk) -> None:
    """A job that waits to go on has its progress wherever it is read; its neighbours have none."""
    desk.push([{"id": "7"}])
    put_off(desk.app, desk.worker, "7", HALFWAY)
    desk.push([{"id": "8"}])

    for jobs in (
        desk.queue.waiting.fetch(["7", "8"]),
        desk.queue.waiting.list("id"),
        desk.queue.waiting.list(),
        desk.queue.waiting.list("retry_count"),
        desk.queue.glimpse().waiting.list(),
        desk.queue.waiting.search(prefix="7") + desk.queue.waiting.search(prefix="8"),
    ):
        assert {"7": SHOWN, "8": None} == {job.id: job.progress for job in jobs}
    assert SHOWN == desk.queue.explain("7").progress
    assert desk.queue.explain("8").progress is None


def test_a_started_job_in_flight_shows_what_it_saved_last(desk: Desk) -> None:
    """While it runs its progress is that of its last save."""
    desk.push([{"id": "7"}])
    Starter(desk.app, desk.worker, "7", HALFWAY)

    for jobs in (
        desk.queue.in_flight.list(),
        desk.queue.in_flight.list(),
        desk.queue.in_flight.fetch(["7"]),
    ):
        assert [SHOWN] == [job.progress for job in jobs]
    assert SHOWN == desk.queue.explain("7").progress
    assert 0 == desk.queue.shards()[0].started


def test_a_job_in_the_morgue_keeps_its_progress(desk: Desk) -> None:
    """What died shows how far it had come, and no other job does."""
    desk.kill([{"id": "dead"}])
    desk.push([{"id": "7"}])
    Starter(desk.app, desk.worker, "7", HALFWAY).settle(("7", "dead", b"no", "s", b"no"))

    for jobs in (desk.queue.morgue.fetch(["7", "dead"]), desk.queue.morgue.list("id")):
        assert {"7": SHOWN, "dead": None} == {job.id: job.progress for job in jobs}


def test_started_jobs_that_wait_are_counted(desk: Desk) -> None:
    """They are counted by queue and by shard, with how often one came further; in flight they are not counted."""
    desk.push([{"id": "7"}, {"id": "8"}])
    holder = Starter(desk.app, desk.worker, "7", HALFWAY)
    holder.settle(("8", "saved", HALFWAY.dump()), ("8", "later", "", 0), ("7", "later", "", 1))
    metrics = desk.app.operate.metrics()[desk.worker.queue_name]

    assert (2, 2, 1, 0) == (metrics.length, metrics.started, metrics.checkpointed, metrics.failed)
    assert [2] == [shard.started for shard in desk.queue.shards()]
    Starter(desk.app, desk.worker, "7", HALFWAY).settle()
    assert 0 == desk.app.operate.metrics()[desk.worker.queue_name].started
    assert [0] == [shard.started for shard in desk.queue.shards()]


def test_started_jobs_are_counted_only_where_there_were_some(desk: Desk) -> None:
    """Numbers of a shard that never had one cost no command for them."""

    def counts() -> int:
        before = _calls(desk, "zlexcount")
        desk.app.operate.metrics()
        desk.queue.shards()
        desk.queue.explain("7")
        return _calls(desk, "zlexcount") - before

    desk.push([{"id": "7", "payload": payload} for payload in "ab"])
    desk.push([{"id": "7", "payload": "c"}])
    assert 0 == counts()
    put_off(desk.app, desk.worker, "7", HALFWAY)
    assert 3 == counts()


@pytest.mark.parametrize(
    "kept",
    [
        b"\xc1",
        b"\xff" * 70_000,
        b"\x91" * 5_000,
        msgspec.msgpack.encode([b"1", 1, "many"]),
        msgspec.msgpack.encode([b"1", 1, 1, 0, 0, 0, math.nan]),
        msgspec.msgpack.encode([b"1", 1, 1, 0, 0, 0, 1.0, math.inf]),
        msgspec.msgpack.encode([b"{", 1, 1]),
        msgspec.msgpack.encode([b"[" * 60_000, 1, 1]),
        msgspec.msgpack.encode([rb'"\ud800"', 1, 1]),
    ],
    ids=["no msgpack", "64 KiB", "nested", "no number", "nan", "inf", "no JSON", "a deep cursor", "a surrogate"],
)
def test_a_progress_that_cannot_be_read_is_shown_as_its_bytes(desk: Desk, kept: bytes) -> None:
    """It breaks no list, and says so."""
    desk.push([{"id": "7"}])
    put_off(desk.app, desk.worker, "7", kept)
    [job] = desk.queue.waiting.list()

    assert ProgressView(cursor=kept) == job.progress
    assert job.progress.is_unreadable
    assert job.progress == desk.queue.explain("7").progress


@pytest.mark.parametrize("cursor", [None, 0, "<b>", {"a": [1, None]}, "x" * 60_000])
def test_a_cursor_is_shown_as_it_was_saved(desk: Desk, cursor: Any) -> None:
    """Any JSON is a cursor."""
    desk.push([{"id": "7"}])
    put_off(desk.app, desk.worker, "7", JobProgress(cursor=dump_json(cursor), items=1, reason="r" * 500))
    [job] = desk.queue.waiting.list()

    assert ProgressView(cursor=cursor, items=1, reason="r" * 200) == job.progress
    assert not job.progress.is_unreadable


def test_progress_forgets_how_often_its_payloads_have_failed(desk: Desk) -> None:
    """Of all that the job was handed, also of one that is not the oldest any more."""
    desk.fail([{"id": "7", "payload": 2, "score": 2.0}])
    desk.push([{"id": "7", "payload": 1, "score": 1.0}])
    desk.clock.advance(100.0)
    starter = Starter(desk.app, desk.worker, "7", HALFWAY)
    assert [0.0] == [*desk.state()["counts"].values()]

    starter.put_off(moved=True)

    assert {} == desk.state()["counts"]
    assert [-1.0] == [job.retry_count for job in desk.queue.waiting.fetch(["7"])]


def test_a_page_of_started_jobs_is_read_in_bounded_parts(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress counts among the bytes of a round trip, so a page of long cursors is several."""
    monkeypatch.setattr("lowkiq_lambda.operate.inspect.jobs.BYTES_AT_ONCE", 100_000)
    long = JobProgress(cursor=dump_json("x" * 60_000), items=1)
    desk.push([{"id": number} for number in range(5)])
    Starter(desk.app, desk.worker, "0", long).settle(
        *((str(number), "saved", long.dump()) for number in range(1, 5)),
        *((str(number), "later", "", 1) for number in range(5)),
    )
    desk.queue.waiting.fetch(["0"])
    before = _calls(desk, "evalsha")
    jobs = desk.queue.waiting.fetch(range(5))

    assert [60_000] * 5 == [len(str(job.progress and job.progress.cursor)) for job in jobs]
    assert 3 == _calls(desk, "evalsha") - before


def _calls(desk: Desk, command: str) -> int:
    return sum(stat["calls"] for name, stat in desk.admin.info("commandstats").items() if command in name)


def test_views_of_jobs_without_progress_are_made_as_before() -> None:
    """Progress is optional in both views."""
    assert JobView("7", [], 0.0, -1.0, None).progress is None
    assert MorgueJob("7", [], 0.0, None).progress is None

"""Numbers mean what they say."""

import subprocess
import sys
from collections.abc import Generator, Iterable
from typing import Any

import pytest
import redis

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.store.server.pipelines import Command, stream
from lowkiq_lambda.store.shard import reader
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.desk import Desk, MakeDesk
from tests.kit.handlers import LATER, FailingHandler
from tests.kit.servers import Cluster, Server
from tests.kit.workers import declare


def test_stats_are_zeros_where_there_is_no_worker() -> None:
    """LN-20: without workers all is 0, and nobody asks Redis."""
    app = Lowkiq(Config(redis_url="redis://127.0.0.1:1"))

    stats: object = app.operate.stats()

    assert {"total": {"length": 0, "morgue_length": 0, "lag": 0}, "by_worker": {}} == stats
    assert {} == app.operate.metrics()


def test_stats_tell_each_queue_and_the_total(desk: Desk) -> None:
    """L-46, LN-20, LN-12: lengths are summed up, the total lag is the largest."""
    other = declare(desk.app, f"{desk.worker.queue_name}-other", FailingHandler(), shards_count=3)
    desk.kill([{"id": "dead"}])
    other.push_many([{"id": job_id} for job_id in range(5)])
    desk.clock.advance(20)
    desk.push([{"id": job_id} for job_id in "ab"])
    desk.clock.advance(10)
    stats: object = desk.app.operate.stats()

    assert {
        "total": {"length": 7, "morgue_length": 1, "lag": 30.0},
        "by_worker": {
            desk.worker.queue_name: {"length": 2, "morgue_length": 1, "lag": 10.0},
            other.queue_name: {"length": 5, "morgue_length": 0, "lag": 30.0},
        },
    } == stats


def test_a_delayed_job_has_no_lag_until_it_is_due(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """LN-12, check 27: who waits for its time is not late."""
    worker = declare(app, queue_name, FailingHandler())
    worker.push_many([{"id": "later", "delay": 100}])

    lags = []
    for seconds in (0, 99, 1, 7):
        clock.advance(seconds)
        lags.append(app.operate.stats()["total"]["lag"])

    assert [0.0, 0.0, 0.0, 7.0] == lags


def test_lag_counts_what_is_in_flight(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A job that takes long is not done yet: the lag is its age too."""
    handler = FailingHandler()
    worker = declare(app, queue_name, handler)
    worker.push_many([{"id": "slow"}])
    clock.advance(30)
    seen = []
    handler.meanwhile = lambda: seen.append(app.operate.metrics()[queue_name])
    app.drain()

    assert [(30.0, 1, 0)] == [(one.lag, one.in_flight, one.length) for one in seen]
    assert 0.0 == app.operate.stats()["total"]["lag"]


def test_lag_counts_from_the_first_chunk_of_an_id(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """Between its chunks an id queues behind others, but it has waited since its own time."""
    app, handler = make_app(claim_payloads=2), FailingHandler()
    worker = declare(app, queue_name, handler)
    worker.push_many([{"id": "many", "payload": n, "score": n} for n in range(5)])
    clock.advance(50)
    lags: list[float] = []

    def look() -> None:
        lags.append(app.operate.stats()["total"]["lag"])
        handler.meanwhile = look

    handler.meanwhile = look
    app.drain()

    assert [50.0, 50.0, 50.0] == lags
    assert [0, 1, 2, 3, 4] == [payload for batch in handler.batches for payload in batch["many"]]


def test_lag_counts_between_two_chunks(make_desk: MakeDesk) -> None:
    """What is left of an id when the drain's time is over has waited since its own time, too."""
    desk = make_desk(claim_payloads=2)
    desk.push([{"id": "many", "payload": n, "score": n} for n in range(5)])
    desk.clock.advance(50)
    desk.handler.meanwhile = lambda: desk.clock.advance(20)
    desk.app.drain(seconds=10)

    assert [{"many": [0, 1]}] == desk.handler.batches
    assert 70.0 == desk.app.operate.stats()["total"]["lag"]


def test_metrics_tell_fresh_from_retries(make_desk: MakeDesk) -> None:
    """LN-12: length = fresh + retries, and a retry is not late before its time."""
    desk = make_desk({"shards_count": 4})
    desk.fail([{"id": job_id} for job_id in range(6)])
    desk.push([{"id": f"fresh {n}"} for n in range(3)])
    metrics = desk.app.operate.metrics()[desk.worker.queue_name]

    assert (9, 3, 6, 0.0) == (metrics.length, metrics.fresh, metrics.retries, metrics.lag)
    assert 4 == len(metrics.shards)
    assert 9 == sum(shard.length for shard in metrics.shards)
    desk.clock.advance(LATER + 5)
    assert LATER + 5 == desk.app.operate.metrics()[desk.worker.queue_name].lag


def test_counters_count_ids_and_payloads_apart(make_desk: MakeDesk) -> None:
    """Check 25: processed, failed and dead count ids; payloads count what the handler was given and did."""
    desk = make_desk({"max_retry_count": 0})
    desk.push([{"id": job_id, "payload": n, "score": n} for job_id in "ab" for n in range(3)])
    desk.drain()
    desk.fail([{"id": "broken"}])
    metrics = desk.app.operate.metrics()[desk.worker.queue_name]

    assert (2, 6) == (metrics.done, metrics.payloads)
    assert (1, 1, 1) == (metrics.failed, metrics.dead, metrics.morgue_length)


def test_paused_shards_are_counted(make_desk: MakeDesk) -> None:
    """Until the pause ends, by itself or because somebody resumes."""
    desk = make_desk({"shards_count": 3})

    def paused() -> int:
        return desk.app.operate.metrics()[desk.worker.queue_name].paused

    assert 0 == paused()
    desk.queue.pause(60.0)
    assert 3 == paused()
    desk.clock.advance(60.0)
    assert 0 == paused()
    desk.queue.pause()
    assert 3 == paused()
    desk.queue.resume()
    assert 0 == paused()


def test_queues_of_very_many_shards_are_measured_in_parts(make_desk: MakeDesk) -> None:
    """Each shard is told once, and in its place."""
    desk = make_desk({"shards_count": 100})
    desk.push([{"id": job_id} for job_id in range(300)])

    shards = desk.app.operate.metrics()[desk.worker.queue_name].shards

    assert 300 == sum(shard.length for shard in shards) == desk.app.operate.stats()["total"]["length"]
    assert [view.length for view in desk.queue.shards()] == [shard.length for shard in shards]


def test_stats_take_one_round_trip(app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """P8: whatever the number of shards, the node is asked once."""
    for number in range(3):
        declare(app, f"{queue_name}-{number}", FailingHandler(), shards_count=40)
    app.operate.stats()
    sent: list[int] = []

    def noting(client: redis.Redis, commands: Iterable[Command]) -> Generator[Any]:
        asked = [*commands]
        sent.append(len(asked))
        return stream(client, asked)

    monkeypatch.setattr(reader, "stream", noting)
    app.operate.stats()

    # The time, and each queue's shards in two groups.
    assert [1 + 3 * 2] == sent


def test_stats_of_a_cluster(make_desk: MakeDesk, cluster: Cluster) -> None:
    """Shards on several nodes are told together."""
    desk = make_desk({"shards_count": 12}, redis_url=cluster.url)
    desk.kill([{"id": n} for n in range(20)])
    desk.push([{"id": n} for n in range(30)])

    assert {"length": 30, "morgue_length": 20, "lag": 0.0} == desk.app.operate.stats()["total"]


def test_a_queue_that_was_made_otherwise_is_skipped_and_hides_no_other(make_app: MakeApp, queue_name: str) -> None:
    """With another shards_count the numbers would be those of shards that nobody uses; a sentence says why not."""
    other = f"{queue_name}-sound"
    declare(make_app(), queue_name, FailingHandler(), shards_count=2).push_many([{"id": 1}])
    app = make_app()
    declare(app, queue_name, FailingHandler(), shards_count=3)
    declare(app, other, FailingHandler()).push_many([{"id": 1}])

    stats, metrics = app.operate.stats(), app.operate.metrics()
    with app.operate.overview() as overview:
        glances = {queue.name: queue.mismatch for queue in overview.queues}

    assert [other] == [*stats["by_worker"]] == [*metrics]
    assert 1 == stats["total"]["length"] == metrics[other].length
    assert stats["skipped"] == metrics.skipped == app.operate.find("1").skipped == app.operate.errors().skipped
    assert {queue_name: stats["skipped"][queue_name], other: ""} == glances
    assert "declared with shards_count=3, but it was made with shards_count=2" in stats["skipped"][queue_name]


def test_a_drain_never_loads_what_people_look_with(server: Server) -> None:
    """The cold start of a drain pays for nothing that it does not use."""
    code = """
import sys
from lowkiq_lambda import Lowkiq
app = Lowkiq()
app.worker(lambda batch: None)
app.drain()
print(sorted(name for name in sys.modules if name.startswith(("lowkiq_lambda.operate", "lowkiq_lambda.views"))))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"LOWKIQ_REDIS_URL": server.url},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ("[]\n", "") == (done.stdout, done.stderr)

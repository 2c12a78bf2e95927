"""What lies in the morgue: equal payloads of an id meet there, and no id takes the place of others (P2, L-26, L-32)."""

import logging

import pytest

from lowkiq_lambda import Lowkiq, MorgueLimits, Worker
from lowkiq_lambda.dashboard.api.monitoring import lines
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import raising
from tests.kit.looks import counters
from tests.kit.servers import Server
from tests.kit.stored import stored
from tests.kit.workers import declare, shard_of


def lying(app: Lowkiq, worker: type[Worker]) -> dict[str, list[tuple[object, float]]]:
    """Payloads with their scores by id."""
    jobs = app.operate(worker).morgue.list("id", "-", "+", limit=10_000)
    return {job.id: [(payload, score) for payload, score in job.payloads] for job in jobs}


def kill_each(app: Lowkiq, worker: type[Worker], pushes: list[dict[str, object]]) -> None:
    """One after the other, each fails for the last time."""
    for push in pushes:
        worker.push_many([push])
        app.drain()


@pytest.mark.parametrize("merge", ["min", "max", "latest"])
def test_l26_equal_payloads_of_an_id_meet_in_the_morgue(
    make_app: MakeApp, server: Server, clock: ManualClock, queue_name: str, merge: str
) -> None:
    """L-26, L-32: one is left, at the score that the merge of the queue keeps, with the time of its last death."""
    app = make_app()
    worker = declare(app, queue_name, raising(), max_retry_count=0, shards_count=1, merge=merge)
    for score in (10, 20):
        kill_each(app, worker, [{"id": "a", "payload": "v1", "score": score}])
        clock.advance(1)

    assert {"a": [("v1", 10 if merge == "min" else 20)]} == lying(app, worker)
    (job,) = app.operate(worker).morgue.fetch(["a"])
    assert clock.time() - 1 == pytest.approx(job.updated_at)
    # Raises where the keys of the shard contradict each other.
    assert (2, 0) == (counters(app, worker)["dead"], counters(app, worker).get("trimmed", 0))
    stored(server.admin, shard_of(app, worker, "a"))


def test_equal_payloads_lie_beside_each_other_where_a_queue_merges_none(make_app: MakeApp, queue_name: str) -> None:
    """With `merge="never"` each of them counts, in the morgue as in the queue."""
    app = make_app()
    worker = declare(app, queue_name, raising(), max_retry_count=0, shards_count=1, merge="never")
    kill_each(app, worker, [{"id": "a", "payload": "v1", "score": score} for score in (10, 20)])

    assert {"a": [("v1", 10), ("v1", 20)]} == lying(app, worker)


def test_equal_payloads_meet_among_others_of_their_id(make_app: MakeApp, server: Server, queue_name: str) -> None:
    """Whatever else of the id lies there, short or long, and after some of it was taken away."""
    app = make_app()
    worker = declare(app, queue_name, raising(), max_retry_count=0, shards_count=1)
    payloads = ["v1", "v2", "x" * 100, "v1", "x" * 100, "v2"]
    kill_each(app, worker, [{"id": "a", "payload": p, "score": n} for n, p in enumerate(payloads)])
    assert {"a": [("v1", 0), ("v2", 1), ("x" * 100, 2)]} == lying(app, worker)

    assert 1 == app.operate(worker).morgue.delete(["a"])
    kill_each(app, worker, [{"id": "a", "payload": "v1", "score": n} for n in (8, 7, 9)])

    assert {"a": [("v1", 7)]} == lying(app, worker)
    stored(server.admin, shard_of(app, worker, "a"))


LONG = (pytest.mark.timeout(300), pytest.mark.nightly("the same with small numbers is part of each check"))


@pytest.mark.parametrize("times", [40, pytest.param(10_000, marks=LONG)])
def test_p2_a_broken_id_does_not_push_others_out_of_the_morgue(
    make_app: MakeApp, queue_name: str, times: int, caplog: pytest.LogCaptureFixture
) -> None:
    """P2: however often one id dies with the same payload, the dead orders of everybody else stay."""
    orders = 500 if times > 1_000 else 15
    app = make_app() if times > 1_000 else make_app(morgue=MorgueLimits(entries=20))
    worker = declare(app, queue_name, raising(), max_retry_count=0, shards_count=1, batch_size=1_000, isolate=False)
    worker.push_many([{"id": f"order {n}"} for n in range(orders)])
    app.drain()
    caplog.set_level(logging.CRITICAL)
    for _ in range(times):
        worker.push_many([{"id": "7"}])
        app.drain()

    found = lying(app, worker)
    assert orders + 1 == len(found)
    assert (orders + times, 0) == (app.operate.metrics()[queue_name].dead, app.operate.metrics()[queue_name].trimmed)


def test_the_id_with_the_most_payloads_makes_room(
    make_app: MakeApp, server: Server, clock: ManualClock, queue_name: str
) -> None:
    """Above the bound an id that has several gives of its own, the oldest first, whoever died last."""
    app = make_app(morgue=MorgueLimits(entries=20))
    worker = declare(app, queue_name, raising(), max_retry_count=0, shards_count=1, batch_size=1_000, isolate=False)
    kill_each(app, worker, [{"id": f"order {n}"} for n in range(15)])
    kill_each(app, worker, [{"id": "7", "payload": n, "score": n} for n in range(30)])
    kill_each(app, worker, [{"id": "8", "payload": n, "score": n} for n in range(2)])
    clock.advance(1)
    kill_each(app, worker, [{"id": "order 15"}])

    found = lying(app, worker)
    assert {f"order {n}" for n in range(16)} | {"7", "8"} == {*found}
    assert [28.0, 29.0] == [score for _, score in found["7"]]
    assert 20 == sum(map(len, found.values()))
    stored(server.admin, shard_of(app, worker, "a"))


def test_what_a_bound_removes_is_published_and_logged(
    make_app: MakeApp, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """P9: metrics, Prometheus, and one warning for each drain of a shard say how many payloads are gone."""
    app = make_app(morgue=MorgueLimits(entries=3))
    worker = declare(app, queue_name, raising(), max_retry_count=0, shards_count=1, batch_size=1_000, isolate=False)
    worker.push_many([{"id": n} for n in range(10)])
    app.drain()

    metrics = app.operate.metrics()[queue_name]
    assert (10, 7, 3) == (metrics.dead, metrics.trimmed, metrics.morgue_length)
    assert f'lowkiq_queue_trimmed_total{{queue="{queue_name}"}} 7' in [*lines({queue_name: metrics})]
    (warned,) = [record for record in caplog.records if "the morgue of a shard is full" in record.message]
    assert ("WARNING", 7) == (warned.levelname, warned.__dict__["count"])

"""Pushes to a queue that is being resharded: each is applied once, in order, whatever the pusher knew of the shards."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowkiq_lambda import Lowkiq, Worker
from lowkiq_lambda.store.shard.chunks import Chunk, NewJob, packed
from lowkiq_lambda.store.shard.declarations import shards_of
from lowkiq_lambda.store.shard.layout import settled
from lowkiq_lambda.store.shard.rerouting import parted
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.moving import HandMade
from tests.kit.servers import FaultProxy, Server
from tests.kit.workers import declare

IDS = [str(number) for number in range(20)]
"""Ids of all shards."""
MADE_WITH = {"shards_count": 6, "layout": 1, "hash": "crc32", "merge": "min"}


@pytest.fixture
def worker(make_app: MakeApp, fault_proxy: FaultProxy, queue_name: str) -> type[Worker]:
    """That of a producer behind a proxy, which has pushed once to each of the four old shards."""
    worker = declare(make_app(redis_url=fault_proxy.url), queue_name, Notes(), shards_count=4)
    worker.push_many([{"id": job_id, "payload": 0} for job_id in IDS])
    return worker


@pytest.fixture
def drained(
    worker: type[Worker],  # noqa: ARG001 - it has pushed
    make_app: MakeApp,
    queue_name: str,
) -> tuple[Lowkiq, Notes]:
    """Another process, which has performed these pushes; nothing is left to be carried."""
    app, notes = make_app(), Notes()
    declare(app, queue_name, notes, shards_count=4)
    app.drain()
    notes.batches.clear()
    return app, notes


@pytest.fixture
def producer(make_app: MakeApp, fault_proxy: FaultProxy, queue_name: str, monkeypatch: pytest.MonkeyPatch) -> Lowkiq:
    """One that keeps pushes, as on Lambda: no thread delivers them."""
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "producer")
    app = make_app(redis_url=fault_proxy.url, when_unavailable="buffer")
    declare(app, queue_name, Notes(), shards_count=4)
    return app


@pytest.fixture
def moving(drained: tuple[Lowkiq, Notes], server: Server, queue_name: str) -> HandMade:
    """A move of the queue to eight shards, of which nothing is done yet."""
    return HandMade(server, drained[0], queue_name)


def performed(notes: Notes) -> dict[str, list[Any]]:
    """The payloads of each id in the order in which they were performed."""
    payloads: dict[str, list[Any]] = {}
    for batch in notes.batches:
        for job_id, given_payloads in batch.items():
            payloads.setdefault(job_id, []).extend(given_payloads)
    return payloads


def _drained(drained: tuple[Lowkiq, Notes]) -> dict[str, list[Any]]:
    """What the other process performs now."""
    drained[0].drain()
    return performed(drained[1])


def jobs(number: int, ids: list[str] = IDS) -> list[dict[str, Any]]:
    """One job for each id, with that number as its payload."""
    return [{"id": job_id, "payload": number} for job_id in ids]


def test_e93_a_producer_that_slept_over_the_whole_move_pushes_to_the_new_shards_in_order(
    worker: type[Worker], drained: tuple[Lowkiq, Notes], moving: HandMade
) -> None:
    """E-93: its jobs of several calls are parted by the new shards, and each id gets its payloads in their order."""
    moving.through(8)

    pushed = [one for number in (1, 2, 3) for one in worker.push_many(jobs(number))]
    drained[0].drain()

    assert {job_id: [1, 2, 3] for job_id in IDS} == performed(drained[1])
    assert {one.shard for one in pushed} > {4, 5, 6, 7}


def test_e93_many_jobs_of_one_id_stay_in_order_across_calls(
    worker: type[Worker], drained: tuple[Lowkiq, Notes], moving: HandMade
) -> None:
    """E-93: more than one call can hold: each next one follows when the one before has got to its new shard."""
    moving.through(8)

    worker.push_many([{"id": IDS[0], "payload": number} for number in range(4_000)])
    drained[0].drain()

    assert {IDS[0]: [*range(4_000)]} == performed(drained[1])


@pytest.mark.parametrize("moves", [(8, 3), (8, 3, 5, 4)], ids=["another", "back, at last"])
def test_e94_a_producer_may_be_several_moves_behind(
    worker: type[Worker], drained: tuple[Lowkiq, Notes], moving: HandMade, moves: tuple[int, ...]
) -> None:
    """E-94: a producer that knows none of them asks once where its ids are now."""
    for count in moves:
        moving.through(count)

    worker.push_many(jobs(1))
    drained[0].drain()

    assert {job_id: [1] for job_id in IDS} == performed(drained[1])


def test_p4_what_the_old_shard_took_before_it_was_closed_is_pushed_nowhere_else(
    worker: type[Worker],
    drained: tuple[Lowkiq, Notes],
    moving: HandMade,
    fault_proxy: FaultProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """P4: the answer is lost, then the shard is closed: it knows the token, and the jobs are in it."""
    fault_proxy.drop_reply_after(b"the-marked-one")

    def close_all(_seconds: float) -> None:
        moving.begin(8)
        for group in range(moving.layout.groups):
            moving.close(group)

    monkeypatch.setattr(cast("Lowkiq", worker.app).core.backend, "_wait", close_all)

    (pushed,) = worker.push_many([{"id": IDS[0], "payload": "the-marked-one"}])

    assert pushed.shard < 4
    assert moving.layout.is_moving
    assert {} == _drained(drained), "it waits in the closed shard for movers to carry it"


def test_p4_a_part_whose_answer_is_lost_is_applied_once(
    worker: type[Worker], drained: tuple[Lowkiq, Notes], moving: HandMade, fault_proxy: FaultProxy
) -> None:
    """P4: a part has a token of its own, and is sent again under it."""
    moving.through(8)
    worker.push_many([{"id": IDS[1], "payload": 0}])
    drained[0].drain()
    drained[1].batches.clear()
    fault_proxy.drop_reply_after(b"the-marked-one", times=2)

    worker.push_many([{"id": IDS[0], "payload": "the-marked-one"}, {"id": IDS[1], "payload": 1}])
    drained[0].drain()

    assert {IDS[0]: ["the-marked-one"], IDS[1]: [1]} == performed(drained[1])


@given(st.lists(st.sampled_from(IDS), min_size=1, max_size=40), st.sampled_from([2, 3, 4, 9, 12]), st.booleans())
def test_p4_parts_are_the_same_each_time(ids: list[str], after: int, has_left: bool) -> None:  # noqa: FBT001 - given by position
    """P4: whoever sends a chunk again makes the same parts under the same tokens, and no job is lost or added."""
    old = shards_of("queue", MADE_WITH)
    home = old.home_of(ids[0])
    own = [job_id for job_id in ids if old.home_of(job_id) == home]
    chunk = Chunk(
        home, b"t" * 12, [NewJob(at, job_id, packed(None, None, b"0"), None) for at, job_id in enumerate(own)]
    )
    layout = settled(6).begun(after, 7)
    shards = shards_of("queue", MADE_WITH, layout if has_left else layout.with_moved(home.index % layout.groups))

    parts = parted(chunk, shards, has_left=has_left)

    assert parts == parted(chunk, shards, has_left=has_left)
    assert sorted(chunk.jobs) == sorted(job for part in parts for job in part.jobs)
    assert all(part.jobs == sorted(part.jobs) for part in parts), "each id keeps its order"
    assert len(parts) == len({part.token for part in parts} - {chunk.token})
    assert {chunk.token} == {part.origin for part in parts}
    assert all(part.shard.shards_count == after for part in parts)


@pytest.mark.parametrize("count", [8, 3])
def test_s3_what_a_process_kept_for_the_old_shards_goes_to_the_new_ones_first(
    producer: Lowkiq, fault_proxy: FaultProxy, drained: tuple[Lowkiq, Notes], moving: HandMade, count: int
) -> None:
    """S-3: kept jobs and later pushes of an id stay in order, though they were meant for different shards."""
    (worker,) = producer.workers
    worker.push_many(jobs(1))
    fault_proxy.refuse()
    fault_proxy.cut()
    worker.push_many(jobs(2))
    moving.through(count)
    fault_proxy.heal()
    # Another worker of the process learns of the new shards before anything was delivered.
    producer.core.queues.agreed(worker).declare_anew(producer.core.backend, 5.0)

    kept = worker.push_many(jobs(3))
    left = producer.flush()
    worker.push_many(jobs(4))
    drained[0].drain()

    assert ({True}, 0) == ({one.buffered for one in kept}, left)
    later = {job_id: [number for number in numbers if number > 1] for job_id, numbers in performed(drained[1]).items()}
    assert {job_id: [2, 3, 4] for job_id in IDS} == later

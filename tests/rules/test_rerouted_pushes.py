"""Pushes to a queue that is resharded: each job is written once, those of an id in order, whatever the pusher knew."""

from collections import defaultdict
from typing import Any

import pytest

from lowkiq_lambda.store.shard.chunks import CHUNK_JOBS, Chunk, waves_of
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.moving import Both, HandMade
from tests.kit.servers import Server
from tests.kit.workers import jobs_of

IDS = [str(number) for number in range(20)]
"""Ids of all shards."""
REST = 120.0
"""Seconds for which a closed shard waits for what may be on its way, before a later move takes it up."""


@pytest.fixture
def both(make_app: MakeApp, queue_name: str) -> Both:
    """Two processes with one queue, which keeps equal payloads apart."""
    return Both(make_app, queue_name, merge="never")


def performed(both: Both) -> dict[str, list[object]]:
    """The payloads of each id, in the order in which they are performed now."""
    both.here.drain()
    by_id = defaultdict[str, list[object]](list)
    for batch in both.notes.batches:
        for job_id, payloads in batch.items():
            by_id[job_id] += payloads
    return {**by_id}


def chunk_of(both: Both, token: bytes) -> Chunk:
    """A push of one job, as a process sends it that knows the queue as it is now."""
    client = both.here.core.pushes.clients.of(both.here.core.queues.agreed(both.worker))
    checked = client._checker.check_all([{"id": "1", "payload": "once"}])
    ((chunk,),) = waves_of(client.shards, checked.by_shard, checked.features)
    return chunk._replace(token=token)


def sent(both: Both, chunk: Chunk) -> list[str]:
    """The id of what was written, after one attempt that this process makes."""
    results: list[Any] = [None]
    client = both.here.core.pushes.clients.of(both.here.core.queues.agreed(both.worker))
    unwritten = client.pusher.write([[chunk]], results, 0.0)
    assert {} == unwritten.errors
    return [result.id for result in results if result is not None]


def test_a_producer_that_was_frozen_over_a_whole_move_is_sent_on_in_order(both: Both) -> None:
    """What it pushes comes behind what it pushed before, though that has moved, and it knew nothing of a move."""
    both.worker.push_many(jobs_of(IDS, payload=1))
    both.there.operate(both.mover).reshard(to=6)
    for payload in (2, 3):
        both.worker.push_many(jobs_of(IDS, payload=payload))

    assert {job_id: [1, 2, 3] for job_id in IDS} == performed(both)


def test_a_push_of_several_waves_keeps_its_order(both: Both) -> None:
    """Of a push that is too large for one call no later part is written before an earlier one has arrived."""
    count = CHUNK_JOBS + 100
    both.worker.push_many([{"id": "1", "payload": -1}])
    both.there.operate(both.mover).reshard(to=6)
    both.worker.push_many([{"id": "1", "payload": number} for number in range(count)])

    assert {"1": [*range(-1, count)]} == performed(both)


def test_a_push_whose_answer_was_lost_is_answered_by_the_closed_shard(both: Both) -> None:
    """A closed shard looks at the token first: what it took before its jobs moved is not written to another one too."""
    chunk = chunk_of(both, b"lost answer!")
    assert ["1"] == sent(both, chunk)
    both.there.operate(both.mover).reshard(to=6)

    assert ["1"] == sent(both, chunk)
    assert {"1": ["once"]} == performed(both)


@pytest.mark.parametrize("minutes", [0, 1])
def test_a_push_is_known_by_its_token_in_the_next_minute_too(both: Both, clock: ManualClock, minutes: int) -> None:
    """Tokens of two minutes are kept apart, and a repeat is answered from either, though the server gets others."""
    for _ in range(minutes):
        both.worker.push_many(jobs_of(IDS[2:]))
        clock.advance(60.0)
    chunk = chunk_of(both, b"lost answer!")
    assert ["1"] == sent(both, chunk)
    clock.advance(60.0)
    both.worker.push_many(jobs_of(IDS[2:]))

    assert ["1"] == sent(both, chunk)
    assert ["once"] == performed(both)["1"]


def test_a_push_that_is_sent_on_twice_is_written_once(both: Both) -> None:
    """The parts of a push that was turned away have the same tokens each time, whoever sends them on."""
    chunk = chunk_of(both, b"sent on, two")
    both.there.operate(both.mover).reshard(to=6)

    assert [["1"], ["1"]] == [sent(both, chunk), sent(both, chunk)]
    assert {"1": ["once"]} == performed(both)


def test_a_later_push_has_no_smaller_default_score(both: Both, server: Server) -> None:
    """The new shard takes over the score of the closed one before the push comes: its clock may be behind."""
    moving = HandMade(server, both.there, both.name)
    moving.begin(8)
    late = both.here.core.backend.now(both.here.core.queues[both.name].shards[0]) + 500.0
    for group in range(4):
        moving.close(group, last_score=late)

    pushed = both.worker.push_many(jobs_of(IDS))

    metas = [ShardRef(both.name, 8, one.shard - 4).key("meta") for one in pushed]
    assert all(float(server.admin.hget(meta, "last_score") or 0) >= late for meta in metas)
    assert 20 == len(metas)


def test_a_refused_push_lets_the_closed_shards_rest_anew(both: Both, clock: ManualClock) -> None:
    """Who was refused may have sent the push twice: no move takes the shard up while the other may be on its way."""
    both.worker.push_many(jobs_of(IDS))
    both.there.operate(both.mover).reshard(to=6)
    clock.advance(REST - 20)
    both.worker.push_many(jobs_of(IDS))
    clock.advance(30)
    began = clock.time()

    both.there.operate(both.mover).reshard(to=4)

    assert REST - 30 <= clock.time() - began <= REST

"""Pushes by the name of a queue, from a process that does not import its worker."""

import asyncio
from typing import Any, cast

import msgspec
import pytest

from lowkiq_lambda import (
    BackendUnavailable,
    Debounce,
    DeclarationError,
    JobError,
    Lowkiq,
    NoSuchQueue,
    QueueMismatch,
    Worker,
)
from lowkiq_lambda.store.shard.keys import declaration_key
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.moving import HandMade
from tests.kit.servers import FaultProxy, Server
from tests.kit.workers import declare, jobs_of

IDS = [str(number) for number in range(40)]
"""Ids of all shards."""


@pytest.fixture
def producer(make_app: MakeApp) -> Lowkiq:
    """An app without workers, as another process has it."""
    return make_app()


def made(app: Lowkiq, queue_name: str, notes: Notes, **fields: Any) -> type[Worker]:
    """The worker that has made the queue."""
    worker = declare(app, queue_name, notes, **fields)
    app.drain()
    return worker


@pytest.mark.parametrize("tenants", [None, "spread", "home"])
@pytest.mark.parametrize("merge", ["min", "max", "never", "latest"])
def test_jobs_land_where_the_worker_looks_for_them(
    app: Lowkiq, producer: Lowkiq, queue_name: str, tenants: Any, merge: Any
) -> None:
    """P1: each id has the shard, the merge and the tenant's home that the declaration says, which only Redis knows."""
    notes = Notes()
    worker = made(app, queue_name, notes, shards_count=7, tenants=tenants, merge=merge)
    ids = [f"{number}:{number}" for number in IDS]
    jobs = [{"id": job_id, "payload": job_id, "score": 1} for job_id in ids]

    pushed = producer.remote(queue_name).push_many(jobs)

    assert all(one.merged for one in worker.push_many(jobs))
    assert [one.shard for one in pushed] == [one.shard for one in worker.push_many(jobs)]
    app.drain()
    assert sorted(ids) == sorted(job_id for batch in notes.ids for job_id in batch)


def test_all_ways_to_push_a_job_are_there(app: Lowkiq, producer: Lowkiq, queue_name: str) -> None:
    """One, several, on an event loop, and through the app; nothing of it makes the producer drain the queue."""
    notes = Notes()
    made(app, queue_name, notes)
    remote = producer.remote(queue_name)

    remote.push("one", 1, score=3)
    remote.push_many(jobs_of("ab", payload=2))
    asyncio.run(remote.apush("later", 3, delay=60))
    asyncio.run(remote.apush_many(jobs_of("c", payload=4)))
    producer.core.pushes.push_or_raise(remote, jobs_of("d", payload=5))

    assert ([], {}) == (producer.workers, producer.drain())
    app.drain()
    assert [{"a": [2]}, {"b": [2]}, {"c": [4]}, {"d": [5]}, {"one": [1]}] == sorted(notes.batches, key=min)


def test_a_queue_that_nobody_has_made_is_refused_by_name(
    app: Lowkiq, producer: Lowkiq, queue_name: str, server: Server
) -> None:
    """A misspelt name makes no queue; once the worker is there, the same object pushes."""
    remote = producer.remote(queue_name)

    with pytest.raises(NoSuchQueue, match=rf"Nobody has made the queue '{queue_name}' on this server yet"):
        remote.push(1)

    assert 0 == server.admin.exists(declaration_key(queue_name))
    made(app, queue_name, Notes())
    assert "1" == remote.push(1).id


def test_a_worker_of_the_app_counts(app: Lowkiq, queue_name: str) -> None:
    """Where the app declares the queue, its declaration is what is pushed by: so tests put a stand-in there."""
    remote = app.remote(queue_name)
    worker = declare(app, queue_name, Notes(), shards_count=3)

    assert remote.worker is worker
    assert "1" == remote.push(1).id


def test_a_queue_that_is_declared_anew_is_pushed_to_by_its_new_terms(
    app: Lowkiq, producer: Lowkiq, make_app: MakeApp, queue_name: str
) -> None:
    """L-69: a producer that has pushed before follows a declaration that replaced the one it knew."""
    worker = made(app, queue_name, Notes(), shards_count=2)
    remote = producer.remote(queue_name)
    remote.push_many(jobs_of(IDS))
    app.drain()
    other, notes = make_app(), Notes()
    other.operate(declare(other, queue_name, notes, shards_count=5, merge="max")).redeclare()

    with pytest.raises(QueueMismatch):
        worker.push(1)
    # The shards that the producer knew are closed: this call fails before anything is written, the next one knows.
    with pytest.raises(QueueMismatch):
        remote.push_many(jobs_of(IDS))
    remote.push_many(jobs_of(IDS))

    other.drain()
    assert sorted(IDS) == sorted(job_id for batch in notes.ids for job_id in batch)


def test_a_move_is_followed(app: Lowkiq, producer: Lowkiq, server: Server, queue_name: str) -> None:
    """E-93: a producer that has pushed before goes on in order while the queue gets other shards."""
    notes = Notes()
    made(app, queue_name, notes, shards_count=4)
    remote = producer.remote(queue_name)
    remote.push_many(jobs_of(IDS, payload=1))
    app.drain()
    HandMade(server, app, queue_name).through(8)
    remote.push_many(jobs_of(IDS, payload=2))
    app.drain()

    expected = [{job_id: [payload]} for payload in (1, 2) for job_id in IDS]
    assert sorted(expected, key=str) == sorted(notes.batches, key=str)
    assert [1] * len(IDS) == [batch[job_id][0] for batch in notes.batches[: len(IDS)] for job_id in batch]


def test_a_declaration_that_cannot_be_read_is_no_reason_to_guess(
    app: Lowkiq, producer: Lowkiq, queue_name: str, server: Server
) -> None:
    """P10: of a later library's layout, and of what is no declaration, nothing is known, so nothing is written."""
    made(app, queue_name, Notes())
    key = declaration_key(queue_name)
    there = msgspec.json.decode(cast("bytes", server.admin.get(key)))
    for stored in ("?", msgspec.json.encode({**there, "layout": 9})):
        server.admin.set(key, stored)
        with pytest.raises(QueueMismatch, match="cannot be read, or a version of the library made it"):
            producer.remote(queue_name).push(1)


def test_a_producer_with_another_codec_is_refused(make_app: MakeApp, app: Lowkiq, queue_name: str) -> None:
    """Nobody could read its payloads."""
    made(app, queue_name, Notes())
    producer = make_app(dump_payload=lambda payload: repr(payload).encode(), load_payload=lambda payload: payload)

    with pytest.raises(QueueMismatch, match="codec='custom'"):
        producer.remote(queue_name).push(1)


def test_what_redis_cannot_take_waits_in_the_process(
    app: Lowkiq, make_app: MakeApp, queue_name: str, fault_proxy: FaultProxy
) -> None:
    """S-3: with `when_unavailable="buffer"` an outage keeps the jobs of a known queue; an unknown one needs Redis."""
    notes = Notes()
    made(app, queue_name, notes)
    producer = make_app(redis_url=fault_proxy.url, when_unavailable="buffer", redis_timeout=0.1)
    remote = producer.remote(queue_name)
    remote.push("a", 1)
    fault_proxy.refuse()
    fault_proxy.cut()

    assert remote.push("b", 2).buffered
    with pytest.raises(BackendUnavailable):
        producer.remote("another").push(1)

    fault_proxy.heal()
    assert 0 == producer.flush()
    app.drain()
    assert [{"a": [1]}, {"b": [2]}] == sorted(notes.batches, key=min)


def test_a_producer_says_how_the_worker_debounces(
    app: Lowkiq, producer: Lowkiq, queue_name: str, clock: ManualClock
) -> None:
    """B-7: it travels with each push, so the producer says it as the worker does."""
    notes = Notes()
    made(app, queue_name, notes, debounce=Debounce(2.0, at_most=10.0))

    producer.remote(queue_name, debounce=Debounce(2.0, at_most=10.0)).push("a")

    assert {} == app.drain()
    clock.advance(2.0)
    assert 1 == app.drain()["done"]


def test_it_is_pushed_to_and_nothing_else(app: Lowkiq, producer: Lowkiq, queue_name: str) -> None:
    """Its code is elsewhere; a bad job is refused as ever."""
    remote = producer.remote(queue_name)

    with pytest.raises(DeclarationError, match="is in another program: push to it"):
        remote({})
    made(app, queue_name, Notes())
    with pytest.raises(JobError, match="takes a list of jobs"):
        remote.push_many({"id": 1})  # type: ignore[dict-item]  # one job in place of a list

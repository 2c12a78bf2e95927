"""Tenants: fair order, rates, and one handler at a time (B-1, B-2, B-12, B-16)."""

import threading
from collections import Counter, defaultdict
from typing import Any, Final
from zlib import crc32

import pytest

from lowkiq_lambda import Batch, Config, DeclarationError, Lowkiq, QueueMismatch, Worker
from lowkiq_lambda.jobs.job import tenant_of
from lowkiq_lambda.jobs.rate import Rate
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import close_app
from tests.kit.handlers import Broken, Notes
from tests.kit.servers import Server
from tests.kit.workers import declare, jobs_of

LANES: Final = ("lines", "lanes", "served")


def left(server: Server, app: Lowkiq, worker: type[Worker]) -> int:
    """How many keys of lanes the queue has."""
    shards = app.core.queues.agreed(worker).shards
    return int(server.admin.exists(*(shard.key(name) for shard in shards for name in LANES)))


def taking(clock: ManualClock, seconds: float) -> Notes:
    """A handler whose batches take so long."""
    return Notes(lambda _batch: clock.advance(seconds))


def test_b2_few_jobs_are_not_kept_waiting_by_many_of_another_tenant(
    app: Lowkiq, server: Server, clock: ManualClock, queue_name: str
) -> None:
    """B-2, E-100: behind 500 jobs of one tenant each of 20 others is served within ceil(21 / 5) + 1 claims."""
    notes = taking(clock, 2.0)
    worker = declare(app, queue_name, notes, tenants="spread", batch_size=5)
    worker.push_many([{"id": f"big:{number}"} for number in range(500)])
    clock.advance(1.0)
    worker.push_many([{"id": f"small {number}:1"} for number in range(20)])

    app.drain()

    small = [number for number, ids in enumerate(notes.ids) if any(job_id.startswith("small") for job_id in ids)]
    assert max(small) < 6
    assert 520 == sum(map(len, notes.ids))
    assert 0 == left(server, app, worker)


def test_b2_tenants_with_as_much_to_do_are_served_alike(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """B-2: of three tenants with equal backlogs, pushed one after the other, none is ever two jobs ahead."""
    notes = taking(clock, 2.0)
    worker = declare(app, queue_name, notes, tenants="spread")
    for tenant in "abc":
        worker.push_many(jobs_of([f"{tenant}:{number}" for number in range(5)]))
        clock.advance(1.0)

    app.drain()

    order = "".join(tenant_of(job_id) for ids in notes.ids for job_id in ids)
    assert ["abc"] * 5 == ["".join(sorted(order[at : at + 3])) for at in range(0, 15, 3)]


def test_b16_a_tenant_chooses_its_tracks_by_the_text_before_the_colon(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """B-16: what stands before the first colon is the tenant; ids without a colon are one tenant together."""
    notes = taking(clock, 2.0)
    worker = declare(app, queue_name, notes, tenants="spread")
    worker.push_many(jobs_of(["plain 1", "plain 2", "plain 3"]))
    clock.advance(1.0)
    worker.push_many(jobs_of(["a/0:1", "a/1:1:x", "a/1:2"]))
    clock.advance(1.0)

    app.drain()

    assert ["plain 1", "a/0:1", "a/1:1:x", "plain 2", "a/1:2", "plain 3"] == [ids[0] for ids in notes.ids]


@pytest.mark.parametrize("rate", [Rate(3, per=10), Rate(1, per=0.5), Rate(20, per=60)])
def test_b12_a_tenants_rate_is_never_exceeded(
    app: Lowkiq, server: Server, clock: ManualClock, queue_name: str, rate: Rate
) -> None:
    """B-12: in no window of `per` seconds more ids of a tenant begin, retries included; other tenants go on."""
    begun = defaultdict[str, list[float]](list)
    failing = {"a:1", "b:7"}

    def handle(batch: Batch) -> None:
        for job_id in batch:
            begun[tenant_of(job_id)].append(clock.time())
        clock.advance(0.03)
        for job_id in failing & {*batch}:
            failing.remove(job_id)
            batch.fail(job_id, "broken")

    worker = declare(app, queue_name, handle, tenants="home", tenant_rate=rate, batch_size=2, isolate=False)
    worker.push_many(jobs_of([f"{tenant}:{number}" for tenant in "ab" for number in range(30)]))
    for _ in range(800):
        app.drain()
        clock.advance(rate.per / 7)
    for times in begun.values():
        assert all(later - first >= rate.per for first, later in zip(times, times[rate.ids :], strict=False))
    assert {"a": 31, "b": 31} == {tenant: len(times) for tenant, times in begun.items()}
    assert 0 == left(server, app, worker)


def test_b12_a_tenants_rate_holds_where_clocks_disagree(server: Server, queue_name: str) -> None:
    """B-12: each process guesses the server's time, and what two guess differs by less than a tenth of a second."""
    true, begun = ManualClock(), list[float]()
    apps = []
    for ahead in (-0.04, 0.04):
        clock = ManualClock(true.time() + ahead)
        apps.append((Lowkiq(Config(redis_url=server.url), clock=clock), clock))

    def pass_time(seconds: float) -> None:
        for clock in (true, *(own for _, own in apps)):
            clock.advance(seconds)

    def handle(batch: Batch) -> None:
        begun.extend(true.time() for _ in batch)
        pass_time(0.001)

    workers = [declare(app, queue_name, handle, tenants="home", tenant_rate=Rate(2, per=1)) for app, _ in apps]
    workers[0].push_many(jobs_of([f"a:{number}" for number in range(30)]))
    for turn in range(2_000):
        apps[turn % 2][0].drain()
        pass_time(0.013)

    for app, _ in apps:
        close_app(app)
    assert 30 == len(begun)
    assert all(later - first >= 1 for first, later in zip(begun, begun[2:], strict=False))


def test_b12_what_a_dead_holder_had_claimed_counts_until_it_is_recovered(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """B-12: after a death the ids in flight are taken for begun when they are recovered, not for unbegun."""
    begun: list[float] = []

    def handle(batch: Batch) -> None:
        begun.extend(clock.time() for _ in batch)
        if len(begun) == 2:
            raise KeyboardInterrupt

    worker = declare(app, queue_name, handle, tenants="home", tenant_rate=Rate(2, per=100))
    worker.push_many(jobs_of([f"a:{number}" for number in range(5)]))
    with pytest.raises(KeyboardInterrupt):
        app.drain()
    for _ in range(60):
        clock.advance(10.0)
        app.drain()

    assert 6 <= len(begun)
    assert all(later - first >= 100 for first, later in zip(begun, begun[2:], strict=False))


def test_b12_a_tenant_at_home_has_one_handler_at_a_time(app: Lowkiq, queue_name: str) -> None:
    """B-12: however many shards run side by side, two handlers never have ids of one tenant."""
    running, both, seen = set[str](), list[str](), set[str]()
    lock, met = threading.Lock(), threading.Barrier(2, timeout=30.0)

    def handle(batch: Batch) -> None:
        tenants = {tenant_of(job_id) for job_id in batch}
        with lock:
            both.extend(running & tenants)
            running.update(tenants)
            is_first = not tenants <= seen
            seen.update(tenants)
        if is_first:
            met.wait()
        with lock:
            running.difference_update(tenants)

    names = ["a", "b"]
    worker = declare(app, queue_name, handle, tenants="home", shards_count=4)
    shards = {worker.queue_name: app.core.queues.agreed(worker).shards}
    worker.push_many(jobs_of([f"{tenant}:{number}" for tenant in names for number in range(10)]))
    threads = [threading.Thread(target=app.drain) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [] == both
    assert {*names} == seen
    assert {4} == {len(found) for found in shards.values()}


def test_b1_the_order_of_an_id_holds_through_retries(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """B-1: what waits under an id is handed over by score, whenever its tenant is served, also after failures."""
    handed = defaultdict[str, list[int]](list)
    failures = {"a:1": 2, "b:1": 1}

    def handle(batch: Batch) -> None:
        clock.advance(2.0)
        for job_id, payloads in batch.items():
            if failures.get(job_id, 0):
                failures[job_id] -= 1
                raise Broken("broken")
            handed[job_id] += payloads

    worker = declare(app, queue_name, handle, tenants="spread", batch_size=2, payloads_at_once=2)
    ids = ["a:1", "a:2", "b:1", "c:1"]
    for number in range(6):
        worker.push_many([{"id": job_id, "payload": number, "score": number} for job_id in ids])
    for _ in range(10):
        app.drain()
        clock.advance(20.0)

    assert {job_id: [0, 1, 2, 3, 4, 5] for job_id in ids} == handed


@pytest.mark.parametrize(
    "fields",
    [
        {"tenants": "spread"},
        {"tenants": "home"},
    ],
)
def test_b12_a_library_or_declaration_without_tenants_is_refused(
    make_app: Any, queue_name: str, fields: dict[str, Any]
) -> None:
    """B-12: a queue of tenants takes nobody who declares it otherwise, and a plain one no tenants."""
    worker = declare(make_app(), queue_name, Notes(), **fields)
    worker.push_many(jobs_of(["a:1"]))

    with pytest.raises(QueueMismatch, match="layout"):
        declare(make_app(), queue_name, Notes()).push_many(jobs_of(["a:1"]))
    other = {"home": "spread", "spread": "home"}[fields["tenants"]]
    with pytest.raises(QueueMismatch, match="crc32:tenant"):
        declare(make_app(), queue_name, Notes(), tenants=other).push_many(jobs_of(["a:1"]))


def test_b12_a_home_queue_may_be_redeclared_with_other_shards(app: Lowkiq, make_app: Any, queue_name: str) -> None:
    """B-12: its ids are found by their tenants' shards afterwards, too."""
    notes = Notes()
    declare(app, queue_name, Notes(), tenants="home", shards_count=2).push_many(jobs_of(["a:1"]))
    app.drain()
    anew = make_app()
    worker = declare(anew, queue_name, notes, tenants="home", shards_count=7)
    anew.operate(worker).redeclare()
    worker.push_many(jobs_of(["a:1", "a:2", "b:1"]))

    assert 7 == len(anew.core.queues.agreed(worker).shards)
    assert ["a:1", "a:2"] == [job.id for job in anew.operate(worker).waiting.fetch(["a:1", "a:2"])]
    homes = Counter(crc32(tenant.encode()) % 7 for tenant in ("a", "a", "b"))
    assert homes == {shard.index: shard.length for shard in anew.operate(worker).shards() if shard.length}
    anew.drain()
    assert ["a:1", "a:2", "b:1"] == sorted(job_id for ids in notes.ids for job_id in ids)


def test_b12_home_refuses_several_handlers_in_a_shard(app: Lowkiq, queue_name: str) -> None:
    """B-12: `concurrency` would let two handlers have a tenant at once."""
    with pytest.raises(DeclarationError, match="one handler of a tenant"):
        declare(app, queue_name, Notes(), tenants="home", concurrency=2)


def test_a_queue_without_tenants_gets_scripts_without_them(app: Lowkiq, queue_name: str) -> None:
    """Its shards have no key more, and its ids lie where they always did."""
    (shard,) = app.core.queues.agreed(declare(app, queue_name, Notes())).shards
    assert ShardRef(queue_name, 1, 0).keys == shard.keys
    assert not any(key.endswith(LANES) for key in shard.keys)


def test_repair_mends_lanes(app: Lowkiq, server: Server, clock: ManualClock, queue_name: str) -> None:
    """What a hand left in the keys of lanes is put right by what is due; an unreadable note is set aside."""
    notes = taking(clock, 2.0)
    worker = declare(app, queue_name, notes, tenants="spread")
    (shard,) = app.core.queues.agreed(worker).shards
    worker.push_many(jobs_of(["a:1", "a:2", "b:1"]))
    lines, lanes, served = (shard.key(name) for name in LANES)
    first: Any = server.admin.zrange(lines, 0, 0)[0]
    server.admin.zrem(lines, first)
    server.admin.zadd(lines, {b"none": 3, first + b"x": 0})
    server.admin.zrem(lanes, "b")
    server.admin.zadd(lanes, {"nobody": 1})
    server.admin.hset(served, mapping={"a": b"\xc1", "b": b"\x01"})

    clock.advance(1.0)

    assert 2 <= app.operate(worker).repair()

    assert [b"a", b"b"] == sorted(server.admin.zrange(lanes, 0, -1))
    assert 3 == server.admin.zcard(lines)
    assert 0 == server.admin.exists(served)
    app.drain()
    assert [["a:1"], ["b:1"], ["a:2"]] == notes.ids
    assert 0 == left(server, app, worker)


@pytest.mark.parametrize("name", LANES)
def test_a_key_of_another_type_stops_no_tenant(
    app: Lowkiq, server: Server, clock: ManualClock, queue_name: str, name: str
) -> None:
    """A push or a claim that meets it has the shard repaired, and goes on."""
    notes = taking(clock, 2.0)
    worker = declare(app, queue_name, notes, tenants="spread")
    (shard,) = app.core.queues.agreed(worker).shards
    worker.push_many(jobs_of(["a:1", "a:2", "b:1"]))
    server.admin.delete(shard.key(name))
    server.admin.set(shard.key(name), "something else")

    worker.push_many(jobs_of(["c:1"]))
    app.drain()

    assert ["a:1", "a:2", "b:1", "c:1"] == sorted(job_id for ids in notes.ids for job_id in ids)
    assert 0 == left(server, app, worker)


def test_lost_lines_are_missed_by_the_next_claim(
    app: Lowkiq, server: Server, clock: ManualClock, queue_name: str
) -> None:
    """A claim that finds a lane with a time and no ids compares the lines with what is due, and has them mended."""
    notes = taking(clock, 2.0)
    worker = declare(app, queue_name, notes, tenants="spread")
    (shard,) = app.core.queues.agreed(worker).shards
    worker.push_many(jobs_of(["a:1", "b:1"]))
    server.admin.delete(shard.key("lines"))

    app.drain()

    assert ["a:1", "b:1"] == sorted(job_id for ids in notes.ids for job_id in ids)

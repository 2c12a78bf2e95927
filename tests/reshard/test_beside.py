"""What a shard has beside its jobs moves too: schedule entries, tenants' pauses, and ids that debounce."""

from typing import Any

import msgspec
import pytest
import redis

from lowkiq_lambda import Batch, Debounce, Lowkiq, Rate
from lowkiq_lambda.jobs.job import shard_for
from lowkiq_lambda.store.shard.keys import DEBOUNCING, RECEIPTS, TENANTS, TIMETABLE, TRACKING, ShardRef
from lowkiq_lambda.store.shard.moving import Load, MovingShards
from lowkiq_lambda.testing import ManualClock
from tests.kit.deaths import Mortal
from tests.kit.handlers import Notes
from tests.kit.moving import HandMade
from tests.kit.servers import Server
from tests.kit.workers import declare, jobs_of

BEFORE, AFTER = 4, 6


def kept(admin: redis.Redis, queue_name: str, key: str, feature: str, count: int) -> dict[int, dict[bytes, bytes]]:
    """The fields of a hash, by the shard that has them."""
    shards = [ShardRef(queue_name, count, index, features=(feature,)) for index in range(count)]
    found: Any = {shard.index: admin.hgetall(shard.key(key)) for shard in shards}
    return {index: fields for index, fields in found.items() if fields}


def test_entries_go_to_the_shard_of_their_id(app: Lowkiq, queue_name: str, server: Server) -> None:
    """What was decided of a time stays decided, so nothing fires twice and nothing is let go."""
    worker = declare(app, queue_name, Notes(), shards_count=BEFORE)
    ids = [f"id {number}" for number in range(12)]
    for job_id in ids:
        shard = app.core.queues.agreed(worker).shards[shard_for(job_id, BEFORE)].using((TIMETABLE,))
        app.core.backend.run("put_entry", shard, [f"entry of {job_id}", "{}", "digest", job_id, ""], retry_for=1.0)
    was = kept(server.admin, queue_name, "timetable", TIMETABLE, BEFORE)

    app.operate(worker).reshard(to=AFTER)

    there = kept(server.admin, queue_name, "timetable", TIMETABLE, AFTER)
    records = {name: packed for fields in was.values() for name, packed in fields.items()}
    assert records == {name: packed for fields in there.values() for name, packed in fields.items()}
    for index, fields in there.items():
        for packed in fields.values():
            assert index == shard_for(msgspec.msgpack.decode(packed)["id"], AFTER)
    assert {} == kept(server.admin, queue_name, "timetable", TIMETABLE, BEFORE)


def test_a_tenant_stays_paused_in_all_shards_that_may_have_its_ids(
    app: Lowkiq, queue_name: str, clock: ManualClock, server: Server
) -> None:
    """Its ids wait in their lanes, and those of others run."""
    notes = Notes()
    worker = declare(app, queue_name, notes, shards_count=BEFORE, tenants="spread")
    worker.push_many(jobs_of([f"{tenant}:{number}" for tenant in ("acme", "globex") for number in range(12)]))
    until = clock.time() + 500
    for shard in app.core.queues.agreed(worker).shards:
        app.core.backend.run("pause_tenant", shard, ["acme", until], retry_for=1.0)

    app.operate(worker).reshard(to=AFTER)

    served = kept(server.admin, queue_name, "served", TENANTS, AFTER)
    assert [*range(AFTER)] == [*served]
    assert {until} == {msgspec.msgpack.decode(fields[b"acme"])["paused"] for fields in served.values()}
    shards = [ShardRef(queue_name, AFTER, index, features=(TENANTS,)) for index in range(AFTER)]
    assert 24 == sum(server.admin.zcard(shard.key("lines")) for shard in shards)
    assert [*range(AFTER)] == [shard.index for shard in shards if server.admin.zscore(shard.key("lanes"), "acme")]


def test_b12_what_a_dead_holder_had_claimed_counts_for_the_rate_after_a_move(
    app: Lowkiq, queue_name: str, clock: ManualClock
) -> None:
    """B-12: nobody recovered them before the move, so it is the first holder behind it that notes them."""
    begun: list[float] = []
    mortal = Mortal(app)

    def handle(batch: Batch) -> None:
        begun.extend(clock.time() for _ in batch)
        if len(begun) == 1:
            mortal.die()

    rate = Rate(5, per=1_000)
    worker = declare(app, queue_name, handle, shards_count=BEFORE, tenants="home", tenant_rate=rate)
    worker.push_many(jobs_of([f"a:{number}" for number in range(3)]))
    assert mortal.drain() is None
    clock.advance(100.0)
    app.core.backend.client.delete(*(shard.key("lease") for shard in app.core.queues.agreed(worker).shards))
    app.operate(worker).reshard(to=AFTER)
    worker.push_many(jobs_of([f"a:{number}" for number in range(3, 9)]))
    for _ in range(30):
        app.drain()
        clock.advance(100.0)

    assert 10 == len(begun)
    assert all(later - first >= rate.per for first, later in zip(begun, begun[rate.ids :], strict=False))


def test_an_id_goes_on_debouncing(app: Lowkiq, queue_name: str, clock: ManualClock, server: Server) -> None:
    """Pushes after the move put it off, no later than those before it allowed."""
    worker = declare(app, queue_name, Notes(), shards_count=BEFORE, debounce=Debounce(2.0, at_most=3.0))
    began = clock.time()
    worker.push_many(jobs_of(["a"]))

    app.operate(worker).reshard(to=AFTER)

    clock.advance(1.5)
    (pushed,) = worker.push_many([{"id": "a", "payload": 2}])
    assert (True, began + 3.0) == (pushed.merged, pushed.due_at)
    shard = ShardRef(queue_name, AFTER, shard_for("a", AFTER), features=(DEBOUNCING,))
    assert began + 3.0 == server.admin.zscore(shard.key("due"), "a")


def test_what_is_known_of_gathering_ids_goes_by_itself_after_a_move(
    app: Lowkiq, queue_name: str, server: Server
) -> None:
    """The keys have a time to live in the new shards, a minute longer than the latest of their ids may debounce."""
    worker = declare(app, queue_name, Notes(), shards_count=BEFORE, debounce=Debounce(2.0, at_most=30.0))
    worker.push_many(jobs_of([str(number) for number in range(40)]))

    app.operate(worker).reshard(to=AFTER)

    shards = [ShardRef(queue_name, AFTER, index, features=(DEBOUNCING,)) for index in range(AFTER)]
    left = [server.admin.pttl(shard.key("debouncing")) for shard in shards]
    assert min(left) > 0
    assert max(left) <= 90_000


@pytest.mark.parametrize("brought", [100, 900])
def test_what_a_new_shard_has_learned_meanwhile_is_not_set_back(
    app: Lowkiq, queue_name: str, clock: ManualClock, server: Server, brought: int
) -> None:
    """A time that was decided, a pause, how long a key holds, a count of revivals: the later, whichever comes first."""
    worker = declare(app, queue_name, Notes(), shards_count=BEFORE, tenants="spread")
    app.core.queues.agreed(worker)
    moving = HandMade(server, app, queue_name)
    moving.begin(AFTER)
    moving.close(0)
    shard = moving.shard(moving.layout.targets(0)[0]).using((TENANTS, TIMETABLE, RECEIPTS, TRACKING))
    here, come = clock.time() + 500.0, clock.time() + brought
    server.admin.hset(shard.key("timetable"), "poll", msgspec.msgpack.encode({"last": here}))
    server.admin.hset(shard.key("served"), "acme", msgspec.msgpack.encode({"paused": here}))
    server.admin.zadd(shard.key("receipts"), {"a key": here})
    server.admin.hset(shard.key("rows"), "v of a task", 500)

    def row(kind: bytes, name: bytes, told: bytes) -> Load:
        # As Lua packs two texts, of which one is packed itself.
        return Load(kind, name, b"", b"\x92" + b"".join(b"\xd9%c%b" % (len(text), text) for text in (name, told)))

    rows = [
        row(b"entry", b"poll", msgspec.msgpack.encode({"last": come})),
        row(b"lane", b"acme", msgspec.msgpack.encode({"paused": come})),
        row(b"receipts", b"a key", repr(come).encode()),
        row(b"item", b"v of a task", str(brought).encode()),
    ]
    MovingShards(app.core.backend, moving.layout.epoch, "min", 1.0).receive([(shard, rows)])

    kept = server.admin.hget(shard.key("timetable"), "poll"), server.admin.hget(shard.key("served"), "acme")
    entry, lane = (msgspec.msgpack.decode(packed) for packed in kept if isinstance(packed, bytes))
    later = max(here, come)
    assert (later, later) == (entry["last"], lane["paused"])
    assert later == server.admin.zscore(shard.key("receipts"), "a key")
    assert str(max(500, brought)).encode() == server.admin.hget(shard.key("rows"), "v of a task")

"""A declaration that was flushed away, cannot be written, or merges otherwise: who is stopped, and who is not."""

from collections.abc import Callable

import pytest

from lowkiq_lambda import BackendFull, Lowkiq, QueueMismatch
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.local.daemon import Daemon
from lowkiq_lambda.operate.inspect.declared_queues import declared_queues
from lowkiq_lambda.store.shard.keys import declaration_key
from lowkiq_lambda.store.shard.scripts import script
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.looks import left_behind
from tests.kit.servers import FaultProxy, Server
from tests.kit.waiting import eventually
from tests.kit.workers import declare, jobs_of

MANY = jobs_of([str(number) for number in range(2_000)])


def test_who_pushes_after_a_flush_declares_the_queue_again(make_app: MakeApp, own_server: Server) -> None:
    """E-49: a running producer writes the declaration anew, so that nobody else comes with another one."""
    running, other, performed = make_app(redis_url=own_server.url), make_app(redis_url=own_server.url), Notes()
    worker = declare(running, "queue", performed, shards_count=3)
    worker.push_many(jobs_of("a"))
    own_server.admin.flushall()

    worker.push_many(jobs_of("bcdef"))

    with pytest.raises(QueueMismatch, match="made with shards_count=3"):
        declare(other, "queue", Notes(), shards_count=8).push_many(jobs_of("x"))
    assert {"done": 5} == running.drain()


def test_who_looks_after_a_flush_declares_the_queue_again(make_app: MakeApp, own_server: Server) -> None:
    """E-49: a running drain writes the declaration anew with its next look but one, though nobody pushes."""
    running, other = make_app(redis_url=own_server.url), make_app(redis_url=own_server.url)
    declare(running, "queue", Notes(), shards_count=3)
    running.drain()
    own_server.admin.flushall()

    running.drain()
    running.drain()

    with pytest.raises(QueueMismatch, match="made with shards_count=3"):
        declare(other, "queue", Notes(), shards_count=8).push_many(jobs_of("x"))


def test_who_was_there_before_a_flush_is_refused_where_another_declared_since(
    make_app: MakeApp, own_server: Server
) -> None:
    """P1, P2: two counts are never in use at once: neither producer nor drain of the old one goes on."""
    running, other, performed = make_app(redis_url=own_server.url), make_app(redis_url=own_server.url), Notes()
    worker = declare(running, "queue", Notes(), shards_count=3)
    worker.push_many(jobs_of("abc"))
    running.drain()
    own_server.admin.flushall()
    declare(other, "queue", performed, shards_count=8).push_many(jobs_of("abc"))

    with pytest.raises(QueueMismatch, match="made with shards_count=8"):
        worker.push_many(jobs_of("abc"))
    with pytest.raises(QueueMismatch, match="made with shards_count=8"):
        running.drain()

    assert [] == own_server.admin.keys("lowkiq:{queue:3:*}:jobs")
    assert {"done": 3} == other.drain()


def test_another_merge_is_refused_with_what_to_do(make_app: MakeApp, queue_name: str) -> None:
    """E-95: what one keeps apart the other would look for in vain, so who comes second learns what to do."""
    first, second = make_app(), make_app()
    declare(first, queue_name, Notes(), merge="min").push_many(jobs_of("a"))
    worker = declare(second, queue_name, Notes(), merge="never")

    for use in (lambda: worker.push_many(jobs_of("a")), second.drain):
        with pytest.raises(QueueMismatch, match=r"merge='never', but it was made with merge='min'.*app\.redeclare"):
            use()


def test_an_empty_queue_gets_another_merge_and_who_goes_by_the_old_one_is_refused(
    make_app: MakeApp, queue_name: str
) -> None:
    """E-95: both merges are never in use at once: who was there before neither pushes nor drains nor requeues."""
    old, new, performed = make_app(), make_app(), Notes()
    before, after = declare(old, queue_name, Notes(), merge="min"), declare(new, queue_name, performed, merge="never")
    before.push_many([{"id": "a", "payload": 1}, {"id": "a", "payload": 2}])

    with pytest.raises(QueueMismatch, match="still has jobs"):
        new.operate(after).redeclare()
    old.drain()
    new.operate(after).redeclare()
    after.push_many([{"id": "a", "payload": 1}, {"id": "a", "payload": 1}])

    for use in (
        lambda: before.push_many(jobs_of("a")),
        lambda: old.operate(before).waiting.delete(["a"]),
        old.drain,
    ):
        with pytest.raises(QueueMismatch):
            use()
    assert {"done": 1} == new.drain()
    assert [{"a": [1, 1]}] == performed.batches
    assert {} == left_behind(new, after)


def test_a_queue_with_a_handler_at_work_stays_as_it_is(make_app: MakeApp, queue_name: str) -> None:
    """P1: what is in flight would be in use under two counts, so the queue is not empty while a handler runs."""
    old, new, refused = make_app(), make_app(), list[QueueMismatch]()
    after = declare(new, queue_name, Notes(), shards_count=4)

    def redeclare(_batch: object) -> None:
        with pytest.raises(QueueMismatch, match="still has jobs") as caught:
            new.operate(after).redeclare()
        refused.append(caught.value)

    before = declare(old, queue_name, Notes(redeclare), shards_count=2)
    before.push_many(jobs_of("a"))

    assert {"done": 1} == old.drain()
    assert 1 == len(refused)
    before.push_many(jobs_of("a"))


def in_a_drain(app: Lowkiq) -> None:
    """`app.drain`."""
    app.drain()


def in_visits(app: Lowkiq) -> None:
    """What an entrance of one's own does."""
    for state in app.core.drains.drainer.probe(app.core.drains.drainer.shards()):
        app.core.drains.drainer.visit(state.ref, Budget(app.core.clock))


def in_a_daemon(app: Lowkiq) -> None:
    """A daemon that is started only now."""
    shards = app.core.drains.drainer.shards()
    with Daemon(app):
        eventually(
            lambda: not any(app.core.backend.client.exists(one.key("jobs"), one.key("flight")) for one in shards)
        )


@pytest.mark.parametrize("drained", [in_a_drain, in_visits, in_a_daemon])
def test_a_full_server_and_a_queue_that_was_never_used_keep_nothing_from_being_drained(
    make_app: MakeApp, own_server: Server, drained: Callable[[Lowkiq], None]
) -> None:
    """E-41: a declaration that cannot be written stops the pushes of its own queue, and neither drains nor looks."""
    app, used, unused = make_app(redis_url=own_server.url, poll_interval=0.1), Notes(), Notes()
    never = declare(app, "a never used one", unused, shards_count=2)
    other = declare(app, "used", used, shards_count=2, batch_size=100)
    other.push_many(MANY)
    own_server.admin.config_set("maxmemory", 1)

    with pytest.raises(BackendFull):
        never.push_many(jobs_of("a"))
    drained(app)

    assert {job["id"] for job in MANY} == {job_id for ids in used.ids for job_id in ids}
    assert 0 == app.operate.stats()["total"]["length"]
    assert [] == list(app.operate(never).waiting.list("id"))
    assert not own_server.admin.exists(declaration_key("a never used one"))

    own_server.admin.config_set("maxmemory", 0)
    never.push_many(jobs_of("a"))
    assert {"done": 1} == app.drain()


@pytest.mark.parametrize(
    "change",
    [
        lambda _there: b"\xc1garbage",
        lambda _there: b"",
        lambda there: there[:-9],
        lambda there: there.replace(b'"generation":', b'"generation":"x","before":'),
        lambda there: there.replace(b'"changing":false', b'"changing":"no"'),
        lambda there: there.replace(b'"shards_count":', b'"shards":'),
        lambda there: there.replace(b'"merge":"min"', b'"merge":"\xff"'),
        lambda _there: None,
    ],
    ids=["garbage", "empty", "cut off", "generation", "changing", "shards_count", "no UTF-8", "another type"],
)
def test_a_declaration_that_nobody_can_read_stops_its_queue_alone(
    make_app: MakeApp, server: Server, queue_name: str, change: Callable[[bytes], bytes | None]
) -> None:
    """Who meets it is told what to do, other queues go on, and once it is deleted all is performed."""
    app, performed, beside = make_app(), Notes(), Notes()
    worker, other = declare(app, queue_name, performed), declare(app, f"{queue_name} beside", beside)
    worker.push_many(jobs_of("a"))
    other.push_many(jobs_of("b"))
    key = declaration_key(queue_name)
    changed = change(server.admin.get(key))  # type: ignore[arg-type]  # no future here
    server.admin.delete(key)
    if changed is None:
        server.admin.rpush(key, "alien")
    else:
        server.admin.set(key, changed)

    later = make_app()
    worker, other = declare(later, queue_name, performed), declare(later, f"{queue_name} beside", beside)
    with pytest.raises(QueueMismatch, match=f"declaration of queue '{queue_name}' cannot be read.*delete the key"):
        later.operate(worker).redeclare()
    with pytest.raises(QueueMismatch, match="cannot be read"):
        later.drain()
    assert [["b"]] == beside.ids
    assert {} == declared_queues(later.core.backend, 0.0)[queue_name].made_with

    server.admin.delete(key)
    worker.push_many(jobs_of("c"))
    later.drain()
    assert [["a"], ["c"]] == performed.ids


def test_e44_a_queue_is_opened_with_the_patience_that_registers_it(
    make_app: MakeApp, server: Server, queue_name: str, fault_proxy: FaultProxy
) -> None:
    """E-44: a fault that passes while a queue is first used is waited for, whichever of the two calls it hits."""
    app = make_app(redis_url=fault_proxy.url)
    worker = declare(app, queue_name, Notes(), shards_count=3)
    server.admin.script_load(script("open").source)
    fault_proxy.drop_reply_after(script("open").sha.encode())

    worker.push_many(jobs_of("abc"))

    fault_proxy.wait_dropped()
    assert {"done": 3} == app.drain()


def test_lb17_another_shards_count_is_refused(make_app: MakeApp, queue_name: str) -> None:
    """LB-17, E-93: neither a producer nor a drain with another shards_count strands ids."""
    made_with = declare(make_app(), queue_name, Notes(), shards_count=5)
    made_with.push_many(jobs_of("a"))
    other = make_app()
    worker = declare(other, queue_name, Notes(), shards_count=3)

    for call in (lambda: worker.push_many(jobs_of("a")), other.drain, other.operate(worker).shards):
        with pytest.raises(QueueMismatch, match=r"declared with shards_count=3, .* made with shards_count=5"):
            call()


def test_lb17_another_codec_is_refused(make_app: MakeApp, queue_name: str) -> None:
    """LB-17, E-95: what one process writes the other must be able to read."""
    declare(make_app(), queue_name, Notes()).push_many(jobs_of("a"))
    other = make_app(dump_payload=lambda _payload: b"", load_payload=lambda _dumped: None, codec="mine")

    with pytest.raises(QueueMismatch, match="declared with codec='mine', but it was made with codec='json'"):
        declare(other, queue_name, Notes()).push_many(jobs_of("a"))

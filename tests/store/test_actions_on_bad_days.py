"""Actions where replies get lost, memory is full, keys are guarded and shards lie on several nodes."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest

from lowkiq_lambda import BackendError, BackendFull, MorgueLimits
from lowkiq_lambda.operate.queue_operations import QueueOperations
from lowkiq_lambda.store.shard.keys import UNDO, declaration_key
from lowkiq_lambda.store.shard.scripts import script
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.desk import Desk, MakeDesk
from tests.kit.examples import mostly_nightly
from tests.kit.handlers import FailingHandler
from tests.kit.servers import Cluster, FaultProxy, MakeServer, Server
from tests.kit.workers import declare

Act = Callable[[QueueOperations], int]

EVERY_ACTION: dict[str, tuple[str, Act]] = {
    "delete": ("delete", lambda actions: actions.waiting.delete(["failed", "fresh", "later"])),
    "delete all failed": ("delete", lambda actions: actions.waiting.delete(filter={"least_count": "0"})),
    "kill all failed": ("kill", lambda actions: actions.waiting.kill(everything=True)),
    "run now": ("run_now", lambda actions: actions.waiting.run_now(everything=True)),
    "requeue all": ("requeue", lambda actions: actions.morgue.requeue(everything=True)),
    "delete all dead": ("delete_morgue", lambda actions: actions.morgue.delete(everything=True)),
}


def fill(desk: Desk) -> None:
    """Something to do for every action."""
    payloads = [{"payload": n, "score": n} for n in range(3)]
    desk.kill([{"id": "dead", **payload} for payload in payloads])
    desk.fail([{"id": "failed", **payload} for payload in payloads])
    desk.push([{"id": "fresh", **payload} for payload in payloads])
    desk.push([{"id": "later", "delay": 500}])


@pytest.mark.parametrize("name", EVERY_ACTION)
def test_a_call_whose_reply_is_lost_is_applied_once(
    make_desk: MakeDesk, fault_proxy: FaultProxy, queue_name: str, name: str
) -> None:
    """Sent again, it changes nothing more, and what it changed is counted once."""
    name_of_script, act = EVERY_ACTION[name]
    fresh = make_desk({"queue_name": f"{queue_name}-1"})
    fill(fresh)
    expected = act(fresh.queue)
    desk = make_desk({"queue_name": f"{queue_name}-2"}, redis_url=fault_proxy.url)
    fill(desk)
    fault_proxy.drop_reply_after(script(name_of_script, (UNDO,)).sha.encode())

    assert expected > 0
    assert expected == act(desk.queue)
    fault_proxy.wait_dropped()
    assert _but_for_clocks(fresh) == _but_for_clocks(desk)


def test_an_action_ends_with_an_error_where_redis_is_gone(make_desk: MakeDesk, fault_proxy: FaultProxy) -> None:
    """E-83: what was done is told, and after the outage a second call does the rest."""
    desk = make_desk(redis_url=fault_proxy.url, redis_timeout=0.2)
    desk.push([{"id": n} for n in range(1_200)])

    def go_away() -> None:
        fault_proxy.refuse()
        fault_proxy.cut()

    desk.before("delete", go_away, calls=2)
    with pytest.raises(BackendError) as caught:
        desk.queue.waiting.delete(range(1_200))
    fault_proxy.heal()

    assert ["500 ids were changed before; call the action again to go on."] == caught.value.__notes__
    assert 700 == desk.queue.waiting.delete(range(1_200))


def test_actions_go_on_where_memory_is_full(make_desk: MakeDesk, make_server: MakeServer) -> None:
    """Who cleans up after a flood needs no free memory for it; a push is refused meanwhile."""
    full = make_server(maxmemory="40mb")
    desk = make_desk(redis_url=full.url)
    fill(desk)
    for act in (act for _, act in EVERY_ACTION.values()):
        act(desk.queue)
    fill(desk)
    full.admin.config_set("maxmemory", 1)

    with pytest.raises(BackendFull):
        desk.push([{"id": "more"}])
    assert [1, 1, 2, 3] == [
        desk.queue.waiting.kill(everything=True),
        desk.queue.waiting.run_now(everything=True),
        desk.queue.morgue.requeue(everything=True),
        desk.queue.waiting.delete(["fresh", "failed", "dead"]),
    ]
    assert 1 == desk.queue.waiting.delete(["later"])


def test_every_call_stays_within_the_keys_of_its_shard(make_desk: MakeDesk, server: Server, queue_name: str) -> None:
    """A user who may touch nothing but the keys that are declared can look and act."""
    url = server.add_user(
        queue_name, f"~lowkiq:{{{queue_name}:1:0}}:*", f"~{declaration_key(queue_name)}", "&*", "+@all"
    )
    desk = make_desk(redis_url=url)
    for _, act in EVERY_ACTION.values():
        fill(desk)
        assert act(desk.queue) > 0
    fill(desk)
    queue = desk.queue

    assert queue.waiting.fetch(["failed"])
    assert queue.morgue.fetch(["dead"])
    assert queue.in_flight.list() == []
    for query in (
        partial(queue.waiting.list, "id"),
        queue.waiting.list,
        partial(queue.waiting.list, "retry_count"),
    ):
        assert 3 == len(query())
    assert queue.morgue.list("id") == queue.morgue.list()
    assert 3 == desk.app.operate.stats()["total"]["length"]


def test_actions_on_a_cluster(cluster: Cluster, make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """Shards on several nodes are changed one after the other, and counted together."""
    app, handler = make_app(redis_url=cluster.url), FailingHandler()
    desk = Desk(app, clock, declare(app, queue_name, handler, shards_count=9), handler, cluster.nodes[0].admin)
    desk.kill([{"id": n} for n in range(40)])
    desk.fail([{"id": n} for n in range(40, 60)])

    assert 20 == desk.queue.waiting.run_now(everything=True)
    assert 20 == desk.queue.waiting.delete(filter={"least_count": "0"})
    assert 40 == desk.queue.morgue.requeue(everything=True)
    assert 40 == desk.queue.waiting.delete(range(100))
    assert {"length": 0, "morgue_length": 0, "lag": 0.0} == app.operate.stats()["total"]


@pytest.mark.parametrize("seed", mostly_nightly(range(6), 0, 1))
@pytest.mark.parametrize("merge", ["min", "max", "never"])
def test_whatever_is_done_leaves_a_sound_shard(make_desk: MakeDesk, merge: str, seed: int) -> None:
    """Whatever the order of pushes, drains, failures and actions: no key contradicts another, and no job is stuck."""
    rng = Random(seed)
    desk = make_desk(
        {"merge": merge, "batch_size": 3, "max_retry_count": 1}, claim_payloads=3, morgue=MorgueLimits(entries=9)
    )
    ids = "abcdef"

    def some() -> list[str]:
        return rng.sample(ids, rng.randint(1, 3))

    def job(job_id: str) -> dict[str, Any]:
        later = {"delay": 90} if rng.random() < 0.3 else {}
        return {"id": job_id, "payload": rng.randint(0, 4), "score": rng.randint(0, 3), **later}

    def push() -> None:
        desk.push([job(job_id) for job_id in some() for _ in range(rng.randint(1, 3))])

    def raise_in_company() -> None:
        desk.handler.meanwhile = rng.choice([None, act, push])
        raise ValueError("somebody is broken")

    def drain() -> None:
        desk.handler.failing = set(rng.sample(ids, rng.randint(0, 3)))
        desk.handler.meanwhile = rng.choice([None, raise_in_company, act, push])
        desk.drain()

    def act() -> None:
        actions = desk.queue
        choices: list[Callable[[], object]] = [
            lambda: actions.waiting.delete(some()),
            lambda: actions.waiting.run_now(everything=True),
            lambda: actions.waiting.kill(everything=True),
            lambda: actions.waiting.delete(filter={"least_count": "0"}),
            lambda: actions.morgue.requeue(some()),
            lambda: actions.morgue.requeue(everything=True),
            lambda: actions.morgue.delete(some()),
        ]
        rng.choice(choices)()

    steps: list[Callable[[], object]] = [push, push, drain, act, lambda: desk.clock.advance(rng.choice([1, 70]))]
    for _ in range(120):
        rng.choice(steps)()
        desk.state()
    desk.handler.failing, desk.handler.meanwhile = set(), None
    desk.queue.waiting.run_now(everything=True)
    desk.drain()

    assert desk.is_empty()


def _but_for_clocks(desk: Desk) -> dict[str, Any]:
    """What lies in Redis, without what differs between two servers' conversations."""
    found = desk.state()
    return {name: value for name, value in found.items() if name not in {"lease", "counters"}}

"""Clusters, Sentinels, TLS and passwords: reached by URL alone, and moved about in the middle of a drain."""

from collections.abc import Callable
from contextlib import suppress

import msgspec
import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.base.errors import BackendDenied, BackendError
from lowkiq_lambda.store.shard.keys import ShardRef
from tests.chaos.scenario import Scenario
from tests.chaos.steps import (
    IDS,
    check_that_nobody_paid,
    disturbed,
    is_empty,
    numbered,
    opened,
    push,
    shard_of,
    when_waiting,
)
from tests.kit.servers import Cluster, MakeServer, SentinelSetup, Server, TlsProxy
from tests.kit.stored import State, stored

SHARDS = 6


def on(url: str, scenario: Scenario, shards_count: int = SHARDS) -> Scenario:
    """The scenario on another server, with time for it to recover."""
    return msgspec.structs.replace(scenario, url=url, shards_count=shards_count, lease_ttl=20.0, batch_size=1)


def drain_everything(app: Lowkiq, look: Callable[[], list[State]]) -> list[State]:
    """Drain until all shards are empty, whatever the servers say meanwhile."""
    while not all(map(is_empty, look())):
        with suppress(BackendError):
            app.drain(30.0)
    return look()


def in_cluster(cluster: Cluster, scenario: Scenario) -> Callable[[], list[State]]:
    """The shards where their nodes have them."""
    shards = [shard_of(scenario, index) for index in range(scenario.shards_count)]
    return lambda: [stored(cluster.node_for(shard.keys[0]).admin, shard) for shard in shards]


def test_a_cluster_serves_all_shards(cluster: Cluster, scenario: Scenario) -> None:
    """Shards lie on all nodes, a push and a drain go to each of them, and nothing is done twice."""
    scenario = on(cluster.url, scenario)
    push(scenario, numbered(IDS, 1, 2))
    assert 3 == len({cluster.node_for(shard_of(scenario, index).keys[0]).port for index in range(SHARDS)})
    with opened(scenario) as app:
        ends = drain_everything(app, in_cluster(cluster, scenario))
    check_that_nobody_paid(scenario, ends, deliveries=1)


def test_a_slot_that_moves_mid_drain_costs_nothing(cluster: Cluster, scenario: Scenario) -> None:
    """E-40: the shard is on another node from one call to the next; MOVED is followed."""
    scenario = on(cluster.url, scenario, shards_count=1)
    push(scenario, numbered(IDS, 1, 2))
    slot = cluster.slot_of(shard_of(scenario).keys[0])
    with disturbed(scenario, (3, 6, 9), lambda: cluster.move_slot(slot, another(cluster, shard_of(scenario)))) as app:
        ends = drain_everything(app, in_cluster(cluster, scenario))
    check_that_nobody_paid(scenario, ends, deliveries=1)


def test_a_slot_that_is_half_moved_is_waited_for(cluster: Cluster, scenario: Scenario) -> None:
    """E-39, E-40: while the keys of the shard are on two nodes it says TRYAGAIN, which is no failure of a job."""
    scenario = on(cluster.url, scenario, shards_count=1)
    push(scenario, numbered(IDS, 1, 2))
    shard = shard_of(scenario)
    slot, target = cluster.slot_of(shard.keys[0]), another(cluster, shard)
    moved: list[int] = []

    def begin() -> None:
        cluster.begin_move(slot, target)
        moved.append(cluster.move_keys(slot, target, 1))

    def finish() -> None:
        if cluster.node_for(shard.keys[0]) is not target:
            cluster.move_keys(slot, target)
            cluster.end_move(slot, target)

    with disturbed(scenario, (3,), begin) as app:
        waits = when_waiting(app, finish)
        ends = drain_everything(app, in_cluster(cluster, scenario))
    assert [1] == moved
    assert waits
    check_that_nobody_paid(scenario, ends, deliveries=1)


def another(cluster: Cluster, shard: ShardRef) -> Server:
    """A node that does not have the shard."""
    owner = cluster.node_for(shard.keys[0])
    return next(node for node in cluster.nodes if node is not owner)


def test_a_failover_mid_drain_costs_nothing(sentinel: SentinelSetup, scenario: Scenario) -> None:
    """E-7, E-37, E-39: the drain finds the new primary, with the leases that it took from the old one."""
    scenario = msgspec.structs.replace(on(sentinel.url, scenario, shards_count=2), lease_ttl=3.0)
    push(scenario, numbered(IDS, 1, 2))
    with disturbed(scenario, (4,), sentinel.failover) as app:
        ends = drain_everything(
            app, lambda: [stored(sentinel.primary.admin, shard_of(scenario, index)) for index in (0, 1)]
        )
    # What was acknowledged by the old primary alone is done again.
    check_that_nobody_paid(scenario, ends, deliveries=2)


def test_a_queue_is_reached_over_tls(server: Server, scenario: Scenario) -> None:
    """rediss:// with the authority's certificate in the URL."""
    with TlsProxy(server) as proxy:
        scenario = on(proxy.url, scenario)
        push(scenario, numbered(IDS, 1, 2))
        with opened(scenario) as app:
            ends = drain_everything(app, lambda: [stored(server.admin, shard_of(scenario, i)) for i in range(SHARDS)])
    check_that_nobody_paid(scenario, ends, deliveries=1)


def test_a_certificate_of_an_unknown_authority_is_refused_in_a_sentence(server: Server, scenario: Scenario) -> None:
    """E-46: the first call says what is wrong with TLS and what to do; nothing is sent in the clear."""
    with (
        TlsProxy(server) as proxy,
        opened(on(proxy.bare_url, scenario)) as app,
        pytest.raises(BackendError, match="TLS certificate is not accepted"),
    ):
        app.push_many(app.workers[0], numbered("a", 1))


@pytest.mark.parametrize(("user", "says"), [("", "required"), (":wrong@", "invalid")])
def test_a_missing_or_wrong_password_is_said_at_once(
    make_server: MakeServer, scenario: Scenario, user: str, says: str
) -> None:
    """The error names the cause and not the password; neither push nor drain waits for it to get better."""
    server = make_server()
    server.admin.config_set("requirepass", "right")
    with opened(on(f"redis://{user}{server.host}:{server.port}/0", scenario)) as app:
        for refused in (lambda: app.push_many(app.workers[0], numbered("a", 1)), lambda: app.drain(10.0)):
            with pytest.raises(BackendDenied, match=says) as raised:
                refused()
            assert "wrong@" not in str(raised.value)


def test_a_user_who_may_not_publish_pushes_all_the_same(make_server: MakeServer, scenario: Scenario) -> None:
    """A refused message undoes nothing: the job is there, and who looks instead of listening finds it."""
    server = make_server()
    silent = on(server.add_user("silent", "~lowkiq:*", "resetchannels", "+@all"), scenario)
    with opened(silent) as app:
        (pushed,) = app.push_many(app.workers[0], numbered("a", 1))
    assert ("a", False) == (pushed.id, pushed.merged)
    assert any("notify" in str(entry["object"]) for entry in server.admin.acl_log())
    with opened(on(server.url, scenario)) as app:
        assert 1 == app.drain(10.0)["done"]

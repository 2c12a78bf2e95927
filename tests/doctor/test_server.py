"""What is told of the server itself."""

import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.operate.doctor.checkup import check_up
from lowkiq_lambda.testing import ManualClock
from tests.doctor.conftest import Set, app_on
from tests.doctor.looks import found, marks, not_ok
from tests.kit.apps import closing_app
from tests.kit.handlers import Notes
from tests.kit.servers import Cluster, MakeServer, Server
from tests.kit.waiting import eventually
from tests.kit.workers import declare, jobs_of


def test_on_a_good_server_all_promises_hold(own: Server) -> None:
    """A server with an append-only file that evicts nothing, and a queue without jobs: nothing is left to do."""
    with app_on(own.url) as app:
        declare(app, "orders", Notes())
        checked = check_up(app.operate)

    assert ("ok", []) == (checked.mark, not_ok(checked))
    assert ["", "", "", ""] == [finding.advice for finding in checked.findings if finding.section == "server"][:4]
    assert own.url.split("@")[-1] in checked.server


def test_a_password_that_operators_share_is_told(own: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the environment of this command, until somebody has an account; it never has the password."""
    with app_on(own.url) as app:
        monkeypatch.setenv("LOWKIQ_DASHBOARD_PASSWORD", "a long password")
        shared = check_up(app.operate)
        monkeypatch.setenv("LOWKIQ_DASHBOARD_ACCOUNTS", "olga:operator:another password")
        own_ones = check_up(app.operate)

    ((mark, says),) = marks(shared, "accounts")
    assert ("warning", False) == (mark, "a long password" in str(shared))
    assert "share one password" in says
    assert ["accounts"] == [need.check for need in shared.needs]
    assert [] == marks(own_ones, "accounts")


def test_an_address_that_other_programs_read_too_is_told(own: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """REDIS_URL serves if LOWKIQ_REDIS_URL is missing, and is the cache of many platforms. Nothing is broken by it."""
    monkeypatch.setenv("REDIS_URL", own.url)
    with app_on(own.url) as app:
        told = check_up(app.operate)
        monkeypatch.setenv("LOWKIQ_REDIS_URL", own.url)
        named = check_up(app.operate)

    ((mark, says),) = marks(told, "address")
    assert ("ok", True) == (mark, "REDIS_URL" in says)
    assert [] == marks(named, "address")


def test_s9_e42_a_server_that_evicts_breaks_promises(own: Server, settings: Set) -> None:
    """S-9, E-42: with a limit of memory jobs, leases and tokens are lost; without one that is still to come."""
    with app_on(own.url) as app:
        settings(maxmemory_policy="allkeys-lru")
        without = check_up(app.operate)
        settings(maxmemory="1gb")
        limited = check_up(app.operate)

    ((mark, says),) = marks(without, "eviction")
    assert ("warning", True) == (mark, "as soon as a maxmemory is set" in says)
    ((mark, says),) = marks(limited, "eviction")
    assert ("broken", True) == (mark, "maxmemory-policy is allkeys-lru: it evicts keys" in says)
    assert ("broken", [1, 2, 3, 4]) == (limited.mark, not_ok(limited))


def test_a_full_memory_is_told_before_it_is_full(own: Server, settings: Set) -> None:
    """Above four fifths it is a warning; from its limit on pushes are refused, and everything else is still told."""
    with app_on(own.url) as app:
        worker = declare(app, "orders", Notes())
        worker.push_many(jobs_of("ab"))
        settings(maxmemory=int(own.admin.info("memory")["used_memory"] * 1.15))
        nearly = check_up(app.operate)
        settings(maxmemory=500_000)
        full = check_up(app.operate)

    assert ["warning"] == [mark for mark, _ in marks(nearly, "memory")]
    ((mark, says),) = marks(full, "memory")
    assert ("broken", True) == (mark, says.endswith("its maxmemory: pushes are refused, drains go on"))
    assert [("ok", "the server has orders as the code declares them")] == marks(full, "declarations")
    assert 2 in not_ok(full)


def test_what_a_crash_loses_follows_from_the_settings(own: Server, settings: Set) -> None:
    """What the server is asked, and not what is hoped for, decides."""
    told = []
    with app_on(own.url) as app:
        for fsync in ("always", "everysec", "no"):
            settings(appendfsync=fsync)
            told += found(app, "durability")

    assert ["ok", "ok", "warning"] == [mark for mark, _ in told]
    assert ["loses nothing", "loses the last second", "some 30 s"] == [
        next(part for part in ("loses nothing", "loses the last second", "some 30 s") if part in says)
        for _, says in told
    ]


def test_replicas_are_told_and_a_replica_is_no_server_for_jobs(
    own: Server, settings: Set, make_server: MakeServer
) -> None:
    """A failover loses what no replica has; who was given a replica's URL is told that it refuses writes."""
    settings(repl_diskless_sync_delay=0)
    replica = make_server()
    replica.admin.replicaof(*own.address)
    eventually(lambda: own.admin.info("replication").get("slave0", {}).get("state") == "online")
    try:
        with app_on(own.url) as app:
            ((mark, says),) = found(app, "durability")
        with app_on(replica.url) as app:
            ((_, role),) = found(app, "role")
    finally:
        replica.admin.replicaof("NO", "ONE")

    assert ("warning", True) == (mark, "a failover to one of 1 replica loses what that has not got yet" in says)
    assert role.startswith("the node is a replica")


def test_who_may_not_ask_is_told_where_to_look(own: Server) -> None:
    """E-42: without INFO, CONFIG, MEMORY and SCAN, as managed servers have it, each of these lines is "not known"."""
    rights = ("~lowkiq:*", "&lowkiq:*", "+@all", "-info", "-config", "-memory", "-scan", "-acl", "-cluster")
    with app_on(own.url) as app:
        declare(app, "orders", Notes()).push_many(jobs_of("ab"))
    with app_on(own.add_user("poor", *rights)) as app:
        declare(app, "orders", Notes())
        checked = check_up(app.operate)

    unknown = {finding.check for finding in checked.findings if finding.mark == "unknown"}
    assert {"version", "user", "eviction", "memory", "durability", "other queues"} == unknown
    assert all(finding.advice for finding in checked.findings if finding.check in {"version", "eviction", "memory"})
    (memory,) = checked.memory
    assert ("estimated", {"waiting": 2 * 106}, 0) == (memory.how, memory.bytes, memory.sampled)
    assert [("ok", "the server has orders as the code declares them")] == marks(checked, "declarations")
    assert "poor:secret" not in str(checked)


def test_a_clock_that_disagrees_is_told(own: Server) -> None:
    """A time that is computed here means another moment there."""
    with closing_app(Lowkiq(Config(redis_url=own.url), clock=ManualClock(1_000_000_000.0))) as app:
        ((mark, says),) = found(app, "clock")

    assert ("warning", True) == (mark, "the server's clock is" in says and "ahead of this machine's" in says)


def test_each_node_of_a_cluster_is_looked_at(cluster: Cluster) -> None:
    """What is so of all is one line; what is so of one has its address, and queues are found wherever they lie."""
    second = cluster.nodes[1]
    second.admin.config_set("maxmemory-policy", "volatile-lru")
    try:
        with app_on(cluster.url) as app:
            declare(app, "doctor-on-a-cluster", Notes(), shards_count=6).push_many(jobs_of("abcdef"))
            checked = check_up(app.operate)
    finally:
        second.admin.config_set("maxmemory-policy", "noeviction")

    evictions = [finding for finding in checked.findings if finding.check == "eviction"]
    assert [2, 1] == sorted((finding.about.count(":") for finding in evictions), reverse=True)
    assert [f"{second.host}:{second.port}"] == [finding.about for finding in evictions if finding.mark == "warning"]
    assert ["ok"] == [mark for mark, _ in marks(checked, "cluster")]
    (memory,) = [view for view in checked.memory if view.queue == "doctor-on-a-cluster"]
    assert ("sampled", 6, 6) == (memory.how, memory.sampled, memory.shards)
    assert memory.bytes["waiting"] > 0
    assert any("doctor-on-a-cluster as the code declares" in says for _, says in marks(checked, "declarations"))

"""The servers that the tests stand on do what the tests believe of them."""

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import redis
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.retry import Retry
from redis.sentinel import Sentinel

from tests.kit.process_states import lives
from tests.kit.servers import Cluster, FaultProxy, MakeServer, SentinelSetup, Server, TlsProxy
from tests.kit.servers.fault_proxy import commands_in
from tests.kit.waiting import eventually

ONCE = Retry(NoBackoff(), 0)


@pytest.fixture
def key() -> str:
    """A key of this test's own."""
    return f"key-{uuid4().hex}"


@pytest.fixture
def client(fault_proxy: FaultProxy) -> Iterator[redis.Redis]:
    """A client behind the fault proxy that sends everything once and waits half a second for each answer."""
    with redis.Redis(port=fault_proxy.port, retry=ONCE, socket_timeout=0.5) as connected:
        yield connected


def test_a_started_server_answers(server: Server, key: str) -> None:
    """When the fixture is there, so is the server."""
    with redis.Redis.from_url(server.url) as connected:
        connected.set(key, 1)

    assert b"1" == server.admin.get(key)


def test_data_that_was_answered_survives_a_kill(make_server: MakeServer) -> None:
    """With appendonly and appendfsync always, SIGKILL loses nothing, and port and URL stay the same."""
    server = make_server(appendonly=True)
    url = server.url
    server.admin.set("key", "kept")

    server.kill()
    assert not server.is_running
    server.start()

    assert (b"kept", url) == (server.admin.get("key"), server.url)


def test_data_without_appendonly_dies_with_the_server(make_server: MakeServer) -> None:
    """Without appendonly a restart begins with nothing."""
    server = make_server()
    server.admin.set("key", "lost")

    server.restart()

    assert server.admin.get("key") is None


def test_a_frozen_server_answers_after_its_thaw(make_server: MakeServer) -> None:
    """A request to a frozen server is not lost: it is performed later."""
    server = make_server()
    with redis.Redis(port=server.port, retry=ONCE, socket_timeout=0.5) as connected:
        connected.ping()
        with server.frozen(), pytest.raises(redis.TimeoutError):
            connected.set("key", "late")

    assert eventually(lambda: server.admin.get("key") == b"late")


def test_a_server_has_the_memory_it_was_given(make_server: MakeServer) -> None:
    """With maxmemory and noeviction a write that needs more is refused."""
    server = make_server(maxmemory="3mb")

    def fill() -> None:
        for number in range(10_000):
            server.admin.set(f"key{number}", "x" * 1_000)

    with pytest.raises(redis.OutOfMemoryError):
        fill()


def test_a_user_has_the_rights_it_was_given_also_after_a_restart(make_server: MakeServer) -> None:
    """An ACL user reaches its own keys, no others, and comes back with the server."""
    server = make_server()
    url = server.add_user("narrow", "~mine:*", "+@all")
    server.restart()

    with redis.Redis.from_url(url) as connected:
        connected.set("mine:1", 1)
        with pytest.raises(redis.exceptions.NoPermissionError):
            connected.set("other", 1)


def test_a_server_that_cannot_start_shows_its_log() -> None:
    """A start that fails says what the server said."""
    server = Server(settings=["no-such-setting 1"])

    with pytest.raises(AssertionError, match="no-such-setting"), server:
        pass

    assert not server.data_dir.exists()


def test_a_server_takes_another_port_where_its_own_is_taken(server: Server) -> None:
    """Somebody who was quicker on the port does not fail the start."""
    late = Server()
    late.port = server.port

    with late:
        assert late.port != server.port
        assert late.admin.ping()


def test_servers_end_with_a_killed_test_process() -> None:
    """SIGKILL of the process that started a server leaves neither the server nor its folder."""
    program = "from tests.kit.servers import Server; s = Server().start(); print(s.pid, s.data_dir); input()"
    with subprocess.Popen(
        [sys.executable, "-u", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pid, folder = process.stdout.readline().split(maxsplit=1)
        assert lives(int(pid))
        process.send_signal(signal.SIGKILL)

    eventually(lambda: not lives(int(pid)), what="the end of the server")
    eventually(lambda: not Path(folder.strip()).exists(), what="the removal of the folder")


def test_a_cluster_serves_all_slots_by_different_nodes(cluster: Cluster) -> None:
    """Keys land on all three nodes, and a client that knows one node finds them."""
    names = [f"{uuid4().hex}" for _ in range(60)]
    host, port = cluster.addresses[0]
    with RedisCluster(host, port) as connected:
        for name in names:
            connected.set(name, 1)

    assert {node.port for node in cluster.nodes} == {cluster.node_for(name).port for name in names}
    assert b"1" == cluster.node_for(names[0]).admin.get(names[0])


def test_a_slot_moves_with_its_keys(cluster: Cluster, key: str) -> None:
    """While a slot moves its old node answers ASK for keys that went, afterwards MOVED."""
    source, slot = cluster.node_for(key), cluster.slot_of(key)
    target = next(node for node in cluster.nodes if node is not source)
    source.admin.set(key, "moved")
    # A key of a test before may have the same slot.
    held = source.admin.execute_command("CLUSTER", "COUNTKEYSINSLOT", slot)

    cluster.begin_move(slot, target)
    assert held == cluster.move_keys(slot, target)
    with pytest.raises(redis.exceptions.AskError):
        source.admin.get(key)
    cluster.end_move(slot, target)
    with pytest.raises(redis.exceptions.MovedError):
        source.admin.get(key)

    assert cluster.node_for(key) is target
    assert b"moved" == cluster.client.get(key)


def test_a_cluster_is_well_again_after_a_node_was_killed(cluster: Cluster) -> None:
    """A killed node comes back with its slots."""
    cluster.nodes[1].kill()

    cluster.wait_until_ok()

    assert cluster.nodes[1].is_running


def test_an_ordered_failover_changes_the_primary(sentinel: SentinelSetup, key: str) -> None:
    """After a failover a client of the Sentinels writes to another server, and finds what was replicated."""
    before = sentinel.primary
    before.admin.set(key, "kept")
    before.admin.wait(1, 5_000)

    after = sentinel.failover()

    watcher = Sentinel(sentinel.sentinel_addresses)
    with watcher.master_for(sentinel.service) as connected:
        assert after is not before
        assert b"kept" == connected.get(key)
        assert after.pid == connected.info("server")["process_id"]


def test_the_replica_takes_over_from_a_killed_primary(sentinel: SentinelSetup) -> None:
    """A primary that died is replaced; healed, it is back, and one of the servers is the primary of all others."""
    before = sentinel.primary

    after = sentinel.kill_primary()
    assert after is not before
    sentinel.heal()

    # Which one: a machine that stalls for a second makes the Sentinels fail over once more.
    roles = Counter(str(server.admin.info("replication")["role"]) for server in sentinel.servers)
    assert {"master": 1, "slave": len(sentinel.servers) - 1} == roles


def test_three_sentinels_agree_on_a_failover() -> None:
    """With three Sentinels two must agree that the primary is dead, and they do."""
    with SentinelSetup(sentinels=3) as setup:
        assert setup.kill_primary() is setup.servers[1]


def test_tls_ends_at_the_proxy(server: Server, key: str) -> None:
    """A client that trusts the authority reaches the server through TLS."""
    with TlsProxy(server) as proxy, redis.Redis.from_url(proxy.url) as connected:
        connected.set(key, "x" * 1_000_000)

        assert 1_000_000 == server.admin.strlen(key)


def test_a_certificate_of_an_unknown_authority_is_refused(server: Server) -> None:
    """Without the authority's file, or for another name, the handshake fails."""
    with (
        TlsProxy(server) as proxy,
        redis.Redis.from_url(proxy.bare_url, retry=ONCE) as connected,
        pytest.raises(redis.ConnectionError, match="CERTIFICATE_VERIFY_FAILED"),
    ):
        connected.ping()
    with (
        TlsProxy(server, names=("elsewhere.example",)) as proxy,
        redis.Redis.from_url(proxy.url, retry=ONCE) as connected,
        pytest.raises(redis.ConnectionError, match="Hostname mismatch"),
    ):
        connected.ping()


def test_a_proxy_without_faults_is_transparent(client: redis.Redis, key: str) -> None:
    """What goes through the proxy arrives as it was, both ways, however long."""
    value = os.urandom(1_000_000)
    client.set(key, value)

    assert value == client.get(key)


def test_a_dropped_reply_belongs_to_a_request_that_was_performed(
    server: Server, fault_proxy: FaultProxy, client: redis.Redis, key: str
) -> None:
    """The client sees its connection end, once; the server has counted the request."""
    client.ping()
    fault_proxy.drop_reply_after(key.encode())

    with pytest.raises(redis.ConnectionError):
        client.incr(key)
    fault_proxy.wait_dropped()
    assert b"1" == server.admin.get(key)

    assert 2 == client.incr(key)


def test_a_reply_can_be_dropped_more_than_once(fault_proxy: FaultProxy, key: str) -> None:
    """A client that sends again performs again: the lost replies are as many as ordered."""
    fault_proxy.drop_reply_after(key.encode(), times=2)

    with redis.Redis(port=fault_proxy.port, retry=Retry(NoBackoff(), 5)) as connected:
        assert 3 == connected.incr(key)
    fault_proxy.wait_dropped()
    fault_proxy.wait_dropped()


def test_a_hanging_reply_belongs_to_a_request_that_was_performed(
    server: Server, fault_proxy: FaultProxy, client: redis.Redis, key: str
) -> None:
    """The client waits until its own timeout; the server has counted the request."""
    fault_proxy.hang_reply_after(key.encode())

    with pytest.raises(redis.TimeoutError):
        client.incr(key)
    fault_proxy.wait_dropped()

    assert b"1" == server.admin.get(key)


def test_a_dropped_request_is_not_performed(
    server: Server, fault_proxy: FaultProxy, client: redis.Redis, key: str
) -> None:
    """The client sees its connection end; the server has seen nothing."""
    client.ping()
    fault_proxy.drop_request(key.encode())

    with pytest.raises(redis.ConnectionError):
        client.incr(key)
    fault_proxy.wait_dropped()

    assert server.admin.get(key) is None


def test_a_marker_is_found_wherever_a_long_request_is_cut(
    server: Server, fault_proxy: FaultProxy, client: redis.Redis, key: str
) -> None:
    """A marker at the end of a request that arrives in many pieces is met."""
    marker = uuid4().hex
    client.ping()
    fault_proxy.drop_reply_after(marker.encode())

    with pytest.raises(redis.ConnectionError):
        client.set(key, "x" * 300_000 + marker)

    assert 300_000 + len(marker) == server.admin.strlen(key)


def test_copies_of_requests_come_when_they_are_asked_for(
    server: Server, fault_proxy: FaultProxy, client: redis.Redis, key: str
) -> None:
    """The client has its answers; the copies are performed in their order, behind what others did meanwhile."""
    long = "x" * 200_000
    fault_proxy.hold_copy(key.encode(), b"first")
    client.append(key, "none")
    client.append(key, f"first{long}")
    fault_proxy.hold_copy(key.encode(), b"two")
    client.append(key, "two")
    assert [[[b"APPEND", key.encode(), f"first{long}".encode()]], [[b"APPEND", key.encode(), b"two"]]] == [
        commands_in(request) for request in fault_proxy.held
    ]
    server.admin.set(key, "other")

    assert b":200010\r\n:200013\r\n" == fault_proxy.deliver()
    assert f"otherfirst{long}two".encode() == server.admin.get(key)
    assert [] == fault_proxy.held


def test_refused_connections_are_accepted_again_on_the_same_port(fault_proxy: FaultProxy, client: redis.Redis) -> None:
    """A refusal is the system's own; after it the same URL works."""
    client.ping()
    fault_proxy.refuse()
    assert client.ping()
    fault_proxy.cut()
    with pytest.raises(redis.ConnectionError, match="refused"):
        client.ping()

    fault_proxy.accept()

    assert client.ping()


def test_a_delay_holds_a_request_back(fault_proxy: FaultProxy, client: redis.Redis) -> None:
    """A delay longer than the client's timeout is a timeout; healed, the proxy is quick again."""
    fault_proxy.delay(5.0)
    with pytest.raises(redis.TimeoutError):
        client.ping()

    fault_proxy.heal()

    assert client.ping()


def test_a_cut_ends_a_waiting_call(fault_proxy: FaultProxy, server: Server, key: str) -> None:
    """A client that waits for the server sees its connection end at once."""
    with redis.Redis(port=fault_proxy.port, retry=ONCE, socket_timeout=30) as waiting:
        seen: list[Exception] = []

        def wait() -> None:
            try:
                waiting.blpop([key], timeout=25)
            except redis.ConnectionError as error:
                seen.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        eventually(lambda: server.admin.info("clients")["blocked_clients"], what="the waiting client")
        fault_proxy.cut()
        thread.join(10)

    assert 1 == len(seen)

"""Clients of every kind of server."""

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from redis import BlockingConnectionPool
from redis.cluster import RedisCluster
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import MaxConnectionsError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.sentinel import SentinelConnectionPool

from lowkiq_lambda.base.errors import (
    BackendDenied,
    BackendError,
    BackendUnavailable,
    ConfigError,
    PoolExhausted,
)
from lowkiq_lambda.store.server.connection import Client, connect, is_cluster
from lowkiq_lambda.store.server.faults import REDIS_ERRORS, translate
from lowkiq_lambda.store.server.pool import has_to_reopen, is_open, take_connection
from tests.kit.servers import Cluster, FaultProxy, SentinelSetup, Server, TlsProxy
from tests.kit.waiting import eventually

SECRET = "secret"  # noqa: S105 - of the tests' users


def client_of(url: str, *, timeout: float = 5.0, max_connections: int = 2) -> Client:
    """A client with a small pool, which is not waited for long."""
    return connect(url, max_connections=max_connections, timeout=timeout, pool_timeout=0.1)


def single_of(url: str, *, timeout: float = 5.0, max_connections: int = 2) -> redis.Redis:
    """The same for one server."""
    client = client_of(url, timeout=timeout, max_connections=max_connections)
    assert not is_cluster(client)
    return client


def error_of(client: Client) -> BackendError:
    """What a call of the client fails with, as ours."""
    with pytest.raises(REDIS_ERRORS) as caught:
        client.get("any")
    return translate(caught.value)


def own_connections(client: Client, server: Server) -> list[dict[str, str]]:
    """What the server lists of this client's connections."""
    number = client.client_id()
    return [listed for listed in server.admin.client_list() if listed["id"] == str(number)]


def test_plain_server_is_reached(server: Server, queue_name: str) -> None:
    """redis:// gives a client of one server, whose answers are bytes."""
    client = client_of(server.url)

    client.set(queue_name, "день")

    assert not is_cluster(client)
    assert client.get(queue_name) == "день".encode()


def test_a_whole_client_that_another_thread_has_made_as_well_closes_nothing(server: Server) -> None:
    """Threads that call its methods first may each make one, as Python 3.12 locks nothing: all but one are dropped."""
    client = single_of(server.url)
    connection = take_connection(client.connection_pool)
    connection.send_command("CLIENT", "ID")
    number = connection.read_response()
    assert client.ping()

    # As the thread that comes last does with the first's.
    del vars(client)["_whole"]

    connection.send_command("CLIENT", "ID")
    assert number == connection.read_response()


def test_the_client_of_one_server_is_its_pool_and_all_of_redis_pys(server: Server, queue_name: str) -> None:
    """Whatever redis-py's client has it has, with the connections of the one pool; and closing it closes them."""
    client = single_of(server.url, max_connections=1)

    client.set(queue_name, 1)
    assert 2 == client.incr(queue_name)
    assert client.connection_pool is client.pipeline().connection_pool
    assert not hasattr(client, "no_such_command")
    (listed,) = own_connections(client, server)
    client.close()
    eventually(lambda: listed["id"] not in {other["id"] for other in server.admin.client_list()})


def test_connection_is_named_after_the_library(server: Server) -> None:
    """An operator sees in CLIENT LIST whose connections these are; RESP2 needs no handshake."""
    (listed,) = own_connections(client_of(server.url), server)

    assert (listed["lib-name"], listed["name"], listed["resp"]) == ("lowkiq_lambda", "", "2")


def test_client_name_is_shown(server: Server) -> None:
    """A name for the client is what CLIENT LIST shows."""
    client = connect(server.url, max_connections=1, timeout=5, pool_timeout=1, client_name="drain-1")

    (listed,) = own_connections(client, server)

    assert listed["name"] == "drain-1"


def test_socket_sends_at_once_and_keeps_alive(server: Server) -> None:
    """Small requests are not held back, and a peer that vanished is noticed."""
    client = single_of(server.url)
    connection = client.connection_pool.get_connection()
    sock: socket.socket = connection._sock  # type: ignore[assignment]  # it is connected

    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert sock.gettimeout() == 5
    client.connection_pool.release(connection)


def test_user_without_other_rights_may_connect(make_server: Callable[..., Server]) -> None:
    """To connect needs no right beyond those for the scripts themselves."""
    url = make_server().add_user("poor", "~*", "-@all", "+eval")

    assert client_of(url).eval("return 7", 0) == 7


def test_server_is_connected_to_at_the_first_call() -> None:
    """A process may start before its server does: only a call needs it."""
    client = client_of("redis://127.0.0.1:1")

    assert type(error_of(client)) is BackendUnavailable


@pytest.mark.parametrize("loss", ["drop", "hang"])
def test_lost_reply_is_not_asked_for_again(loss: str, server: Server, fault_proxy: FaultProxy, queue_name: str) -> None:
    """E-44: a call whose answer is lost was performed once, and the caller is told that it is unknown."""
    client = client_of(fault_proxy.url, timeout=0.3)
    lose = fault_proxy.drop_reply_after if loss == "drop" else fault_proxy.hang_reply_after
    lose(queue_name.encode())

    with pytest.raises((RedisConnectionError, RedisTimeoutError)):
        client.incr(queue_name)

    assert server.admin.get(queue_name) == b"1"
    assert client.incr(queue_name) == 2


def test_lost_reply_in_a_pipeline_is_not_asked_for_again(
    server: Server, fault_proxy: FaultProxy, queue_name: str
) -> None:
    """E-44: the same holds for many calls at once."""
    pipe = single_of(fault_proxy.url).pipeline(transaction=False)
    pipe.incr(queue_name)
    pipe.incr(queue_name)
    fault_proxy.drop_reply_after(queue_name.encode())

    with pytest.raises(RedisConnectionError):
        pipe.execute()

    assert server.admin.get(queue_name) == b"2"


def test_cluster_sends_nothing_twice(cluster: Cluster, queue_name: str) -> None:
    """E-44: a cluster's client does not send again what a silent node may have taken."""
    client = client_of(cluster.url, timeout=0.3)
    client.get(queue_name)
    node = cluster.node_for(queue_name)

    with node.frozen(), pytest.raises(RedisTimeoutError):
        client.incr(queue_name)

    assert node.admin.get(queue_name) in {None, b"1"}


def test_connection_that_was_closed_is_opened_anew(server: Server, queue_name: str) -> None:
    """An idle connection that the server closed costs no error: it is opened before anything is sent."""
    client = client_of(server.url, max_connections=1)
    number = client.client_id()

    assert server.admin.client_kill_filter(_id=str(number)) == 1

    assert client.incr(queue_name) == 1
    assert client.client_id() != number


def test_restarted_server_is_found_again(make_server: Callable[..., Server]) -> None:
    """E-39: the same client serves when its server is back."""
    server = make_server()
    client = client_of(server.url)
    client.ping()
    server.kill()
    assert type(error_of(client)) is BackendUnavailable

    server.start()

    assert client.ping()


def test_exhausted_pool_is_an_error_of_its_own(server: Server) -> None:
    """E-43: who gets no connection within pool_timeout is told so; a free one serves again."""
    client = single_of(server.url, max_connections=1)
    taken = client.connection_pool.get_connection()

    assert type(error_of(client)) is PoolExhausted

    client.connection_pool.release(taken)
    assert client.ping()


def test_threads_share_the_pool(server: Server, queue_name: str) -> None:
    """L-51: more threads than connections wait for one another."""
    client = connect(server.url, max_connections=2, timeout=5, pool_timeout=10)
    threads = [threading.Thread(target=lambda: [client.incr(queue_name) for _ in range(50)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert client.get(queue_name) == b"400"
    assert not is_cluster(client)
    assert isinstance(client.connection_pool, BlockingConnectionPool)
    assert len(client.connection_pool._connections) <= 2


def test_exhausted_pool_of_a_cluster(cluster: Cluster, queue_name: str) -> None:
    """E-43: a cluster's client tells an exhausted pool from a dead node, and keeps its connections."""
    client = client_of(cluster.url, max_connections=1)
    assert isinstance(client, RedisCluster)
    client.get(queue_name)
    pool = client.get_redis_connection(client.get_node_from_key(queue_name)).connection_pool
    taken = pool.get_connection()

    with pytest.raises(MaxConnectionsError):
        client.get(queue_name)

    assert is_open(taken)
    assert not has_to_reopen(taken)
    pool.release(taken)
    assert client.get(queue_name) is None


def test_cluster_is_reached_by_any_node(cluster: Cluster, queue_name: str) -> None:
    """redis+cluster:// gives a client that finds the node of each key, from nodes of which some are dead."""
    url = cluster.url.replace("redis+cluster://", "redis+cluster://127.0.0.1:1,")
    client = client_of(url)

    for number in range(30):
        client.set(f"{queue_name}:{number}", number)

    assert isinstance(client, RedisCluster)
    assert [client.get(f"{queue_name}:{number}") for number in range(30)] == [
        str(number).encode() for number in range(30)
    ]


def test_moved_slot_is_followed(cluster: Cluster, queue_name: str) -> None:
    """E-40: a slot that moved to another node costs no error."""
    client = client_of(cluster.url)
    client.set(queue_name, "1")
    before = cluster.node_for(queue_name)
    target = next(node for node in cluster.nodes if node is not before)

    cluster.move_slot(cluster.slot_of(queue_name), target)
    try:
        assert client.incr(queue_name) == 2
    finally:
        cluster.move_slot(cluster.slot_of(queue_name), before)


def test_dead_cluster_is_unavailable() -> None:
    """A cluster is asked for its nodes at once: what goes wrong is one of our errors."""
    with pytest.raises(BackendUnavailable, match="Connection refused"):
        client_of("redis+cluster://127.0.0.1:1,127.0.0.1:2")


def test_single_server_is_no_cluster(server: Server) -> None:
    """A cluster's URL at a single server is answered with the form to use."""
    with pytest.raises(BackendError, match="give its URL as redis://"):
        client_of(f"redis+cluster://{server.host}:{server.port}")


def test_node_of_a_cluster_is_no_single_server(cluster: Cluster) -> None:
    """A single server's URL at a cluster is answered with the form to use, for keys that lie elsewhere."""
    client = client_of(cluster.nodes[0].url)
    key = next(key for key in map(str, range(100)) if cluster.node_for(key) is not cluster.nodes[0])

    with pytest.raises(ResponseError, match=r"\d+ \S+:\d+") as caught:
        client.get(key)

    assert "redis+cluster://" in str(translate(caught.value))


def test_sentinels_name_the_primary(sentinel: SentinelSetup, queue_name: str) -> None:
    """redis+sentinel:// gives a client of the primary, from Sentinels of which some are dead."""
    url = sentinel.url.replace("redis+sentinel://", "redis+sentinel://127.0.0.1:1,")
    client = client_of(url)

    client.set(queue_name, "1")

    assert sentinel.primary.admin.get(queue_name) == b"1"
    assert sentinel.sentinels[0].admin.ping()


def test_client_follows_a_failover(sentinel: SentinelSetup, queue_name: str) -> None:
    """E-39: after a failover the same client talks to the new primary; in between it is unavailable."""
    client = client_of(sentinel.url, timeout=1)
    client.set(queue_name, "1")

    sentinel.failover()

    failed: list[BackendError] = []

    def write() -> bool:
        try:
            client.set(queue_name, "2")
            # The old primary takes writes until it is told that it is none any more.
            return sentinel.primary.admin.get(queue_name) == b"2"
        except REDIS_ERRORS as error:
            failed.append(translate(error))
            return False

    eventually(write, timeout=30)
    assert {type(error) for error in failed} <= {BackendUnavailable}
    sentinel.heal()


def test_sentinel_pool_is_bounded(sentinel: SentinelSetup) -> None:
    """E-43: behind Sentinels too a caller waits for a connection, and is told when there is none."""
    client = single_of(sentinel.url, max_connections=1)
    taken = client.connection_pool.get_connection()

    assert type(error_of(client)) is PoolExhausted

    client.connection_pool.release(taken)
    assert client.ping()


def test_unknown_service_is_unavailable(sentinel: SentinelSetup) -> None:
    """A service that the Sentinels do not know (yet) is told by its name."""
    error = error_of(client_of(sentinel.url.replace(f"/{sentinel.service}", "/elsewhere")))

    assert type(error) is BackendUnavailable
    assert "elsewhere" in str(error)


def test_server_is_no_sentinel(server: Server) -> None:
    """A Sentinel's URL at a server is answered with the form to use."""
    error = error_of(client_of(f"redis+sentinel://{server.host}:{server.port}/service"))

    assert "no Sentinel" in str(error)


def test_tls_is_spoken(server: Server, queue_name: str) -> None:
    """rediss:// checks the server's certificate and then serves as without TLS."""
    with TlsProxy(server) as proxy:
        client = client_of(proxy.url)

        client.set(queue_name, "1")

        assert server.admin.get(queue_name) == b"1"
        client.close()


def test_unknown_authority_is_told(server: Server) -> None:
    """E-46: a certificate that nobody vouches for is refused in a sentence, and not tried again."""
    with TlsProxy(server) as proxy:
        error = error_of(client_of(proxy.bare_url))

    assert type(error) is BackendError
    assert "ssl_ca_certs" in str(error)


def test_certificate_for_another_name_is_told(server: Server) -> None:
    """E-46: a certificate of another host is refused, unless that check is switched off."""
    with TlsProxy(server, names=("elsewhere.example",)) as proxy:
        assert "Hostname mismatch" in str(error_of(client_of(proxy.url)))
        client = client_of(f"{proxy.url}&ssl_check_hostname=false")
        assert client.ping()
        client.close()


def test_certificate_check_can_be_switched_off(server: Server) -> None:
    """A server of one's own may be trusted without a certificate's chain."""
    with TlsProxy(server) as proxy:
        client = client_of(f"{proxy.bare_url}?ssl_cert_reqs=none")
        assert client.ping()
        client.close()


def test_tls_server_without_tls_is_told(server: Server) -> None:
    """E-46: no TLS where the server wants it is an error, not a hang."""
    with TlsProxy(server) as proxy:
        assert isinstance(error_of(client_of(f"redis://localhost:{proxy.port}", timeout=1)), BackendUnavailable)


def test_slow_handshake_ends_in_time(server: Server) -> None:
    """E-46: who never answers the handshake is given up after the timeout."""
    error = error_of(client_of(f"rediss://{server.host}:{server.port}", timeout=0.2))

    assert type(error) is BackendUnavailable
    assert "Timeout" in str(error)


def test_sentinels_are_asked_by_tls(sentinel: SentinelSetup) -> None:
    """rediss+sentinel:// speaks TLS with the Sentinels too."""
    with TlsProxy(sentinel.sentinels[0]) as proxy:
        client = single_of(f"rediss+sentinel://localhost:{proxy.port}/{sentinel.service}?ssl_ca_certs={proxy.ca_path}")
        pool = client.connection_pool
        assert isinstance(pool, SentinelConnectionPool)

        assert pool.get_master_address() == sentinel.primary.address
        assert issubclass(pool.connection_class, redis.SSLConnection)


def test_cluster_speaks_tls(make_server: Callable[..., Server], queue_name: str) -> None:
    """rediss+cluster:// speaks TLS with the nodes that the cluster announces."""
    server = make_server(settings=["cluster-enabled yes"])
    with TlsProxy(server) as proxy:
        server.admin.config_set("cluster-announce-port", proxy.port)
        server.admin.execute_command("CLUSTER ADDSLOTSRANGE", 0, 16_383)
        eventually(lambda: server.admin.execute_command("CLUSTER INFO")["cluster_state"] == "ok")
        client = client_of(f"rediss+cluster://localhost:{proxy.port}?ssl_ca_certs={proxy.ca_path}")

        assert client.incr(queue_name) == 1
        assert server.admin.get(queue_name) == b"1"
        client.close()


def test_missing_files_are_told(tmp_path: Path) -> None:
    """E-46: an authority that is not there is an error at start, by its name."""
    with pytest.raises(ConfigError, match=r"ssl_ca_certs='.*missing.pem' is refused: it does not exist"):
        client_of(f"rediss://db?ssl_ca_certs={tmp_path}/missing.pem")


@pytest.mark.parametrize("scheme", ["redis", "redis+cluster"])
def test_refused_login_is_told_without_the_password(scheme: str, server: Server, cluster: Cluster) -> None:
    """P10, E-45: a wrong password is a denial; neither error nor client shows it."""
    host, port = server.address if scheme == "redis" else cluster.addresses[0]
    url = f"{scheme}://nobody:{SECRET}@{host}:{port}"

    if scheme == "redis":
        client = client_of(url)
        error = error_of(client)
        assert SECRET not in repr(client)
    else:
        with pytest.raises(BackendDenied) as caught:
            client_of(url)
        error = caught.value

    assert type(error) is BackendDenied
    assert SECRET not in str(error)


def test_user_and_password_sign_in(make_server: Callable[..., Server]) -> None:
    """L-49: who the URL names is who the server sees."""
    url = make_server().add_user("drain", "~*", "+@all")

    assert client_of(url).acl_whoami() == "drain"


@pytest.mark.parametrize("kind", ["server", "cluster", "sentinel"])
def test_subscriber_hears(kind: str, request: pytest.FixtureRequest, queue_name: str) -> None:
    """The same clients serve for channels: what one publishes another hears."""
    setup: Server | Cluster | SentinelSetup = request.getfixturevalue(kind)
    client = client_of(setup.url)
    subscriber = client.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]  # redis-py has no types
    subscriber.subscribe(queue_name)
    subscriber.get_message(timeout=5)

    client.publish(queue_name, "ding")

    heard = eventually(lambda: subscriber.get_message(timeout=1))
    assert heard["data"] == b"ding"
    subscriber.close()

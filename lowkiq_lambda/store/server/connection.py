"""The one place where a client of the server is made.

Nothing is sent twice unnoticed: redis-py's own retries are off, and who calls decides what may be sent again.
What redis-py does before it sends stays: an idle connection that the other side closed is opened anew.
"""

import os
import random
from functools import partial
from pathlib import Path
from queue import Empty, LifoQueue
from typing import Any, Final, TypeAlias

import redis
from redis import BlockingConnectionPool, Connection, SSLConnection
from redis.backoff import NoBackoff
from redis.client import PubSub
from redis.cluster import ClusterNode, RedisCluster
from redis.driver_info import DriverInfo
from redis.exceptions import MaxConnectionsError
from redis.retry import Retry
from redis.sentinel import (
    Sentinel,
    SentinelManagedConnection,
    SentinelManagedSSLConnection,
)

from lowkiq_lambda.clock import Clock, SystemClock
from lowkiq_lambda.errors import ConfigError
from lowkiq_lambda.protocols import Credentials
from lowkiq_lambda.store.server.address import Address, parse_address
from lowkiq_lambda.store.server.credentials import SignIns
from lowkiq_lambda.store.server.faults import REDIS_ERRORS, translate

SingleClient: TypeAlias = redis.Redis
ClusterClient: TypeAlias = RedisCluster
Client: TypeAlias = SingleClient | ClusterClient
Subscription: TypeAlias = PubSub

_SENTINEL_TIMEOUT: Final = 1.0
"""Seconds at most that one Sentinel may take: the others can answer as well."""


def connect(  # noqa: PLR0913 - all of it by keyword
    url: str,
    *,
    max_connections: int,
    timeout: float,
    pool_timeout: float,
    retries: int = 0,
    client_name: str | None = None,
    credentials: Credentials | None = None,
    clock: Clock | None = None,
) -> Client:
    """A client for the URL's server, to be shared by threads.

    A call waits at most `timeout` for its answer, and before that `pool_timeout` for one of
    `max_connections` (to each node, in a cluster). A server or Sentinel is connected to at the first call; a
    cluster is asked for its nodes at once, and what goes wrong with that is a BackendError. ConfigError: the
    URL cannot work.

    `retries` above 0 lets redis-py send a call again: only for calls that change nothing. `client_name` is
    what CLIENT LIST shows; the ACL must allow CLIENT SETNAME then. `credentials` gives user and password to each
    connection, also when it is opened anew, which happens before it is twelve hours old by the `clock`; those of
    Sentinels stand in the URL.
    """
    address = parse_address(url)
    _check_files(address)
    options = {
        "max_connections": max_connections,
        "timeout": pool_timeout,
        "queue_class": _FreeConnections,
        "client_name": client_name,
        **_login(address, credentials, clock or SystemClock()),
        **_socket_options(timeout),
        **address.tls_options,
    }
    retry = Retry(NoBackoff(), retries)
    match address.kind:
        case "server":
            return _server(address, retry, options)
        case "sentinel":
            return _sentinel(address, retry, options, clock or SystemClock())
        case "cluster":
            return _cluster(address, retry, options)


def subscription(client: Client) -> Subscription:
    """A subscription to no channel yet, on the server or on any node of the cluster: a message reaches all its nodes.

    Raises what redis-py does.
    """
    if isinstance(client, ClusterClient):
        # Spreads load, protects nothing.
        client = client.get_redis_connection(random.choice(client.get_primaries()))  # noqa: S311 - as said above
    opened: Subscription = client.pubsub()
    return opened


class _FreeConnections(LifoQueue[Any]):
    """The free connections of a pool; tells an empty pool from a server that cannot be reached.

    With `sign_ins`, a connection that has been signed in for too long is closed: the pool opens it anew.
    """

    def __init__(self, maxsize: int, sign_ins: SignIns | None = None) -> None:
        super().__init__(maxsize)
        self._sign_ins = sign_ins

    def get(self, block: bool = True, timeout: float | None = None) -> Any:  # noqa: ANN401, FBT001, FBT002 - as inherited from Queue
        try:
            connection = super().get(block, timeout)
        except Empty:
            raise MaxConnectionsError("No connection became free in time.") from None
        if self._sign_ins is not None and connection is not None and self._sign_ins.is_over(connection):
            connection.disconnect()
        return connection


def _begin(sign_ins: SignIns, connection: Any) -> None:  # noqa: ANN401 - any of redis-py's kinds of connection
    sign_ins.sign_in(connection, connection.on_connect)


class _Cluster(RedisCluster):
    """Signs its connections in as `SignIns` does."""

    def on_connect(self, connection: Any) -> None:  # noqa: ANN401 - any of redis-py's kinds of connection
        """Begin the connection."""
        begin = partial(super().on_connect, connection)
        sign_ins = connection.credential_provider
        if isinstance(sign_ins, SignIns):
            sign_ins.sign_in(connection, begin)
        else:
            begin()


def _login(address: Address, credentials: Credentials | None, clock: Clock) -> dict[str, Any]:
    if credentials is None:
        return {"username": address.username, "password": address.password}
    if address.username or address.password:
        raise ConfigError("User and password stand in redis_url and come from credentials: take one away.")
    sign_ins = SignIns(credentials, clock)
    return {
        "credential_provider": sign_ins,
        # A cluster's client has a function of its own there.
        **({} if address.kind == "cluster" else {"redis_connect_func": partial(_begin, sign_ins)}),
        "queue_class": partial(_FreeConnections, sign_ins=sign_ins),
    }


def _socket_options(timeout: float) -> dict[str, Any]:
    return {
        "socket_timeout": timeout,
        "socket_connect_timeout": timeout,
        "socket_keepalive": True,
        # The older protocol: one handshake less, and nothing arrives unasked, so an idle connection that has
        # something to read is known to be broken.
        "protocol": 2,
        "driver_info": DriverInfo(name="lowkiq_lambda", lib_version=None),
    }


def _server(address: Address, retry: Retry, options: dict[str, Any]) -> redis.Redis:
    host, port = address.hosts[0]
    connection_class = SSLConnection if address.tls else Connection
    pool = BlockingConnectionPool(
        host=host, port=port, db=address.db, connection_class=connection_class, retry=retry, **options
    )
    return redis.Redis.from_pool(pool)


def _sentinel(address: Address, retry: Retry, options: dict[str, Any], clock: Clock) -> redis.Redis:
    from lowkiq_lambda.store.server.primary import SentinelPool  # noqa: PLC0415 - imported lazily: only for Sentinels

    sentinel = Sentinel(
        address.hosts,
        sentinel_kwargs={
            **_socket_options(min(options["socket_timeout"], _SENTINEL_TIMEOUT)),
            **({"ssl": True, **address.tls_options} if address.tls else {}),
            "username": address.sentinel_username,
            "password": address.sentinel_password,
            "retry": Retry(NoBackoff(), 0),
        },
    )
    pool = SentinelPool(
        address.service,
        sentinel,
        clock,
        connection_class=SentinelManagedSSLConnection if address.tls else SentinelManagedConnection,
        db=address.db,
        retry=retry,
        **options,
    )
    return redis.Redis.from_pool(pool)


def _cluster(address: Address, retry: Retry, options: dict[str, Any]) -> RedisCluster:
    host, port = address.hosts[0]
    shown_host = f"[{host}]" if ":" in host else host
    try:
        # Only with a URL does redis-py let us choose the class of the pools.
        return _Cluster(
            url=f"{'rediss' if address.tls else 'redis'}://{shown_host}:{port}",
            startup_nodes=[ClusterNode(*other) for other in address.hosts[1:]],
            connection_pool_class=BlockingConnectionPool,
            retry=retry,
            **options,
        )
    except REDIS_ERRORS as error:
        raise translate(error) from error


def _check_files(address: Address) -> None:
    for name in ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile"):
        path = address.tls_options.get(name)
        if isinstance(path, str) and not os.access(path, os.R_OK):
            why = "cannot be read" if Path(path).exists() else "does not exist"
            raise ConfigError(f"redis_url's option {name}={path!r} is refused: it {why}", setting="redis_url")

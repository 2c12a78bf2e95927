"""The one place where a client of the server is made.

Commands are not sent again unnoticed: redis-py's own retries are off, and the caller decides which calls may be sent
again. The work of redis-py before a send stays: it opens an idle connection anew if the other side closed it.
"""

import os
import random
from collections.abc import Iterable
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import msgspec
from redis.backoff import NoBackoff
from redis.connection import Connection, ConnectionPool, SSLConnection
from redis.retry import Retry

from lowkiq_lambda.base.address import Address, parse_address
from lowkiq_lambda.base.clock import Clock, SystemClock
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.settings.protocols import Credentials, RedisPlug
from lowkiq_lambda.store.server.pool import (
    FreeConnections,
    Pool,
    socket_options,
    take_connection,
    tls_options,
)

if TYPE_CHECKING:
    from redis.client import Redis
    from redis.cluster import RedisCluster
    from typing_extensions import TypeIs

SingleClient: TypeAlias = "Redis"
Client: TypeAlias = "SingleClient | RedisCluster"


class PooledClient:
    """A client of one server: its pool, which is all that a drain or a push needs of it.

    redis-py's own client, half of what redis-py imports, is made for the first call of one of its methods.
    """

    def __init__(self, pool: Pool) -> None:
        self.connection_pool = pool

    @cached_property
    def _whole(self) -> "Redis":
        from redis.client import Redis  # noqa: PLC0415 - as said above

        # The pool is not the client's to close: two threads may make one each, and drop the first.
        return Redis(connection_pool=self.connection_pool)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any attribute of redis-py's client
        return getattr(self._whole, name)

    def close(self) -> None:
        """Close all connections of the pool."""
        self.connection_pool.disconnect()


def is_cluster(client: Client) -> "TypeIs[RedisCluster]":
    """Whether it is the client of a cluster, and not of one server."""
    return not isinstance(client, PooledClient) and hasattr(client, "nodes_manager")


class Subscription(msgspec.Struct, frozen=True):
    """A connection that hears messages, and nothing else, until it is ended."""

    connection: Connection
    pool: ConnectionPool

    def end(self) -> None:
        """Close it, and give its place in the pool back."""
        self.connection.disconnect()
        self.pool.release(self.connection)


def connect(  # noqa: PLR0913 - all of it by keyword
    url: str,
    *,
    max_connections: int,
    timeout: float,
    pool_timeout: float,
    client_name: str | None = None,
    credentials: Credentials | None = None,
    clock: Clock | None = None,
    client: RedisPlug | None = None,
) -> Client:
    """A client for the URL's server, to be shared by threads; or the `client` one, if nothing but these limits count.

    A call waits at most `timeout` for its answer, and before that `pool_timeout` for one of
    `max_connections` (to each node, in a cluster). A server or Sentinel is connected to at the first call; a
    cluster is asked for its nodes at once, and what goes wrong with that is a BackendError. ConfigError: the
    URL cannot work.

    `client_name` is what CLIENT LIST shows; the ACL must allow CLIENT SETNAME then. `credentials` gives user and
    password to each connection, also when it is opened anew, which happens before it is twelve hours old by the
    `clock`; those of Sentinels stand in the URL.
    """
    if client is not None:
        from lowkiq_lambda.store.server.given_client import given_client  # noqa: PLC0415 - imported lazily: a plug

        return given_client(client, connections=max_connections, timeout=timeout)
    address = parse_address(url)
    _check_files(address)
    options = {
        "max_connections": max_connections,
        "timeout": pool_timeout,
        "queue_class": FreeConnections,
        "client_name": client_name,
        **_login(address, credentials, clock or SystemClock()),
        **socket_options(timeout),
        **(tls_options(address.tls_options) if address.tls else {}),
    }
    match address.kind:
        case "server":
            return _server(address, options)
        case "sentinel":
            from lowkiq_lambda.store.server.primary import primary  # noqa: PLC0415 - imported lazily: only for Sentinels

            return primary(address, options, clock or SystemClock())
        case "cluster":
            from lowkiq_lambda.store.server.cluster import cluster  # noqa: PLC0415 - imported lazily: only for clusters

            return cluster(address, options)


def subscribe(client: Client, channels: Iterable[bytes]) -> Subscription:
    """Ask the server, or any node of the cluster, for a subscription: a message reaches all its nodes.

    `pipelines.next_message` reads the messages, first a confirmation for each channel. Raises the errors of redis-py.
    """
    if is_cluster(client):
        # Spreads load, protects nothing.
        client = client.get_redis_connection(random.choice(client.get_primaries()))  # noqa: S311 - as said above
    subscription = Subscription(take_connection(client.connection_pool), client.connection_pool)
    # A user's client may ask for health checks: the answer to their PING would be taken for a message.
    subscription.connection.health_check_interval = 0
    try:
        subscription.connection.send_command("SUBSCRIBE", *channels)
    except BaseException:
        subscription.end()
        raise
    return subscription


def _login(address: Address, credentials: Credentials | None, clock: Clock) -> dict[str, Any]:
    if credentials is None:
        return {"username": address.username, "password": address.password}
    if address.username or address.password:
        raise ConfigError("User and password stand in redis_url and come from credentials: take one away.")
    from lowkiq_lambda.store.server.credentials import SignIns  # noqa: PLC0415 - imported lazily: only with a plug

    sign_ins = SignIns(credentials, clock)
    return {
        "credential_provider": sign_ins,
        # A cluster's client has a function of its own there.
        **({} if address.kind == "cluster" else {"redis_connect_func": sign_ins.begin}),
        "queue_class": partial(FreeConnections, is_over=sign_ins.is_over),
    }


def _server(address: Address, options: dict[str, Any]) -> "Redis":
    host, port = address.hosts[0]
    connection_class = SSLConnection if address.tls else Connection
    pool = Pool(  # type: ignore[no-untyped-call]  # redis-py has no types here
        host=host, port=port, db=address.db, connection_class=connection_class, retry=Retry(NoBackoff(), 0), **options
    )
    return cast("Redis", PooledClient(pool))


def _check_files(address: Address) -> None:
    for name in ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile"):
        path = address.tls_options.get(name)
        if isinstance(path, str) and not os.access(path, os.R_OK):
            why = "cannot be read" if Path(path).exists() else "does not exist"
            raise ConfigError(f"redis_url's option {name}={path!r} is refused: it {why}", setting="redis_url")

"""What the releases 5 to 8 of redis-py do differently: nothing else has to ask which one is there.

A library that demands the newest client cannot be installed beside another that forbids it, such as Celery's.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import redis.connection
from redis import BlockingConnectionPool, Connection
from redis.backoff import NoBackoff
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry

try:
    from redis.driver_info import DriverInfo
except ImportError:  # before 7.2
    _NAME: Mapping[str, object] = {"lib_name": "lowkiq_lambda", "lib_version": None}
else:
    _NAME = {"driver_info": DriverInfo(name="lowkiq_lambda", lib_version=None)}

_TELLS_IF_OPEN: Final = hasattr(Connection, "is_connected")  # since 8.0
_TELLS_IF_TO_REOPEN: Final = hasattr(Connection, "should_reconnect")  # since 7.1
_WAITS_FOR_RESPONSES: Final = "timeout" in (Connection.read_response.__kwdefaults__ or {})  # since 8.0
_COUNTS_BY_RETRY: Final = hasattr(Retry, "get_retries")  # since 6.0
# Until 5.3 it wants a name, of which nothing comes; since then it wants none, and says so by a decorator.
_NOTHING: Final = () if hasattr(BlockingConnectionPool.get_connection, "__wrapped__") else ("",)


def protocol_of(options: Mapping[str, Any]) -> int:
    """The version of the protocol that a connection with these options speaks: by default 3 since 8.0."""
    chosen: Any = options.get("protocol") or getattr(redis.connection, "DEFAULT_RESP_VERSION", 2)
    return int(chosen)


def name_options() -> dict[str, Any]:
    """What CLIENT LIST shows as the library of a connection."""
    return dict(_NAME)


def tls_options(chosen: Mapping[str, str | bool]) -> dict[str, str | bool]:
    """The options of a TLS connection, with the check of the server's name, which is off by default before 6.0."""
    return {"ssl_check_hostname": chosen.get("ssl_cert_reqs") != "none", **chosen}


def take_connection(pool: Any) -> Connection:  # noqa: ANN401 - a pool, or what `super` gives in one
    """One of the pool, which makes it ready."""
    connection: Connection = pool.get_connection(*_NOTHING)
    return connection


def is_open(connection: Connection) -> bool:
    """Whether it is connected, as far as is known without asking the server."""
    if _TELLS_IF_OPEN:
        return connection.is_connected
    return getattr(connection, "_sock", None) is not None


def has_to_reopen(connection: Any) -> bool:  # noqa: ANN401 - any of redis-py's kinds
    """Whether the server announced that it goes away."""
    return _TELLS_IF_TO_REOPEN and bool(connection.should_reconnect())


def next_response(connection: Connection, seconds: float) -> Any:  # noqa: ANN401 - the answer of any command
    """What comes next on the connection, which stays open: raises TimeoutError when nothing does for so long."""
    if _WAITS_FOR_RESPONSES:
        return connection.read_response(timeout=seconds, disconnect_on_error=False)
    if not connection.can_read(timeout=seconds):
        raise RedisTimeoutError("Nothing came.")
    return connection.read_response(disconnect_on_error=False)


def without_cluster_retries() -> dict[str, Any]:
    """What keeps a cluster's client from sending anything twice."""
    retry = {"retry": Retry(NoBackoff(), 0)}
    return retry if _COUNTS_BY_RETRY else {**retry, "cluster_error_retry_attempts": 0}


def pools_with(options: Mapping[str, Any], pool_class: type[BlockingConnectionPool]) -> Callable[..., Any]:
    """The class for a cluster's pools, with these options: its client hands on no more than its release knows."""
    return partial(pool_class, **options)

"""Connections that are shared by threads. Each call takes one, so it costs little to take one that is ready.

The differences between the releases 5 to 8 of redis-py are here, too: nothing else has to ask which one is there. A
library that demands the newest client cannot be installed beside another that forbids it, such as Celery's.
"""

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from queue import Full
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any, Final

import redis.connection
from redis.backoff import NoBackoff
from redis.connection import BlockingConnectionPool, Connection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import MaxConnectionsError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry

from lowkiq_lambda.base.clock import at_most

if TYPE_CHECKING:
    from redis.connection import ConnectionInterface

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


class Pool(BlockingConnectionPool):
    """Hands out a connection that is ready, and takes it back, without redis-py's records of both, which cost more.

    Any other is made ready as redis-py does it.
    """

    def get_connection(self, command_name: object = None, *keys: object, **options: object) -> Connection:
        """As inherited; the arguments mean nothing, there as here."""
        del command_name, keys, options
        self._checkpid()
        connection: Connection | None = self.pool.get(timeout=self.timeout)
        try:
            if connection is not None and _is_ready(connection):
                return connection
        except BaseException:
            self.pool.put_nowait(connection)
            raise
        self.pool.put_nowait(connection)
        return take_connection(super())

    def release(self, connection: "ConnectionInterface") -> None:
        """As inherited."""
        self._checkpid()
        if self.owns_connection(connection) and not has_to_reopen(connection):  # type: ignore[arg-type]  # redis-py has no types here
            self.pool.put_nowait(connection)
        else:
            super().release(connection)  # type: ignore[no-untyped-call]  # as above


def _is_ready(connection: Connection) -> bool:
    """Whether it is open, and nothing came on it unasked, such as that the other side closed it."""
    try:
        return is_open(connection) and not connection.can_read()
    except (RedisConnectionError, RedisTimeoutError, OSError):
        return False


class FreeConnections:
    """The free connections of a pool, the last one given back first; tells an empty pool from an unreachable server.

    It has the methods of a `queue.LifoQueue` that redis-py calls, but only a caller that has to wait takes a lock.
    While callers wait, a connection that is given back goes to the caller that has waited longest, so a thread in a
    busy loop does not keep connections from others. A connection for which `is_over` is true is closed: the pool opens
    it anew.
    """

    def __init__(self, maxsize: int, is_over: Callable[[Connection], bool] | None = None) -> None:
        self.queue: list[Any] = []
        self._maxsize = maxsize
        self._is_over = is_over
        self._waiting: deque[_Waiter] = deque()
        # Its thread may come here again, in a signal's handler.
        self._lock = RLock()

    def get(self, block: bool = True, timeout: float | None = None) -> Any:  # noqa: ANN401, FBT001, FBT002 - as of Queue
        """A connection, None for one that is yet to be made. Raises MaxConnectionsError after so many seconds."""
        del block
        try:
            connection = self.queue.pop()
        except IndexError:
            connection = self._wait(timeout)
        if self._is_over is not None and connection is not None and self._is_over(connection):
            connection.disconnect()
        return connection

    def put_nowait(self, connection: Any) -> None:  # noqa: ANN401 - what get returns
        """Give it back. Raises Full."""
        if len(self.queue) >= self._maxsize:
            raise Full
        self.queue.append(connection)
        # Read last, as a caller that waits counts itself before its last look.
        if self._waiting:
            self._hand_out()

    def _wait(self, timeout: float | None) -> Any:  # noqa: ANN401 - what get returns
        waiter = _Waiter()
        with self._lock:
            self._waiting.append(waiter)
        try:
            self._hand_out()
            waiter.wait(timeout)
        except BaseException:
            if not self._leave(waiter):
                self.put_nowait(waiter.connection)
            raise
        if self._leave(waiter):
            raise MaxConnectionsError("No connection became free in time.")
        return waiter.connection

    def _hand_out(self) -> None:
        """Give what is free to those that wait, in their order."""
        with self._lock, suppress(IndexError):
            while self._waiting:
                waiter = self._waiting.popleft()
                try:
                    # One that did not have to wait may have taken it just now.
                    waiter.take(self.queue.pop())
                except BaseException:
                    self._waiting.appendleft(waiter)
                    raise

    def _leave(self, waiter: "_Waiter") -> bool:
        """Wait no longer; whether it had to do without."""
        with self._lock:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
                return True
            return False


class _Waiter:
    """One that waits for a connection."""

    def __init__(self) -> None:
        self.connection: Any = None
        self._has_it = Lock()
        self._has_it.acquire()

    def take(self, connection: Any) -> None:  # noqa: ANN401 - what get returns
        self.connection = connection
        self._has_it.release()

    def wait(self, timeout: float | None) -> None:
        self._has_it.acquire(timeout=at_most(timeout))


def socket_options(timeout: float) -> dict[str, Any]:
    """The socket options that are the same for all connections, to servers and Sentinels."""
    return {
        "socket_timeout": timeout,
        "socket_connect_timeout": timeout,
        "socket_keepalive": True,
        # The older protocol: one handshake less, and nothing arrives unasked, so an idle connection that has
        # something to read is known to be broken.
        "protocol": 2,
        **name_options(),
    }


def protocol_of(options: Mapping[str, Any]) -> int:
    """The version of the protocol that a connection with these options speaks: by default 3 since 8.0."""
    version: Any = options.get("protocol") or getattr(redis.connection, "DEFAULT_RESP_VERSION", 2)
    return int(version)


def name_options() -> dict[str, Any]:
    """The name that CLIENT LIST shows as the library of a connection."""
    return dict(_NAME)


def tls_options(options: Mapping[str, str | bool]) -> dict[str, str | bool]:
    """The options of a TLS connection, with the check of the server's name, which is off by default before 6.0."""
    return {"ssl_check_hostname": options.get("ssl_cert_reqs") != "none", **options}


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
    """The next response on the connection, which stays open: raises TimeoutError if none comes in time."""
    if _WAITS_FOR_RESPONSES:
        return connection.read_response(timeout=seconds, disconnect_on_error=False)
    if not connection.can_read(timeout=seconds):
        raise RedisTimeoutError("Nothing came.")
    return connection.read_response(disconnect_on_error=False)


def without_cluster_retries() -> dict[str, Any]:
    """The options that keep a cluster's client from sending a command twice."""
    retry = {"retry": Retry(NoBackoff(), 0)}
    return retry if _COUNTS_BY_RETRY else {**retry, "cluster_error_retry_attempts": 0}


def pools_with(options: Mapping[str, Any], pool_class: type[BlockingConnectionPool]) -> Callable[..., Any]:
    """The class for a cluster's pools, with these options: its client hands on no more than its release knows."""
    return partial(pool_class, **options)

"""Connections that are shared by threads. Each call takes one, so it costs little to take one that is ready."""

from collections.abc import Callable
from contextlib import suppress
from queue import Full
from threading import Condition
from time import monotonic
from typing import Any

from redis import BlockingConnectionPool, Connection
from redis.connection import ConnectionInterface
from redis.driver_info import DriverInfo
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import MaxConnectionsError
from redis.exceptions import TimeoutError as RedisTimeoutError


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
        return super().get_connection()  # type: ignore[no-any-return, no-untyped-call]  # redis-py has no types here

    def release(self, connection: ConnectionInterface) -> None:
        """As inherited."""
        self._checkpid()
        if self.owns_connection(connection) and not connection.should_reconnect():  # type: ignore[arg-type]  # as above
            self.pool.put_nowait(connection)
        else:
            super().release(connection)  # type: ignore[no-untyped-call]  # as above


def _is_ready(connection: Connection) -> bool:
    """Whether it is open, and nothing came on it unasked, such as that the other side closed it."""
    try:
        return connection.is_connected and not connection.can_read()
    except (RedisConnectionError, RedisTimeoutError, OSError):
        return False


class FreeConnections:
    """The free connections of a pool, the last one given back first; tells an empty pool from a server out of reach.

    It has what redis-py asks of a `queue.LifoQueue`, but only a caller that has to wait takes a lock. A connection of
    which `is_over` says so is closed: the pool opens it anew.
    """

    def __init__(self, maxsize: int, is_over: Callable[[Connection], bool] | None = None) -> None:
        self.queue: list[Any] = []
        self._maxsize = maxsize
        self._is_over = is_over
        self._waiting = 0
        self._given_back = Condition()

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
            with self._given_back:
                self._given_back.notify()

    def _wait(self, timeout: float | None) -> Any:  # noqa: ANN401 - what get returns
        ends_at = None if timeout is None else monotonic() + timeout
        with self._given_back:
            self._waiting += 1
            try:
                while True:
                    with suppress(IndexError):
                        return self.queue.pop()
                    left = None if ends_at is None else ends_at - monotonic()
                    if left is not None and left <= 0:
                        raise MaxConnectionsError("No connection became free in time.")
                    self._given_back.wait(left)
            finally:
                self._waiting -= 1


def socket_options(timeout: float) -> dict[str, Any]:
    """What is the same for all connections, to servers and Sentinels."""
    return {
        "socket_timeout": timeout,
        "socket_connect_timeout": timeout,
        "socket_keepalive": True,
        # The older protocol: one handshake less, and nothing arrives unasked, so an idle connection that has
        # something to read is known to be broken.
        "protocol": 2,
        "driver_info": DriverInfo(name="lowkiq_lambda", lib_version=None),
    }

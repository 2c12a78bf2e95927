"""Connections that are shared by threads. Each call takes one, so it costs little to take one that is ready."""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Full
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any

from redis import BlockingConnectionPool, Connection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import MaxConnectionsError
from redis.exceptions import TimeoutError as RedisTimeoutError

from lowkiq_lambda.base.clock import at_most
from lowkiq_lambda.store.server.client_releases import has_to_reopen, is_open, name_options, take_connection

if TYPE_CHECKING:
    from redis.connection import ConnectionInterface


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
    """The free connections of a pool, the last one given back first; tells an empty pool from a server out of reach.

    It has what redis-py asks of a `queue.LifoQueue`, but only a caller that has to wait takes a lock. While callers
    wait, what is given back goes to the one that has waited longest: a thread in a busy loop keeps it from nobody. A
    connection of which `is_over` says so is closed: the pool opens it anew.
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
    """What is the same for all connections, to servers and Sentinels."""
    return {
        "socket_timeout": timeout,
        "socket_connect_timeout": timeout,
        "socket_keepalive": True,
        # The older protocol: one handshake less, and nothing arrives unasked, so an idle connection that has
        # something to read is known to be broken.
        "protocol": 2,
        **name_options(),
    }

"""Connections to the current primary, as the Sentinels name it."""

from threading import Lock
from typing import Any, Final

import redis
from redis.backoff import NoBackoff
from redis.connection import Connection
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelConnectionPool, SentinelManagedConnection, SentinelManagedSSLConnection

from lowkiq_lambda.base.address import Address
from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.store.server.faults import REDIS_ERRORS
from lowkiq_lambda.store.server.pool import Pool, socket_options, tls_options

ASKED_EVERY: Final = 1.0
"""Seconds after which a Sentinel is asked again, with the next call: one round trip for all of them."""
ASKED_AGAIN: Final = 10.0
"""Seconds until then if none of them answers: open connections go on meanwhile."""
_SENTINEL_TIMEOUT: Final = 1.0
"""Seconds at most that one Sentinel may take: the others can answer as well."""


def primary(address: Address, options: dict[str, Any], clock: Clock) -> redis.Redis:
    """A client for the primary that the Sentinels name, with the options that all kinds of clients share."""
    sentinel = Sentinel(
        address.hosts,
        sentinel_kwargs={
            **socket_options(min(options["socket_timeout"], _SENTINEL_TIMEOUT)),
            **({"ssl": True, **tls_options(address.tls_options)} if address.tls else {}),
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
        retry=Retry(NoBackoff(), 0),
        **options,
    )
    return redis.Redis.from_pool(pool)


class SentinelPool(SentinelConnectionPool, Pool):
    """Connections to the primary; a caller waits for a free one.

    In a failover that somebody orders both sides live, and nothing breaks: the one that was the primary takes writes,
    which are lost, until a Sentinel makes a replica of it, after ten seconds or so. So the Sentinels are asked now and
    then, and connections to another than the one that they name are closed.
    """

    def __init__(self, service: str, sentinel: Sentinel, clock: Clock, **options: object) -> None:
        self._clock = clock
        self._asks_at = 0.0
        self._asking = Lock()
        super().__init__(service, sentinel, **options)  # type: ignore[no-untyped-call]  # it has no types

    def get_connection(self, command_name: object = None, *keys: object, **options: object) -> Connection:
        """As inherited, to the primary of a second ago or later; the arguments mean nothing, there as here."""
        del command_name, keys, options
        # A new connection asks anyway, and one thread asks for all.
        if self.master_address and self._clock.monotonic() >= self._asks_at and self._asking.acquire(blocking=False):
            try:
                self._ask()
            finally:
                self._asking.release()
        return super().get_connection()

    def disconnect(self, inuse_connections: bool = True) -> None:  # noqa: FBT001, FBT002 - as inherited
        """As inherited, also for releases of redis-py before 7.1, which can only close all."""
        if inuse_connections:
            super().disconnect()
            return
        for connection in [*filter(None, self.pool.queue)]:
            connection.disconnect()

    def _ask(self) -> None:
        pause = ASKED_EVERY
        try:
            # Idle connections to another server are closed by this, busy ones when they are given back.
            self.get_master_address()  # type: ignore[no-untyped-call]  # redis-py has no types here
        except REDIS_ERRORS:
            pause = ASKED_AGAIN
        self._asks_at = self._clock.monotonic() + pause

"""Database connections of the threads that perform jobs: each batch gives its own back, as each request does."""

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.db import close_old_connections, connections


class ConnectionsOfBatch:
    """A server middleware. Without it a thread keeps its connection while it idles, and one that broke for ever."""

    def __call__(self, _worker: object, _batch: object, call_next: Callable[..., Any]) -> object:
        """Close connections that broke or are older than CONN_MAX_AGE, before the batch and behind it."""
        close_old_connections()
        try:
            return call_next()
        finally:
            close_old_connections()

    async def awaited(self, _worker: object, _batch: object, call_next: Callable[..., Awaitable[Any]]) -> object:
        """Around coroutine handlers: each batch has a thread for its queries, and connections of its own there.

        In one thread for all of them a batch that ends would close the connection that another one reads from.
        """
        async with ThreadSensitiveContext():
            try:
                return await call_next()
            finally:
                # The thread ends with the context.
                await sync_to_async(connections.close_all)()

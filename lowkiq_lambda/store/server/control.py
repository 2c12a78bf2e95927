"""A server as its owner sees it: whether it answers, which process it is, and how it is stopped."""

from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

from lowkiq_lambda.store.server.connection import Client, connect
from lowkiq_lambda.store.server.faults import REDIS_ERRORS


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A server's report on its process."""

    pid: int
    binary: str
    version: str
    loading: bool
    """The server reads its data and does not serve clients yet."""


def look_at(url: str, timeout: float) -> ServerProcess | None:
    """The server at the URL; None if none answers within `timeout` seconds, or refuses the password."""
    with closing(_client(url, timeout)) as client:
        try:
            # Answered while the server loads, too.
            info: dict[str, Any] = client.info()
        except REDIS_ERRORS:
            return None
    return ServerProcess(
        pid=int(info["process_id"]),
        binary=str(info.get("executable", "")),
        version=str(info.get("valkey_version") or info["redis_version"]),
        loading=bool(info.get("loading")),
    )


def shut_down(url: str, timeout: float) -> None:
    """Ask the server to write what it keeps and to end; it may still be at it when this returns."""
    with closing(_client(url, timeout)) as client, suppress(*REDIS_ERRORS):
        client.execute_command("SHUTDOWN")  # type: ignore[no-untyped-call]  # redis-py has no types


def _client(url: str, timeout: float) -> Client:
    return connect(url, max_connections=1, timeout=timeout, pool_timeout=timeout)

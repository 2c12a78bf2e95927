"""The server of a test process: an embedded one in a folder of its own, or one that the environment names."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from lowkiq_lambda.base.errors import BackendError, ConfigError
from lowkiq_lambda.settings.config import Config
from lowkiq_lambda.store.server.connection import Client, connect
from lowkiq_lambda.store.server.faults import translated

URL_VARIABLE: Final = "LOWKIQ_TEST_REDIS_URL"
_TIMEOUT: Final = 10.0


class OwnServer:
    """A database that held nothing when it was opened: it may be emptied. `open_server` makes it."""

    def __init__(self, url: str, client: Client) -> None:
        self.url = url
        self._client = client

    def clear(self) -> None:
        """Empty it. Raises BackendError."""
        with translated():
            self._client.flushdb()

    def settings_for(self, config: Config) -> Config:
        """The settings, but for those that reach out: no drain is started elsewhere by a push."""
        return config.evolve(redis_url=self.url, redis=None, credentials=None, wake_function=None)


@contextmanager
def open_server(folder: Path | None = None, url: str | None = None, process_number: int = 0) -> Iterator[OwnServer]:
    """A server for tests: an embedded one in a folder (default: a temporary one), or the server at `url`.

    Each test process has a database of the server at `url`: the number in the URL plus that of the process (0, 1, …).
    The database is emptied in the end. Raises ConfigError if it holds keys in the beginning, or is unreachable;
    EmbeddedServerError or ImportError if no server can be started.
    """
    if url:
        with _client_of(_with_database(url, process_number)) as (own, client):
            _refuse_full(own, client)
            server = OwnServer(own, client)
            yield server
            server.clear()
        return
    from lowkiq_lambda.providers.embedded.server import open_embedded  # noqa: PLC0415 - needs an extra

    with (
        TemporaryDirectory(prefix="lowkiq") as temporary,
        open_embedded(folder or Path(temporary), os.environ.get("LOWKIQ_EMBEDDED_SERVER")) as embedded,
        _client_of(embedded.url) as (own, client),
    ):
        yield OwnServer(own, client)


@contextmanager
def _client_of(url: str) -> Iterator[tuple[str, Client]]:
    client = connect(url, max_connections=2, timeout=_TIMEOUT, pool_timeout=_TIMEOUT)
    try:
        yield url, client
    finally:
        client.close()


def _with_database(url: str, more: int) -> str:
    parts = urlsplit(url)
    database = parts.path.strip("/") or "0"
    if not database.isdecimal():
        raise ConfigError(f"{URL_VARIABLE}: the database of a URL is a number, not {database!r}.")
    return urlunsplit(parts._replace(path=f"/{int(database) + more}"))


def _refuse_full(url: str, client: Client) -> None:
    number = urlsplit(url).path.strip("/")
    try:
        with translated():
            size = client.dbsize()
    except BackendError as error:
        raise ConfigError(f"{URL_VARIABLE}, database {number}: {error}") from error
    if size:
        raise ConfigError(
            f"{URL_VARIABLE}: its database {number} holds something, and tests empty theirs: name one that is empty. "
            "If tests that were broken off have left it, empty it with FLUSHDB."
        )

"""Servers that `embedded:` leaves on a folder."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import redis

from lowkiq_lambda.providers.embedded.folder import ServerFolder
from tests.kit.waiting import eventually


def server_lives(folder: ServerFolder) -> bool:
    """Whether a server runs on the folder."""
    if not folder.path.exists():
        return False
    with folder.exclusive():
        return folder.server_lives()


def await_written(url: str) -> None:
    """Wait until a SIGKILL of the server loses nothing.

    With `appendfsync everysec` it answers before it writes, for up to 2 s, while its disk is busy with a sync.
    """

    def is_written() -> bool:
        with redis.Redis.from_url(url) as client, suppress(redis.ConnectionError):
            return bool(client.info("persistence")["aof_buffer_length"] == 0)
        return False  # it starts just now

    eventually(is_written, timeout=30, what="all written")


def end_server(path: Path) -> None:
    """Kill a server that was left on the folder."""
    folder = ServerFolder(path)
    if server_lives(folder):
        os.kill(int((path / "server.pid").read_text()), signal.SIGKILL)
        eventually(lambda: not server_lives(folder), what="the server's end")

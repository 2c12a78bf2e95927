"""A disk that is full: the server may not write to its append-only file, and refuses each write until there is room."""

import resource
import threading
from contextlib import suppress
from typing import Final

import redis

from tests.kit.servers import Server
from tests.kit.waiting import eventually

SECONDS: Final = 0.3
_BALLAST: Final = "ballast of a full disk"
_pause = threading.Event()


class FullDisk:
    """Lets the server's files grow no more. It has to write them with `appendfsync everysec`: else it would exit."""

    name = "fill the disk"

    def __init__(self, server: Server) -> None:
        self._server = server

    def happen(self) -> bool:
        """For a moment."""
        self.fill()
        try:
            _pause.wait(SECONDS)
        finally:
            self.make_room()
        return True

    def fill(self) -> None:
        """Return when the server refuses writes."""
        self._limit(max(path.stat().st_size for path in self._server.data_dir.glob("appendonlydir/*.incr.aof")))

        def refuses() -> bool:
            with suppress(redis.RedisError):
                self._server.admin.set(_BALLAST, "more")
            return self._last_write() == "err"

        eventually(refuses, what="a server that refuses writes")

    def make_room(self) -> None:
        """Return when it takes them again."""
        self._limit(resource.RLIM_INFINITY)
        eventually(lambda: self._last_write() == "ok", timeout=30.0, what="a server that takes writes")

    def _limit(self, size: int) -> None:
        resource.prlimit(self._server.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def _last_write(self) -> str:
        return str(self._server.admin.info("persistence")["aof_last_write_status"])

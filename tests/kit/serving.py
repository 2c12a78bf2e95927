"""A real web server, in a thread of the test's process."""

import socket
import threading
from types import TracebackType
from typing import Self

import uvicorn
from starlette.types import ASGIApp

from tests.kit.servers.ports import HOST


class Served:
    """Serves an ASGI app on a port of loopback inside the block."""

    def __init__(self, app: ASGIApp) -> None:
        # It listens from here on, so that nobody has to wait until the server is up.
        self._socket = socket.create_server((HOST, 0))
        self.origin = f"http://{HOST}:{self._socket.getsockname()[1]}"
        config = uvicorn.Config(
            app, lifespan="off", ws="none", loop="asyncio", log_config=None, timeout_graceful_shutdown=5
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="served")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

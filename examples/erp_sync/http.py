"""HTTP with JSON bodies: asking, and serving from a thread."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import msgspec
import uvicorn
from starlette.types import ASGIApp


class Unreachable(Exception):
    """The other side did not answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the other side said."""

    status: int
    headers: Mapping[str, str]
    """By their names in lower case."""
    body: Any


def ask(method: str, url: str, body: object = None, *, timeout: float = 5.0) -> Answer:
    """Send a request; `timeout` in seconds. Raises Unreachable."""
    parts = urlsplit(url)
    with closing(HTTPConnection(parts.hostname or "", parts.port, timeout=timeout)) as connection:
        try:
            target = f"{parts.path}?{parts.query}" if parts.query else parts.path
            connection.request(method, target, None if body is None else msgspec.json.encode(body))
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, HTTPException) as error:
            raise Unreachable(f"{method} {parts.path}: {type(error).__name__}") from error
    headers = {name.lower(): value for name, value in answer.getheaders()}
    is_json = headers.get("content-type", "").startswith("application/json")
    return Answer(answer.status, headers, msgspec.json.decode(content) if is_json else content.decode())


@contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    """Serve the app from a thread, on a free port of loopback; its URL."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
    thread = Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def free_port() -> int:
    """A port of loopback that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])

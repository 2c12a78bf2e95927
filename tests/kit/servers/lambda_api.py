"""The Lambda Runtime API for one process, on loopback: it asks for events, and posts what became of them."""

import socket
import threading
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Protocol

from tests.kit.servers.ports import HOST

_PREFIX: Final = "/2018-06-01/runtime"
_NEXT: Final = f"{_PREFIX}/invocation/next"
_INIT_ERROR: Final = f"{_PREFIX}/init/error"
_FUNCTION_ARN: Final = "arn:aws:lambda:eu-central-1:123456789012:function"


@dataclass(frozen=True)
class LambdaEvent:
    """What a process is given: its deadline is in Unix seconds."""

    request_id: str
    function_name: str
    body: bytes
    deadline_at: float

    @property
    def headers(self) -> dict[str, str]:
        """What comes with the body."""
        return {
            "Content-Type": "application/json",
            "Lambda-Runtime-Aws-Request-Id": self.request_id,
            "Lambda-Runtime-Deadline-Ms": str(int(self.deadline_at * 1_000)),
            "Lambda-Runtime-Invoked-Function-Arn": f"{_FUNCTION_ARN}:{self.function_name}",
            "Lambda-Runtime-Trace-Id": "Root=1-00000000-000000000000000000000000;Sampled=0",
        }


class Listener(Protocol):
    """Whom the API speaks for; called from its threads."""

    def next_event(self) -> LambdaEvent | None:
        """The process asks for an event: waits for one; None where none will come."""

    def posted(self, request_id: str, what: str, body: bytes) -> None:
        """The process posted a "response" or an "error" (with an empty request id one of its start)."""


class RuntimeApi:
    """Serves until it is closed."""

    def __init__(self, listener: Listener) -> None:
        class Handler(_RuntimeRequest):
            told = listener

        self._server = ThreadingHTTPServer((HOST, 0), Handler)
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="lambda-runtime-api", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Host and port, as the runtime client wants them."""
        return f"{HOST}:{self._server.server_port}"

    def close(self) -> None:
        """No further connections; those that are open end with the process."""
        self._closed = True
        self._server.socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.server_close()

    def _serve(self) -> None:
        while not self._closed:
            self._server.handle_request()


class _RuntimeRequest(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    """Each answer is one packet: a second one would wait for the first to be acknowledged."""
    told: Listener

    def do_GET(self) -> None:
        """Hand out the next event."""
        event = self.told.next_event() if self.path == _NEXT else None
        if event:
            self._answer(HTTPStatus.OK, event.body, event.headers)
        else:
            # Not merely a closed connection: the client would ask again.
            self._answer(HTTPStatus.GONE, b"{}", {"Content-Type": "application/json"})

    def do_POST(self) -> None:
        """Take what became of an event, or of the start."""
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:
            # The process was killed while it spoke: nothing was said.
            self.close_connection = True
            return
        if self.path == _INIT_ERROR:
            self.told.posted("", "error", body)
        else:
            _, request_id, what = self.path.removeprefix(_PREFIX).strip("/").split("/")
            self.told.posted(request_id, what, body)
        self._answer(HTTPStatus.ACCEPTED, b"{}", {"Content-Type": "application/json"})

    def log_message(self, *_arguments: Any) -> None:
        """Nothing is printed."""

    def _answer(self, status: HTTPStatus, body: bytes, headers: dict[str, str]) -> None:
        try:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()
        except OSError:
            # The process was killed before it could read this.
            self.close_connection = True

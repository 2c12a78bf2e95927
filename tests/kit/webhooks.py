"""A webhook that answers as it is told: a real HTTP server on loopback, in a thread."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, TypeAlias

Answer: TypeAlias = int | Literal["hangs", "drops", "dribbles"]
"""A status; or silence, a connection that ends without an answer, and an answer of which a byte comes now and then."""
_DRIBBLE = 0.05


class Webhook:
    """What it was sent, and how it answers: the first of `answers` each time, 200 when there are none left."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/services/top-secret?key=also-secret"
        self.answers: list[Answer] = []
        self.tried: list[dict[str, Any]] = []
        self.taken: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.over = threading.Event()

    def events(self) -> list[tuple[str, str]]:
        """Of what it took, the event and the check."""
        return [(message["event"], message["check"]) for message in self.taken]


@contextmanager
def webhook_server() -> Iterator[Webhook]:
    """Until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            hook.tried.append(message)
            hook.keys.append(self.headers["Idempotency-Key"])
            answer = hook.answers.pop(0) if hook.answers else 200
            if answer == "hangs":
                hook.over.wait()
            elif answer == "drops":
                self.connection.shutdown(socket.SHUT_RDWR)
            elif answer == "dribbles":
                self.wfile.write(b"HTTP/1.0 200 OK\r\n")
                while not hook.over.wait(_DRIBBLE):
                    self.wfile.write(b"X-More: 1\r\n")
            else:
                if answer == 200:
                    hook.taken.append(message)
                self.send_response(answer)
                self.end_headers()

        def log_message(self, *_args: Any) -> None:
            """Nobody reads it."""

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that gives up is what is tested."""

    with Quiet(("127.0.0.1", 0), Handler) as serving:
        hook = Webhook(serving.server_port)
        thread = threading.Thread(target=serving.serve_forever, daemon=True)
        thread.start()
        try:
            yield hook
        finally:
            hook.over.set()
            serving.shutdown()
            thread.join()

"""A front of the local cloud that behaves as AWS does where the local cloud is simpler, and on bad days.

The local cloud lists the first hundred schedules and says nothing of more; AWS lists them in pages. AWS throttles,
denies, and loses answers; the front does so on command.
"""

import json
import threading
from collections.abc import Mapping
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import parse_qs, urlencode, urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.kit.servers.cloud import REGION, LocalCloud
from tests.kit.servers.ports import HOST, free_port

_PAGE: Final = 100
_WRITES: Final = frozenset({"POST", "PUT", "DELETE"})
_EVERYTHING: Final = 1_000_000


class Front:
    """Stands before the cloud, for a test alone. `requests` are the methods and paths that came through."""

    def __init__(self, cloud: LocalCloud) -> None:
        self.cloud = cloud
        self.requests: list[tuple[str, str]] = []
        self.held = threading.Event()
        """Set when a write is held."""
        self._refusals: list[tuple[int, str]] = []
        self._free_writes: int | None = None
        self._lost_answers = 0
        self._released = threading.Event()
        self._lock = threading.Lock()
        self._server = _Server((HOST, free_port()), _FrontRequest)
        self._server.front = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), name="front", daemon=True)

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which a program takes it for AWS."""
        return {**self.cloud.environment, "AWS_ENDPOINT_URL": f"http://{HOST}:{self._server.server_port}"}

    @property
    def writes(self) -> list[tuple[str, str]]:
        """The requests that change something."""
        return [request for request in self.requests if request[0] in _WRITES]

    def refuse(self, times: int, status: int, code: str) -> None:
        """Answer the next requests with this error."""
        self._refusals = [(status, code)] * times

    def hold_after(self, writes: int) -> None:
        """Let so many writes through, and none behind them before the end."""
        self._free_writes = writes

    def let_go(self) -> None:
        """Hold nothing any more: what was held is dropped, and its client gets no answer."""
        self._free_writes = None
        self._released.set()

    def lose_answers(self, times: int) -> None:
        """Carry out the next writes, and do not tell their clients."""
        self._lost_answers = times

    def refusal(self) -> tuple[int, str] | None:
        """With which error the request at hand is answered."""
        with self._lock:
            return self._refusals.pop() if self._refusals else None

    def may_pass(self, method: str) -> bool:
        """Whether the request goes on to the cloud; a held one waits here."""
        if method not in _WRITES:
            return True
        with self._lock:
            if self._free_writes is None:
                return True
            self._free_writes -= 1
            if self._free_writes >= 0:
                return True
        self.held.set()
        self._released.wait()
        return False

    def loses_answer(self, method: str) -> bool:
        """Whether the client hears nothing of what was done."""
        with self._lock:
            lost = method in _WRITES and self._lost_answers > 0
            self._lost_answers -= lost
            return lost

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    front: Front


class _FrontRequest(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _handle(self) -> None:
        front = self.server.front
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if refusal := front.refusal():
            status, code = refusal
            self._answer(status, {"x-amzn-errortype": code}, json.dumps({"Message": "as the test says"}).encode())
            return
        if not front.may_pass(self.command):
            self.close_connection = True
            return
        front.requests.append((self.command, self.path))
        status, headers, answer = self._ask(body)
        if front.loses_answer(self.command):
            self.close_connection = True
            return
        self._answer(status, headers, answer)

    do_GET = do_POST = do_PUT = do_DELETE = _handle  # noqa: N815 - what the base class calls

    def _ask(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        lists = (self.command, parts.path) == ("GET", "/schedules")
        asked = {**query, "MaxResults": str(_EVERYTHING)} if lists else query
        cloud, path = self.server.front.cloud, f"{parts.path}?{urlencode(asked)}"
        connection = HTTPConnection(HOST, cloud.port, timeout=30)
        try:
            connection.request(
                self.command, path, body, signed(cloud, self.command, path, body, self._service, self._kept)
            )
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        headers = {"x-amzn-errortype": kind} if (kind := response.headers.get("x-amzn-errortype")) else {}
        page = _page(json.loads(answer), query) if lists and response.status == 200 else answer
        return response.status, headers, page

    @property
    def _service(self) -> str:
        """That which the client has signed for."""
        return self.headers["Authorization"].split("/")[3]

    @property
    def _kept(self) -> dict[str, str]:
        """What says which action is meant."""
        return {name: value for name in ("Content-Type", "X-Amz-Target") if (value := self.headers.get(name))}

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as inherited
        """Say nothing."""


def signed(  # noqa: PLR0913, PLR0917 - all that is signed
    cloud: LocalCloud, method: str, path: str, body: bytes, service: str, kept: Mapping[str, str]
) -> dict[str, str]:
    """The headers of a request to the cloud: what the client has signed was for this front."""
    headers = {"Host": f"{HOST}:{cloud.port}", **kept}
    request = AWSRequest(method, f"{cloud.url}{path}", headers=headers, data=body)
    own = cloud.environment
    credentials = Credentials(own["AWS_ACCESS_KEY_ID"], own["AWS_SECRET_ACCESS_KEY"])
    SigV4Auth(credentials, service, REGION).add_auth(request)
    return dict(request.headers)


def _page(listed: dict[str, Any], query: dict[str, str]) -> bytes:
    first, size = int(query.get("NextToken", 0)), min(int(query.get("MaxResults", _PAGE)), _PAGE)
    schedules = sorted(listed["Schedules"], key=lambda schedule: str(schedule["Name"]))
    answer: dict[str, Any] = {"Schedules": schedules[first : first + size]}
    if first + size < len(schedules):
        answer["NextToken"] = str(first + size)
    return json.dumps(answer).encode()

"""Connections to the dashboard's port are bounded: whoever opens many takes nothing from the workers beside it."""

import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.local.dashboard_connections import ACCEPTED_AT_ONCE, BoundedServer, ConnectionLimits
from tests.kit.apps import close_app
from tests.kit.daemons import DaemonProcess
from tests.kit.dashboard_daemon import port_of
from tests.kit.servers.ports import HOST
from tests.kit.waiting import eventually

DESCRIPTORS = 1_024
HALF_OPEN = 1_200
JOBS = 100
HALF_A_HEADER = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: "
LARGE = 64 * 1024 * 1024
LARGEST_LOG = 20_000
LISTENING = "0A"
"""A state in /proc/net/tcp."""

APP = """
import os, resource
from pathlib import Path
from lowkiq_lambda import Config, Lowkiq
resource.setrlimit(resource.RLIMIT_NOFILE, ({descriptors}, {descriptors}))
app = Lowkiq(Config.from_env(os.environ))

@app.worker(queue_name={name!r}, shards_count=4, batch_size=1, max_retry_count=0)
def write(batch):
    for job_id in batch:
        (Path({folder!r}) / job_id).write_text("done")
"""


def unaccepted(port: int) -> int:
    """How many connections wait until the process that listens there accepts them."""
    sockets = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return next(
        int(queues.partition(":")[2], 16)
        for _, local, _, state, queues, *_ in sockets
        if state == LISTENING and local.endswith(f":{port:04X}")
    )


def half_open(port: int, addresses: Sequence[str]) -> list[socket.socket]:
    """Connections that have sent half a header, from these addresses in turn."""
    connections = []
    for number in range(HALF_OPEN):
        if number % (ACCEPTED_AT_ONCE // 2) == 0:
            # The operating system lets those beyond the queue try again after a second or more.
            eventually(lambda: not unaccepted(port), 60, "room for connections")
        source = addresses[number % len(addresses)]
        connection = socket.create_connection((HOST, port), 30, source_address=(source, 0))
        connection.sendall(HALF_A_HEADER)
        connections.append(connection)
    return connections


def health(port: int) -> int:
    """The status of the daemon's health, or 0 if it gives none."""
    with closing(HTTPConnection(HOST, port, timeout=30)) as connection:
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status
        except OSError:
            return 0


def test_idle_connections_to_the_dashboard_fail_no_job(server_url: str, queue_name: str, tmp_path: Path) -> None:
    """With 1,024 descriptors and 1,200 half-open connections each handler opens its file, and the log stays small."""
    folder = tmp_path / "done"
    folder.mkdir()
    (tmp_path / "shop.py").write_text(APP.format(descriptors=DESCRIPTORS, name=queue_name, folder=str(folder)))
    app = Lowkiq(Config(redis_url=server_url))
    worker = app.worker(queue_name=queue_name, shards_count=4, batch_size=1, max_retry_count=0)(print)
    environment = {"LOWKIQ_REDIS_URL": server_url, "LOWKIQ_DASHBOARD_PASSWORD": "a long password"}
    process = DaemonProcess(["shop:app", "--dashboard", "0"], environment, tmp_path / "log", cwd=tmp_path)
    opened: list[socket.socket] = []
    try:
        port = port_of(process)
        opened += half_open(port, ["127.0.0.2"])
        worker.push_many([{"id": f"one-{number}"} for number in range(JOBS)])
        eventually(lambda: len([*folder.iterdir()]) == JOBS, 60, "all jobs beside connections from one address")
        beside = health(port)
        opened += half_open(port, [f"127.0.1.{number}" for number in range(1, 61)])
        worker.push_many([{"id": f"many-{number}"} for number in range(JOBS)])
        eventually(lambda: len([*folder.iterdir()]) == 2 * JOBS, 60, "all jobs beside connections from many addresses")
        descriptors = len([*Path(f"/proc/{process.pid}/fd").iterdir()])
        for connection in opened:
            connection.close()
        eventually(lambda: health(port) == 200, 30, "health, when the connections have ended")
        process.send(signal.SIGTERM)

        assert 0 == process.exit_code()
        assert 200 == beside
        assert descriptors < DESCRIPTORS / 2
        assert [] == [*app.operate(worker).morgue.list()]
        assert 1 == process.log.count("an address has too many connections to the dashboard")
        assert 1 == process.log.count("the dashboard has too many connections")
        assert len(process.log) < LARGEST_LOG
    finally:
        for connection in opened:
            connection.close()
        process.close()
        close_app(app)


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Reads the body, and answers with much for /large."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(LARGE // 65_536 if scope["path"] == "/large" else 0):
        await send({"type": "http.response.body", "body": bytes(65_536), "more_body": True})
    await send({"type": "http.response.body", "body": b"ok"})


@contextmanager
def served(limits: ConnectionLimits, proxies: Sequence[str] = ()) -> Iterator[tuple[BoundedServer, int]]:
    """The server, and its port."""
    with socket.create_server((HOST, 0)) as listening:
        server = BoundedServer(echo, limits, proxies, lifespan="off", log_config=None, timeout_graceful_shutdown=1)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            yield server, listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def is_closed(connection: socket.socket, trickle: bytes = b"") -> bool:
    """Whether the server has closed it; until then a part of a request is sent again and again."""
    connection.settimeout(0.05)
    try:
        if trickle:
            connection.sendall(trickle)
        return not connection.recv(1_024)
    except TimeoutError:
        return False
    except OSError:
        return True


@pytest.mark.parametrize(
    ("limits", "begin", "trickle"),
    [
        (ConnectionLimits(header=0.3), b"", b""),
        (ConnectionLimits(header=0.3), HALF_A_HEADER, b"x"),
        (ConnectionLimits(header=0.3), HALF_A_HEADER + b"a\r\n\r\n" + HALF_A_HEADER, b"x"),
        (ConnectionLimits(standstill=0.3), b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9999\r\n\r\n", b"x"),
    ],
    ids=["nothing", "half a header", "half a second header", "half a body"],
)
def test_a_request_that_does_not_come_ends_its_connection(
    limits: ConnectionLimits, begin: bytes, trickle: bytes
) -> None:
    """Whoever sends a byte now and then has no more time than one who sends none."""
    with served(limits) as (server, port), socket.create_connection((HOST, port)) as connection:
        connection.sendall(begin)
        eventually(lambda: is_closed(connection, trickle), 20, "the end of the connection")
        eventually(lambda: not server.server_state.connections, 10, "no connection")


def test_a_response_that_is_not_read_ends_its_connection() -> None:
    """A client that stops reading keeps neither a descriptor nor the memory of its response."""
    with (
        served(ConnectionLimits(standstill=0.3)) as (server, port),
        socket.create_connection((HOST, port)) as connection,
    ):
        connection.sendall(b"GET /large HTTP/1.1\r\nhost: a\r\n\r\n")
        eventually(lambda: server.server_state.connections, 10, "the connection")
        eventually(lambda: not server.server_state.connections, 20, "its end")


def test_a_client_that_goes_on_keeps_its_connection() -> None:
    """Requests of one connection, and a large response that is read, take longer together than one may take."""
    with served(ConnectionLimits(header=0.5, standstill=0.5)) as (_, port):
        connection = HTTPConnection(HOST, port, timeout=30)
        with closing(connection):
            connection.request("GET", "/")
            assert b"ok" == connection.getresponse().read()
            first = connection.sock
            connection.request("GET", "/large")
            response = connection.getresponse()
            eventually(lambda: not response.read(1_000_000), 60, "the end of the response")
            connection.request("POST", "/", b"body")

            assert b"ok" == connection.getresponse().read()
            assert first is connection.sock


def test_a_trusted_proxy_may_have_more_connections_than_others() -> None:
    """An address has its share, a proxy that names its callers the room of all."""
    limits = ConnectionLimits(in_all=6, from_one=2)
    with served(limits, ["127.0.0.2"]) as (server, port):
        connections = [
            socket.create_connection((HOST, port), source_address=(address, 0))
            for address in [*["127.0.0.1"] * 4, *["127.0.0.2"] * 6]
        ]
        eventually(lambda: 4 == sum(is_closed(each) for each in connections), 20, "four refusals")
        eventually(lambda: 6 == len(server.server_state.connections), 10, "six connections")
        for connection in connections:
            connection.close()


def test_a_process_of_few_descriptors_keeps_most_for_its_workers() -> None:
    """An eighth of them is for the dashboard."""
    assert [64, 32, 1, 64] == [ConnectionLimits().within(number).in_all for number in (1_024, 256, 4, -1)]

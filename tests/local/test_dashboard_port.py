"""`--dashboard`: the pages at a port of the daemon, for this machine alone unless somebody is named."""

import json
import re
import signal
import socket
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode

import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.dashboard.security.throttle import FROM_ONE
from lowkiq_lambda.local.dashboard_port import ListenAddress
from tests.kit.apps import close_app
from tests.kit.daemons import DaemonProcess
from tests.kit.dashboard_daemon import dashboard_daemon, port_of
from tests.kit.waiting import eventually
from tests.kit.web import await_room_in_the_minute

GUESSES = 60
PASSWORD = "a long password"  # noqa: S105 - of a page that only the tests see
TOKEN = "t" * 20


def ask(port: int, path: str, **headers: str) -> tuple[int, str]:
    """The status and the body."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def sign_in(port: int, password: str, **headers: str) -> int:
    """The status of the answer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        form = {"Content-Type": "application/x-www-form-urlencoded", **headers}
        connection.request("POST", "/sign-in", urlencode({"password": password}), form)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def forwarded(*addresses: str) -> dict[str, str]:
    """What a proxy, or somebody who plays one, says of its callers."""
    return {"X-Forwarded-For": ", ".join(addresses)}


def logged(process: DaemonProcess, *words: str) -> list[str]:
    """The lines that have all of these words."""
    return [line for line in process.log.splitlines() if all(word in line for word in words)]


def test_a_header_of_the_callers_own_makes_no_new_address(server_url: str, queue_name: str, tmp_path: Path) -> None:
    """Who names another address with each guess is locked out after ten; the log tells each try, and no password."""
    environment = {"LOWKIQ_REDIS_URL": server_url, "LOWKIQ_DASHBOARD_PASSWORD": PASSWORD}
    with dashboard_daemon(tmp_path, queue_name, "0", environment) as process:
        port = port_of(process)
        await_room_in_the_minute()
        statuses = [sign_in(port, f"guess-{n}", **forwarded(f"10.0.0.{n}")) for n in range(GUESSES)]
        statuses.append(sign_in(port, PASSWORD, **forwarded("10.0.1.1")))

        assert [*[401] * FROM_ONE, *[429] * (GUESSES + 1 - FROM_ONE)] == statuses
        for words, number in (("wrong password", FROM_ONE), ("locked out", GUESSES + 1 - FROM_ONE)):
            assert number == len(logged(process, "WARNING", words, "address=127.0.0.1")), words
        assert not [word for word in ("guess-", PASSWORD, "10.0.0.") if word in process.log]


def test_the_header_of_a_named_proxy_tells_the_address(server_url: str, queue_name: str, tmp_path: Path) -> None:
    """Each caller of the proxy is counted alone, by what the proxy has added; what callers wrote is not believed."""
    environment = {
        "LOWKIQ_REDIS_URL": server_url,
        "LOWKIQ_DASHBOARD_PASSWORD": PASSWORD,
        "LOWKIQ_DASHBOARD_TRUSTED_PROXIES": "10.1.0.0/16, 127.0.0.1",
    }
    with dashboard_daemon(tmp_path, queue_name, "0", environment) as process:
        port = port_of(process)
        await_room_in_the_minute()
        through = [sign_in(port, "guess", **forwarded(f"192.0.2.{n}", "203.0.113.7", "10.1.2.3")) for n in range(15)]

        assert [*[401] * FROM_ONE, *[429] * 5] == through
        assert 303 == sign_in(port, PASSWORD, **forwarded("203.0.113.8"))
        assert 15 == len(logged(process, "WARNING", "address=203.0.113.7", "proxy=127.0.0.1"))
        assert 1 == len(logged(process, "INFO", "address=203.0.113.8", "proxy=127.0.0.1", "account=operator"))


def test_the_daemon_serves_its_queues(server_url: str, queue_name: str, tmp_path: Path) -> None:
    """With a token the numbers come from the port that was given, and TERM ends it all in good order."""
    environment = {"LOWKIQ_REDIS_URL": server_url, "LOWKIQ_DASHBOARD_TOKENS": f"scraper:reader:{TOKEN}"}
    with dashboard_daemon(tmp_path, queue_name, "0", environment) as process:
        port = port_of(process)
        health, stranger = ask(port, "/healthz"), ask(port, "/api/v1/stats")
        status, stats = ask(port, "/api/v1/stats", Authorization=f"Bearer {TOKEN}")
        process.send(signal.SIGTERM)

        assert 0 == process.exit_code()
        assert (200, 401, 200) == (health[0], stranger[0], status)
        assert [queue_name] == list(json.loads(stats)["by_worker"])


def test_the_apps_own_mask_hides_payloads(server_url: str, queue_name: str, tmp_path: Path) -> None:
    """E-85: what the app's settings hide is hidden at the port, too."""
    app = Lowkiq(Config(redis_url=server_url))
    worker = app.worker(queue_name=queue_name, shards_count=2)(print)
    worker.push_many([{"id": "a", "payload": "4111", "delay": 1_000}])
    environment = {"LOWKIQ_REDIS_URL": server_url, "LOWKIQ_DASHBOARD_TOKENS": f"scraper:reader:{TOKEN}"}

    with dashboard_daemon(tmp_path, queue_name, "0", environment) as process:
        _, job = ask(port_of(process), f"/api/v1/job?queue={queue_name}&id=a", Authorization=f"Bearer {TOKEN}")

    assert ["hidden a"] == [one["payload"] for one in json.loads(job)["waiting"]["payloads"]]
    close_app(app)


def test_without_a_password_one_is_made_up(server_url: str, queue_name: str, tmp_path: Path) -> None:
    """It is printed for whoever started the process, once with the address; callers of another host are refused."""
    with dashboard_daemon(tmp_path, queue_name, "127.0.0.1:0", {"LOWKIQ_REDIS_URL": server_url}) as process:
        port = port_of(process)
        eventually(lambda: re.search(r"for this machine alone, password \S{12,}\n", process.log), 30, "a password")

        assert 1 == process.log.count(f":{port}/")
        assert 200 == ask(port, "/sign-in")[0]
        assert 403 == ask(port, "/sign-in", Host="elsewhere.example")[0]


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        (
            "0.0.0.0:0",
            "without authentication: set LOWKIQ_DASHBOARD_ACCOUNTS=name:operator:password, or listen on 127.0.0.1.",
        ),
        ("nonsense", "--dashboard nonsense is refused: write PORT or HOST:PORT"),
        ("{taken}", ": another program listens there, so choose another port."),
    ],
)
def test_what_cannot_be_served_is_told_at_once(
    server_url: str, queue_name: str, tmp_path: Path, address: str, sentence: str
) -> None:
    """No authentication where others come by, no address, or one that is taken: exit code 2 and a sentence."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = address.format(taken=taken.getsockname()[1])
        with dashboard_daemon(tmp_path, queue_name, where, {"LOWKIQ_REDIS_URL": server_url}) as process:
            assert 2 == process.exit_code()
            assert sentence in process.log
            assert 1 == process.log.count("\n")


@pytest.mark.parametrize(
    ("text", "address", "url"),
    [
        ("8080", ("127.0.0.1", 8080), "http://127.0.0.1:8080/"),
        ("localhost:1", ("localhost", 1), "http://localhost:1/"),
        ("[::1]:8080", ("::1", 8080), "http://[::1]:8080/"),
    ],
)
def test_addresses(text: str, address: tuple[str, int], url: str) -> None:
    """A port alone is one of loopback; an address of IPv6 stands in brackets."""
    assert address == ListenAddress.of(text)
    assert url == ListenAddress.of(text).url


@pytest.mark.parametrize("text", ["", "a:b", "1:2:3", "65536", ":1", "::1:80", "-1"])
def test_what_is_no_address(text: str) -> None:
    """It is refused in a sentence."""
    with pytest.raises(ConfigError, match=f"--dashboard {text} is refused: "):
        ListenAddress.of(text)

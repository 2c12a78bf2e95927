"""The kit for FastAPI and Starlette: a daemon for the life of the web app, and a dashboard among its pages."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from starlette.applications import Starlette

from lowkiq_lambda import Batch, Config, ConfigError, Lowkiq, Worker
from lowkiq_lambda.contrib.asgi import Lifespan, lifespan, mount_dashboard
from lowkiq_lambda.local.daemon import Daemon
from tests.kit.accounts import AUTH, OPERATOR
from tests.kit.apps import close_app
from tests.kit.daemons import ROOT, clean_environment
from tests.kit.embedded import end_server
from tests.kit.handlers import Broken, Notes, raising
from tests.kit.servers.ports import free_port
from tests.kit.waiting import eventually
from tests.kit.web import Browser
from tests.kit.workers import declare


def shop(folder: Path, port: int, log: Path, **settings: str) -> subprocess.Popen[bytes]:
    """The web shop, in a process of its own, with a server of its own."""
    variables = {"LOWKIQ_ENV": "development", "LOWKIQ_REDIS_URL": f"embedded:{folder / 'data'}"}
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "tests.contrib.web_shop:web", "--port", str(port)],
            cwd=ROOT,
            env={**clean_environment(), **variables, "SHOP_FOLDER": str(folder), **settings},
            stdout=output,
            stderr=output,
        )


def ask(port: int, path: str, method: str = "GET") -> str | None:
    """The body of an answer; None while there is no server."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path)
        return connection.getresponse().read().decode()
    except ConnectionError:
        return None
    finally:
        connection.close()


def test_one_program_takes_orders_performs_them_and_shows_them(tmp_path: Path) -> None:
    """On `embedded:` nothing else has to run; a job that runs at the end comes to its end, before the shop closes."""
    os.mkfifo(tmp_path / "gate")
    port, log, told = free_port(), tmp_path / "log", tmp_path / "told"
    web = shop(tmp_path, port, log)
    try:
        answer = eventually(lambda: ask(port, "/orders/7?status=paid", "POST"), 60, "the answer of the shop")
        taken = json.loads(str(answer))
        assert ("7", False, "orders") == (taken["pushed"][0]["id"], taken["pushed"][0]["merged"], taken["database"])
        eventually(lambda: "7 ['paid']\n" in told.read_text(), 30, "the job")
        assert "dashboard at /lowkiq for this machine alone, password " in log.read_text()
        assert "Sign in" in str(ask(port, "/lowkiq/sign-in"))
        ask(port, "/orders/8?status=slow", "POST")
        eventually(lambda: "slow began\n" in told.read_text(), 30, "the slow job")

        web.send_signal(signal.SIGTERM)
        (tmp_path / "gate").write_text("go")

        assert -signal.SIGTERM == web.wait(60)
        assert ["opened", "7 ['paid']", "slow began", "8 ['slow']", "closed"] == told.read_text().splitlines()
    finally:
        web.kill()
        web.wait()
        end_server(tmp_path / "data")


def live(entered: Lifespan, then: Callable[[Any], object]) -> None:
    """Do it inside a lifespan, in a thread, given the state of that."""

    async def lived() -> None:
        async with entered(Starlette()) as state:
            await asyncio.to_thread(then, state)

    asyncio.run(lived())


def drains() -> bool:
    """Whether a daemon lives in this process."""
    return any(thread.name == "lowkiq-lifecycle" for thread in threading.enumerate())


class Jobs(NamedTuple):
    """An app on a server with a URL of its own, its worker, and what that has noted."""

    app: Lowkiq
    worker: type[Worker]
    notes: Notes


@pytest.fixture
def jobs(server_url: str, queue_name: str) -> Iterator[Jobs]:
    """An app on the shared server."""
    app, notes = Lowkiq(Config(redis_url=server_url, threads_per_node=2)), Notes()
    yield Jobs(app, declare(app, queue_name, notes), notes)
    close_app(app)


@pytest.mark.parametrize(("daemon", "expected"), [(None, False), (False, False), (True, True)])
def test_a_server_that_others_drain_gets_a_daemon_only_if_asked(
    jobs: Jobs, *, daemon: bool | None, expected: bool
) -> None:
    """In production the jobs are performed elsewhere, unless the code says otherwise."""

    def push(_state: object) -> None:
        jobs.worker.push("a")
        if expected:
            eventually(lambda: jobs.notes.ids == [["a"]], what="the job")
        seen.append(drains())

    seen: list[bool] = []
    live(lifespan(jobs.app, daemon=daemon), push)

    assert [expected] == seen
    assert not drains()


def test_coroutine_handlers_share_the_loop_of_the_web_app(server_url: str, queue_name: str) -> None:
    """So they may use the pools of the web app, which belong to its loop."""
    app = Lowkiq(Config(redis_url=server_url))
    loops: list[object] = []

    @app.worker(queue_name=queue_name, shards_count=1, concurrency=2)
    async def ship(_batch: Batch) -> None:
        loops.append(asyncio.get_running_loop())

    @asynccontextmanager
    async def with_loop(_web: object) -> AsyncIterator[object]:
        yield asyncio.get_running_loop()

    def push(loop: object) -> None:
        ship.push("a")
        eventually(lambda: loops == [loop], what="the job")

    live(lifespan(app, daemon=True, inner=with_loop), push)

    assert 1 == len(loops)
    close_app(app)


def test_what_fails_in_the_own_lifespan_starts_nothing(jobs: Jobs) -> None:
    """The error comes out, and no daemon has begun."""

    @asynccontextmanager
    async def broken(web: object) -> AsyncIterator[None]:
        if web:
            raise Broken("no database")
        yield

    with pytest.raises(Broken, match="no database"):
        live(lifespan(jobs.app, daemon=True, inner=broken), print)

    assert not drains()


def test_a_daemon_that_does_not_start_leaves_no_loop_behind(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Coroutine handlers run on the web app's loop no longer: it has ended with the web app."""
    used: list[bool] = []
    monkeypatch.setattr(jobs.app, "use_loop", lambda loop: used.append(loop is not None))
    monkeypatch.setattr("lowkiq_lambda.local.daemon.Daemon.start", raising(Broken("no Redis")))

    with pytest.raises(Broken, match="no Redis"):
        live(lifespan(jobs.app, daemon=True), print)

    assert [True, False] == used


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("uvicorn shop:web", 1),
        ("WEB_CONCURRENCY=2 uvicorn shop:web --workers 4", 4),
        ("fastapi run --workers=3", 3),
        ("gunicorn -w 2 shop:web", 2),
        ("gunicorn -w8", 8),
        ("uvicorn --workers", 1),
        ("WEB_CONCURRENCY=2 uvicorn", 2),
        ("WEB_CONCURRENCY=many uvicorn", 1),
    ],
)
def test_several_processes_of_a_web_server_are_warned(
    jobs: Jobs, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, command: str, expected: int
) -> None:
    """Each of them would run a daemon of its own: the log says so, and what to do."""
    words = command.split()
    monkeypatch.setattr("sys.argv", [word for word in words if not word.startswith("WEB_CONCURRENCY")])
    monkeypatch.setenv("WEB_CONCURRENCY", words[0].partition("=")[2])

    live(lifespan(jobs.app, daemon=True), lambda _state: None)

    warnings = [record.getMessage() for record in caplog.records if "daemon=False" in record.getMessage()]
    said = f"each of the {expected} workers of this web server runs a daemon, with 2 threads"
    assert [said] * (expected > 1) == [warning.partition(":")[0] for warning in warnings]


def test_a_server_of_others_needs_a_password(jobs: Jobs) -> None:
    """None is made up where the jobs are not those of this machine."""
    with pytest.raises(ConfigError, match="The dashboard has no authentication"):
        mount_dashboard(Starlette(), "/lowkiq", jobs.app)


@pytest.mark.parametrize("url", ["embedded:", None])
def test_the_password_of_the_settings_lets_in(
    server_url: str, url: str | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the environment has one it counts, on the embedded server too, and none is made up."""
    monkeypatch.setenv("LOWKIQ_DASHBOARD_PASSWORD", OPERATOR)
    web = Starlette()

    mount_dashboard(web, "/ops/jobs", Lowkiq(Config(redis_url=url or server_url)))

    signed_in = Browser(web, mounted_at="/ops/jobs").post("/sign-in", {"password": OPERATOR})
    assert 303 == signed_in.status
    assert "" == capsys.readouterr().err


def test_a_made_up_password_is_for_this_machine_alone(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """It is written to the terminal; a caller from elsewhere is refused whatever they know."""
    web = Starlette()
    mount_dashboard(web, "/lowkiq", Lowkiq(Config(redis_url=f"embedded:{tmp_path / 'data'}")))
    said = capsys.readouterr().err
    password = said.rstrip().rpartition(" ")[2]

    assert f"dashboard at /lowkiq for this machine alone, password {password}\n" == said
    near, far = Browser(web, mounted_at="/lowkiq"), Browser(web, mounted_at="/lowkiq", client="192.0.2.1")
    assert 403 == far.post("/sign-in", {"password": password}).status
    assert 200 == near.get("/sign-in").status
    assert 303 == near.post("/sign-in", {"password": password}).status


def test_a_made_up_password_outlives_a_reload(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A reload of the web server signs nobody out. The file is for its owner; one that makes no sense is replaced."""
    kept = tmp_path / "data" / "dashboard.password"

    def start() -> str:
        config = Config(redis_url=f"embedded:{tmp_path / 'data'}")
        mount_dashboard(Starlette(), "/lowkiq", Lowkiq(config))
        return capsys.readouterr().err.rstrip().rpartition(" ")[2]

    first, second = start(), start()
    assert [first, first] == [second, kept.read_text()]
    assert (0o600, 0o700) == (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777)
    kept.write_text("short")
    assert start() not in {first, "short"}


def test_an_auth_of_the_code_lets_in(jobs: Jobs) -> None:
    """What the code passes counts before all settings."""
    web = Starlette()
    mount_dashboard(web, "/lowkiq", jobs.app, auth=AUTH)

    assert 303 == Browser(web, mounted_at="/lowkiq").post("/sign-in", {"password": OPERATOR}).status


def test_the_loop_goes_on_while_the_daemon_starts(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start may wait for Redis, and the web app has other things to do meanwhile."""
    goes_on = threading.Event()
    went_on: list[bool] = []
    start = Daemon.start

    def slow(daemon: Daemon) -> None:
        went_on.append(goes_on.wait(10))
        start(daemon)

    monkeypatch.setattr(Daemon, "start", slow)

    async def lived() -> None:
        asyncio.get_running_loop().call_later(0.05, goes_on.set)
        async with lifespan(jobs.app, daemon=True)(Starlette()):
            pass

    asyncio.run(lived())

    assert [True] == went_on


def test_the_loop_goes_on_while_the_last_jobs_come_to_their_end(jobs: Jobs) -> None:
    """Requests that are answered still, and coroutine handlers, need it meanwhile."""
    begun, goes_on = threading.Event(), threading.Event()
    went_on: list[bool] = []

    def then(_batch: object) -> None:
        begun.set()
        went_on.append(goes_on.wait(10))

    jobs.notes.then = then

    async def lived() -> None:
        async with lifespan(jobs.app, daemon=True)(Starlette()):
            await jobs.worker.apush("a")
            await asyncio.to_thread(begun.wait, 60)
            asyncio.get_running_loop().call_later(0.05, goes_on.set)

    asyncio.run(lived())

    assert [True] == went_on

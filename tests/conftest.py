"""Servers and names that any test may ask for."""

import gc
import logging
import os
import signal
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp, close_app, message_of
from tests.kit.examples import register_profiles
from tests.kit.installed import shared_wheel
from tests.kit.servers import Cluster, FaultProxy, LocalCloud, MakeServer, ManagedCache, SentinelSetup, Server

if TYPE_CHECKING:
    from tests.kit.servers.postgres import Postgres

register_profiles()

_TESTS = Path(__file__).parent
_QUICK = ("unit", "rules", "store", "dashboard", "duties")
_SLOW_TIMEOUT = 300.0
"""Seconds for a test of processes, clouds, browsers or many histories."""
_MEASURED_CHILDREN = ("aws/runtime", "aws/schedules", "cli", "demo", "local")
"""Where coverage measures child processes, too: functions, commands and daemons. Other children run what tests run in
their own process, or nothing of ours, and measuring would double what their start costs."""
_MEASURING = "COVERAGE_PROCESS_CONFIG"
_measure_by = os.environ.get(_MEASURING)
_SHARED_BY_GROUP = ("running_cluster", "running_sentinel", "cloud", "managed_cache", "chromium", "postgres", "moto")


def pytest_configure(config: pytest.Config) -> None:
    """Let Ctrl-C interrupt: a run that was started in the background ignores it, and so would all that it starts."""
    config.addinivalue_line("markers", "nightly(reason): too long for each check, of which another of its kind is part")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let one process have all tests of a slow set-up; tests beside the quick ones may take longer than the default."""
    for item in items:
        groups = [name for name in _SHARED_BY_GROUP if name in getattr(item, "fixturenames", ())]
        is_quick = Path(item.path).relative_to(_TESTS).parts[0] in _QUICK and not groups
        if not (is_quick or item.get_closest_marker("timeout")):
            item.add_marker(pytest.mark.timeout(_SLOW_TIMEOUT))
        for name in groups:
            item.add_marker(pytest.mark.xdist_group(name))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Hide the collected tests from the garbage collector: a process keeps them to its end, and they are many."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let coverage measure the children of those tests alone that run in them what no other test runs."""
    folder = Path(item.path).parent
    if _measure_by and any(folder.is_relative_to(_TESTS / name) for name in _MEASURED_CHILDREN):
        os.environ[_MEASURING] = _measure_by
    else:
        os.environ.pop(_MEASURING, None)


@pytest.fixture(autouse=True)
def handlers_of_the_root_logger() -> Iterator[None]:
    """They are put back: commands that run in the tests' own process set up logs, for a stream that ends with them."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A server that many tests share: use names of your own, leave its settings, never stop it."""
    with Server() as started:
        yield started


@pytest.fixture
def server_url(server: Server) -> str:
    """The shared server's URL."""
    return server.url


@pytest.fixture
def make_server() -> Iterator[MakeServer]:
    """Starts servers for this test alone."""
    with ExitStack() as stack:

        def make(**options: Any) -> Server:
            return stack.enter_context(Server(**options))

        yield make


@pytest.fixture
def own_server(make_server: MakeServer) -> Server:
    """A server of this test alone: it may count its commands, flush it, fill it, and list all that it holds."""
    return make_server()


@pytest.fixture
def fault_proxy(server: Server) -> Iterator[FaultProxy]:
    """Faults on command in front of the shared server."""
    with FaultProxy(server) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def running_cluster() -> Iterator[Cluster]:
    """What `cluster` is made of."""
    with Cluster() as started:
        yield started


@pytest.fixture
def cluster(running_cluster: Cluster) -> Cluster:
    """Three nodes that many tests share; a test may kill some, the next one finds them well again."""
    running_cluster.wait_until_ok()
    return running_cluster


@pytest.fixture(scope="session")
def running_sentinel() -> Iterator[SentinelSetup]:
    """What `sentinel` is made of."""
    with SentinelSetup() as started:
        yield started


@pytest.fixture
def sentinel(running_sentinel: SentinelSetup) -> SentinelSetup:
    """A primary, a replica and a Sentinel, all well, that many tests share; a test may fail over."""
    running_sentinel.heal()
    return running_sentinel


@pytest.fixture(scope="session")
def postgres() -> Iterator["Postgres"]:
    """A server that many tests share: drop what you have made."""
    from tests.kit.servers.postgres import Postgres, postgres_programs  # noqa: PLC0415 - few tests have a use for it

    programs = postgres_programs()
    if programs is None:
        pytest.skip("there is no PostgreSQL: install one, or put its programs on PATH")
    with Postgres(programs) as started:
        yield started


@pytest.fixture
def postgres_url(postgres: "Postgres") -> str:
    """The shared server."""
    return postgres.url


@pytest.fixture(scope="session")
def cloud() -> Iterator[LocalCloud]:
    """AWS on this machine that many tests share: use names of your own, and delete what would go on by itself."""
    with LocalCloud() as started:
        yield started


@pytest.fixture(scope="session")
def managed_cache() -> Iterator[ManagedCache]:
    """A cache as the cloud runs it, that many tests share: make users of your own."""
    with ManagedCache() as started:
        yield started


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is published, of this checkout, which all processes of a run share: leave it as it is."""
    own = tmp_path_factory.getbasetemp()
    return shared_wheel(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own)


@pytest.fixture
def clock() -> ManualClock:
    """The time, for the test, its apps and the server."""
    return ManualClock()


@pytest.fixture
def make_app(server_url: str, clock: ManualClock) -> Iterator[MakeApp]:
    """Builds apps on the shared server, with the settings that they are given, and errors by their messages alone."""
    with ExitStack() as stack:

        def make(**settings: Any) -> Lowkiq:
            app = Lowkiq(Config(**{"redis_url": server_url, "format_error": message_of, **settings}), clock=clock)
            stack.callback(close_app, app)
            return app

        yield make


@pytest.fixture
def app(make_app: MakeApp) -> Lowkiq:
    """An app with default settings, but for the text of errors: see `make_app`."""
    return make_app()


@pytest.fixture
def lowkiq_app() -> Lowkiq:
    """What the fixtures of the kit for users test here: an app of no workers, for tests that declare their own."""
    return Lowkiq(Config(format_error=message_of))


@pytest.fixture
def complaints() -> Iterator[list[str]]:
    """The messages of the browsers' consoles: none, or those that the test expects and takes out."""
    messages: list[str] = []
    yield messages
    assert [] == messages


@pytest.fixture
def queue_name() -> str:
    """A name that no other test has, in place of flushing."""
    return f"queue-{uuid4().hex}"

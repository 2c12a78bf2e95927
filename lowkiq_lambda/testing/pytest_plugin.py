"""The fixtures for pytest. Nothing of the library is imported until a test asks for one."""

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lowkiq_lambda.app import Lowkiq as App
    from lowkiq_lambda.testing.fake import FakeApp
    from lowkiq_lambda.testing.kit import AppUnderTest
    from lowkiq_lambda.testing.live import AppWithDaemon
    from lowkiq_lambda.testing.server import OwnServer

_MARK: Final = "lowkiq"
_NO_APP: Final = (
    'The fixture lowkiq tests an app, and none is named: write it as app = "shop.jobs:app" into [tool.lowkiq] of '
    'pyproject.toml, or mark the test: @pytest.mark.lowkiq(app="shop.jobs:app").'
)
_WRONG_MARK: Final = 'The mark lowkiq takes one argument, the app: @pytest.mark.lowkiq(app="shop.jobs:app").'


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line("markers", f"{_MARK}(app): MODULE:APP of the app that the fixture lowkiq tests")


@pytest.fixture(scope="session")
def lowkiq_test_server(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[OwnServer]":
    """The server of this test process. It holds no data of others."""
    from lowkiq_lambda.base.errors import LowkiqError  # noqa: PLC0415 - as said above
    from lowkiq_lambda.testing.server import URL_VARIABLE, open_server  # noqa: PLC0415 - as above

    number = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    url = os.environ.get(URL_VARIABLE)
    with ExitStack() as stack:
        server = open_server(tmp_path_factory.mktemp("lowkiq"), url, int(number) if number.isdecimal() else 0)
        try:
            started = stack.enter_context(server)
        except (ImportError, LowkiqError) as error:
            reason = str(error)
        else:
            yield started
            return
    hint = "" if url else f"\nInstall lowkiq-lambda[local], or set {URL_VARIABLE} to an empty database."
    pytest.fail(f"The fixture lowkiq has no server: {reason}{hint}", pytrace=False)


@pytest.fixture
def lowkiq_app(request: pytest.FixtureRequest) -> "App":
    """The app that is tested: that of the mark, else that of pyproject.toml. A project may have its own fixture."""
    from lowkiq_lambda.app import Lowkiq  # noqa: PLC0415 - as said above
    from lowkiq_lambda.base.errors import LowkiqError  # noqa: PLC0415 - as above
    from lowkiq_lambda.settings.loading import load_app  # noqa: PLC0415 - as above
    from lowkiq_lambda.settings.project import find_app  # noqa: PLC0415 - as above

    mark = request.node.get_closest_marker(_MARK)
    if mark and (len(mark.args) + len(mark.kwargs) != 1 or mark.kwargs.keys() - {"app"}):
        pytest.fail(_WRONG_MARK, pytrace=False)
    app_name: Any = mark.kwargs.get("app", mark.args[0] if mark.args else None) if mark else None
    try:
        spec = app_name or find_app(request.path.parent) or find_app(request.config.rootpath)
        if not spec:
            pytest.fail(_NO_APP, pytrace=False)
        return load_app(spec, Lowkiq)
    except LowkiqError as error:
        pytest.fail(f"The fixture lowkiq: {error}", pytrace=False)


@pytest.fixture
def lowkiq(lowkiq_app: "App", lowkiq_test_server: "OwnServer") -> "Iterator[AppUnderTest]":
    """The project's app on a real server that is empty, by a clock that stands still until the test moves it."""
    from lowkiq_lambda.testing.kit import app_under_test  # noqa: PLC0415 - as said above

    _refuse_what_cannot_fire(lowkiq_app)
    with app_under_test(lowkiq_app, lowkiq_test_server) as kit:
        yield kit


@pytest.fixture
def lowkiq_inline(lowkiq: "AppUnderTest") -> "Iterator[AppUnderTest]":
    """As `lowkiq`; and each push performs what is due before it returns."""
    from lowkiq_lambda.testing.kit import inline  # noqa: PLC0415 - as said above

    with inline(lowkiq) as kit:
        yield kit


@pytest.fixture
def lowkiq_fake(lowkiq_app: "App") -> "Iterator[FakeApp]":
    """The project's app without a server: what is pushed is checked, and kept in a list."""
    from lowkiq_lambda.testing.fake import fake_app  # noqa: PLC0415 - as said above

    _refuse_what_cannot_fire(lowkiq_app)
    with fake_app(lowkiq_app) as fake:
        yield fake


@pytest.fixture
def lowkiq_daemon(lowkiq_app: "App", lowkiq_test_server: "OwnServer") -> "Iterator[AppWithDaemon]":
    """The project's app on a real server that is empty, drained by a daemon in real time."""
    from lowkiq_lambda.testing.live import app_with_daemon  # noqa: PLC0415 - as said above

    _refuse_what_cannot_fire(lowkiq_app)
    with app_with_daemon(lowkiq_app, lowkiq_test_server) as live:
        yield live


def _refuse_what_cannot_fire(app: "App") -> None:
    """A declaration takes payloads on trust: the tests are where somebody reads that an entry never fires."""
    if app.core.housekeeping.declares_schedules and (problems := app.schedules.check()):
        lines = "\n".join(["The fixture lowkiq: schedule entries of the app cannot fire:", *problems])
        pytest.fail(lines, pytrace=False)

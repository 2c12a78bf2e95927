"""One deployment that the tests share, and a browser."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.cloud import APP
from local.deployment import build_packages
from tests.e2e.browser import Browser, find_browser
from tests.e2e.stage import Stage
from tests.servers import LocalCloud, Server


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of the functions, built for this machine as `sam build` builds them for Lambda's."""
    if sys.platform != "linux":
        pytest.skip("packages hold what runs on Lambda, which is Linux")
    folder = tmp_path_factory.mktemp("packages")
    build_packages(APP, folder)
    return folder


@pytest.fixture(scope="session")
def stage(cloud: LocalCloud, packages: Path) -> Iterator[Stage]:
    """The deployed stack, its Redis, and a history that was pushed to it from outside."""
    with Server() as server:
        yield Stage(cloud, server, packages)


@pytest.fixture(scope="session")
def browser() -> Browser:
    """A browser of this machine."""
    program = find_browser()
    if program is None:
        pytest.skip("there is no browser: install Chromium, or name one by LOWKIQ_TEST_BROWSER")
    return Browser(program)

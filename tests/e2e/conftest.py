"""One deployment that the tests share, and a browser to look at it."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from local.cloud import APP
from lowkiq_lambda.stack.cloud.project_cloud import build_packages
from tests.e2e.stack import Stack
from tests.kit.servers import LocalCloud, Server
from tests.kit.windows import OpenWindow, running_browser, windows


@pytest.fixture(scope="session")
def cloud() -> Iterator[LocalCloud]:
    """AWS on this machine, where a role may do what the template lets it do, and nothing else."""
    with LocalCloud(enforces_rights=True) as started:
        yield started


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of the functions, built for this machine as `sam build` builds them for Lambda's."""
    if sys.platform != "linux":
        pytest.skip("packages hold what runs on Lambda, which is Linux")
    folder = tmp_path_factory.mktemp("packages")
    build_packages(APP, folder)
    return folder


@pytest.fixture(scope="session")
def stack(cloud: LocalCloud, packages: Path) -> Iterator[Stack]:
    """The deployed stack, its Redis, and a history that was pushed to it from outside."""
    with Server() as server:
        yield Stack(cloud, server, packages)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser of this machine. Of another name than the dashboard's tests have for it: these go with the stack."""
    with running_browser() as browser:
        yield browser


@pytest.fixture
def open_window(browser: Browser, complaints: list[str]) -> Iterator[OpenWindow]:
    """Opens windows that know nothing of each other."""
    with windows(browser, complaints) as open_window:
        yield open_window

"""Apps that the functions find, and functions that are called as Lambda calls them."""

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

import pytest
from aws_lambda_powertools.logging import logger as powertools

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.aws.environment import environment
from lowkiq_lambda.aws.logs import function_logger
from tests.aws.functions import DrainFunction, Install
from tests.aws.packages import sam_built
from tests.kit.templates import parsed_templates


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of all functions: for tests of one xdist group, so that they are built once."""
    return sam_built(tmp_path_factory.mktemp("packages"))


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Makes an app the one that `LOWKIQ_APP` names, in an environment that has just been started."""
    for name in [name for name in os.environ if name.startswith(("LOWKIQ_", "POWERTOOLS_", "AWS_"))]:
        monkeypatch.delenv(name)

    def make(app: Lowkiq, **settings: object) -> None:
        module = ModuleType(f"app_{uuid4().hex}")
        vars(module)["app"] = app
        monkeypatch.setitem(sys.modules, module.__name__, module)
        for name, value in {"app": f"{module.__name__}:app", **settings}.items():
            monkeypatch.setenv(f"LOWKIQ_{name.upper()}", str(value))
        start_anew()

    start_anew()
    yield make
    start_anew()


def start_anew() -> None:
    """Forget what an execution environment keeps."""
    environment.cache_clear()
    function_logger.cache_clear()
    powertools.is_cold_start = True
    library = logging.getLogger("lowkiq_lambda")
    for name in [name for name in vars(library) if name == "init" or name.startswith("powertools_")]:
        delattr(library, name)
    library.handlers, library.propagate = [], True
    library.setLevel(logging.NOTSET)
    for handler in logging.root.handlers:
        handler.filters = [one for one in handler.filters if type(one).__name__ != "SuppressFilter"]


@pytest.fixture
def drain(install: Install, capsys: pytest.CaptureFixture[str]) -> DrainFunction:
    """The drain function."""
    return DrainFunction(install, capsys)


@pytest.fixture(scope="session")
def templates() -> dict[str, dict[str, Any]]:
    """All templates as values, by their names."""
    return parsed_templates()


@pytest.fixture(scope="session")
def template(templates: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The main one."""
    return templates["template"]


@pytest.fixture(scope="session")
def resources(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Its resources, the one that stands for all shards' schedules among them."""
    flat = dict(template["Resources"])
    for name in [name for name in flat if name.startswith("Fn::ForEach::")]:
        flat.update(flat.pop(name)[2])
    return flat

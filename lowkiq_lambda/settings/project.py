"""The project that a program is started in: its root, and what its pyproject.toml says about the app."""

import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from lowkiq_lambda.base.errors import ConfigError

_PYPROJECT: Final = "pyproject.toml"
_MARKS: Final = (_PYPROJECT, ".git")
_KNOWN: Final = ("app", "version", "fuzz", "contexts")
"""The version is that of the library which wrote the stack's files: see lowkiq_lambda/scaffold."""


def project_root(start: Path | None = None) -> Path:
    """The nearest folder with a mark of a project, from `start` upwards; `start` if no folder has one.

    `start` is the current folder, unless given.
    """
    start = start or Path.cwd()
    return next(_above(start, *_MARKS), start)


def project_app(start: Path | None = None) -> str | None:
    """MODULE:APP as `[tool.lowkiq] app` of the nearest pyproject.toml has it; None if it is not set.

    Raises ConfigError if that file cannot be read, or says it in a way that cannot work.
    """
    folder = app_folder(start)
    if folder is None:
        return None
    table = _table(folder / _PYPROJECT)
    for name in table:
        if name not in _KNOWN:
            raise ConfigError(f"{folder / _PYPROJECT}: [tool.lowkiq] has no {name!r}; it has {', '.join(_KNOWN)}.")
    app = table.get("app")
    if app is not None and not (isinstance(app, str) and app):
        raise ConfigError(f"{folder / _PYPROJECT}: [tool.lowkiq] app must be a text as 'shop.jobs:app', not {app!r}.")
    return app


def fuzz_table(worker: str, start: Path | None = None) -> dict[str, Any]:
    """`[tool.lowkiq.fuzz.WORKER]` of the nearest pyproject.toml; empty if there is none. Raises ConfigError."""
    folder, tables = app_folder(start), fuzz_tables(start)
    table = tables.get(worker, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{folder}/{_PYPROJECT}: [tool.lowkiq.fuzz.{worker}] must be a table.")
    if folder is not None and table and str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return table


def fuzz_tables(start: Path | None = None) -> dict[str, Any]:
    """All of `[tool.lowkiq.fuzz]`, by the names of workers. Raises ConfigError."""
    folder = app_folder(start)
    tables = {} if folder is None else _table(folder / _PYPROJECT).get("fuzz", {})
    if not isinstance(tables, dict):
        raise ConfigError(f"{folder}/{_PYPROJECT}: [tool.lowkiq.fuzz] must have a table for each worker.")
    return tables


def contexts_tables(start: Path | None = None) -> dict[str, Any]:
    """All of `[tool.lowkiq.contexts]`, by their names; empty if there are none. Raises ConfigError."""
    folder = app_folder(start)
    tables = {} if folder is None else _table(folder / _PYPROJECT).get("contexts", {})
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise ConfigError(f"{folder}/{_PYPROJECT}: [tool.lowkiq.contexts] must have a table for each context.")
    return tables


def find_app(start: Path | None = None) -> str | None:
    """As `project_app`; and the module that it names is found from then on. Raises ConfigError."""
    if spec := project_app(start):
        folder = str(app_folder(start))
        if folder not in sys.path:
            sys.path.insert(0, folder)
    return spec


def app_folder(start: Path | None = None) -> Path | None:
    """The folder of the nearest pyproject.toml; modules are searched there, too."""
    return next(_above(start or Path.cwd(), _PYPROJECT), None)


def _above(start: Path, *marks: str) -> Iterator[Path]:
    # A folder above may be closed to us.
    with suppress(OSError):
        for folder in (start, *start.parents):
            if any((folder / mark).exists() for mark in marks):
                yield folder


def _table(file: Path) -> dict[str, Any]:
    try:
        tables = tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be read: {error}.") from error
    tool = tables.get("tool", {})
    table = tool.get("lowkiq", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise ConfigError(f"{file}: [tool.lowkiq] must be a table.")
    return table

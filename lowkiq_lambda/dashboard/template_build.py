"""Compiles the templates to Python modules when a package is built, so that no cold start has to.

The build machine may be unable to import packages of the function's platform. So this module imports jinja2 alone and
runs by its path; filters are looked up when a template is rendered.
"""

import json
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any, Final

from jinja2 import BaseLoader, DictLoader, Environment, FileSystemLoader, ModuleLoader, StrictUndefined

TEMPLATES: Final = Path(__file__).parent / "templates"
_BUNDLE: Final = TEMPLATES.with_name("templates.json")
COMPILED: Final = Path(__file__).parent / "compiled"


def environment() -> Environment:
    """An environment without the dashboard's filters, with compiled templates if there are any."""
    return _environment(ModuleLoader(COMPILED) if COMPILED.is_dir() else _sources())


def compile_all() -> None:
    """Writes a module for each template; all of them, or none if one fails."""
    compiling = _environment(_sources())
    compiling.filters = _AnyFilter(compiling.filters)
    rmtree(COMPILED, ignore_errors=True)
    with TemporaryDirectory(dir=COMPILED.parent) as folder:
        compiling.compile_templates(Path(folder) / COMPILED.name, zip=None, ignore_errors=False)
        Path(folder, COMPILED.name).rename(COMPILED)


class _AnyFilter(dict[str, Callable[..., Any]]):
    """Has a filter of any name. An unknown one raises, so that the compiler does not evaluate it for constants.

    No filter of the dashboard gets the template's context, which the compiler would have to know.
    """

    def get(self, name: str, default: object = None) -> Callable[..., Any]:
        del default
        return super().get(name, _unknown)


def _unknown(*_args: object) -> None:
    raise NotImplementedError


def _sources() -> BaseLoader:
    """The templates; an installed package has them in one file."""
    return DictLoader(json.loads(_BUNDLE.read_bytes())) if _BUNDLE.exists() else FileSystemLoader(TEMPLATES)


def _environment(loader: BaseLoader) -> Environment:
    return Environment(
        loader=loader,
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

"""Templates as Python modules, made when a package is built: no cold start compiles them.

The machine that builds can import nothing of what was compiled for the function's own machine. So this module knows
nothing but jinja2, not even the filters, which are looked up when a template is rendered; and it is run by its path.
"""

from collections.abc import Callable
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any, Final

from jinja2 import BaseLoader, Environment, FileSystemLoader, ModuleLoader, StrictUndefined

TEMPLATES: Final = Path(__file__).parent / "templates"
COMPILED: Final = Path(__file__).parent / "compiled"


def environment() -> Environment:
    """One without filters of ours, with the templates as a build has left them, or else as they are written."""
    return _environment(ModuleLoader(COMPILED) if COMPILED.is_dir() else FileSystemLoader(TEMPLATES))


def compile_all() -> None:
    """Write a module for each template: all of them, or none."""
    compiling = _environment(FileSystemLoader(TEMPLATES))
    compiling.filters = _AnyFilter(compiling.filters)
    rmtree(COMPILED, ignore_errors=True)
    with TemporaryDirectory(dir=COMPILED.parent) as folder:
        compiling.compile_templates(Path(folder) / COMPILED.name, zip=None, ignore_errors=False)
        Path(folder, COMPILED.name).rename(COMPILED)


class _AnyFilter(dict[str, Callable[..., Any]]):
    """Has a filter of any name. One that it does not know cannot be called, so that nothing is rendered ahead.

    None of ours is given the context, which a template would have to know when it is compiled.
    """

    def get(self, name: str, default: object = None) -> Callable[..., Any]:
        del default
        return super().get(name, _unknown)


def _unknown(*_given: object) -> None:
    raise NotImplementedError


def _environment(loader: BaseLoader) -> Environment:
    return Environment(
        loader=loader,
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

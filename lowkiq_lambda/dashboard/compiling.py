"""Templates as Python modules, made when a package is built: no cold start compiles them.

`python compiling.py FOLDER`, with the folder that holds the built `lowkiq_lambda` and its dependencies. It runs on the
machine that builds, where nothing that was compiled for the function's own machine can be imported: so this module
knows nothing but jinja2, not even the filters, which are looked up when a template is rendered.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
TEMPLATES: Final = HERE / "templates"
COMPILED: Final = HERE / "compiled"

if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])

from jinja2 import BaseLoader, Environment, FileSystemLoader, ModuleLoader, StrictUndefined  # noqa: E402 - as above


def environment() -> Environment:
    """One without filters of ours, with the templates as a build has left them, or else as they are written."""
    return _environment(ModuleLoader(COMPILED) if COMPILED.is_dir() else FileSystemLoader(TEMPLATES))


def compile_all(into: Path) -> None:
    """Write a module for each template into the folder."""
    compiling = _environment(FileSystemLoader(TEMPLATES))
    compiling.filters = _AnyFilter(compiling.filters)
    compiling.compile_templates(into, zip=None, ignore_errors=False)


class _AnyFilter(dict[str, Callable[..., Any]]):
    """Has a filter of any name. One that it does not know cannot be called, so that nothing is rendered ahead."""

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


if __name__ == "__main__":
    compile_all(Path(sys.argv[1]) / "lowkiq_lambda" / "dashboard" / COMPILED.name)

"""The steps of a build."""

from pathlib import Path
from typing import Final

from lowkiq_lambda.settings.project import project_root
from lowkiq_lambda.stack.packaging.bytecode import compile_modules, compile_templates, find_python
from lowkiq_lambda.stack.packaging.contents import (
    COPIED,
    LIBRARY,
    REQUIREMENTS,
    copy_app,
    copy_library,
    install_for_app,
    install_locked,
)
from lowkiq_lambda.stack.packaging.lean import leave_out_pages, postpone, thin_out
from lowkiq_lambda.stack.packaging.targets import BuildFailed, BuildTarget
from lowkiq_lambda.stack.scaffold.owned import FOLDER, TEMPLATE, lock_file, outdated

LOCKS: Final = {
    "DrainFunction": "drain-function",
    "IngestFunction": "drain-function",
    "DashboardFunction": "dashboard-function",
}
"""The functions of the template, and which packages of others each has."""


def build(
    function: str, target: BuildTarget, into: Path, app: Path | None = None, template: Path | None = None
) -> list[str]:
    """Fill the folder `into` with all that the function imports; sentences for people. Raises BuildFailed.

    The app's code is in the folder `app`; by default in the current one, where SAM has put a copy of it. `template` is
    the one that the function is of, by default that of the project; an older one than the library's is refused.
    """
    template = template or project_root() / FOLDER / TEMPLATE
    if template.exists() and (sentence := outdated(template)):
        raise BuildFailed(sentence)
    _check(function)
    code = (app or Path()).resolve()
    if not code.is_dir():
        raise BuildFailed(f"There is no folder {code} with the app.")
    lock = lock_file(LOCKS[function])
    python = find_python(target)
    into = into.resolve()
    into.mkdir(parents=True, exist_ok=True)
    install_locked(target, lock, into)
    if (code / REQUIREMENTS).exists():
        install_for_app(target, code / REQUIREMENTS, lock, into)
    warnings = _thinned(function, target, python, into)
    copy_app(code, into, code.name if app else COPIED)
    return _compiled(target, python, into, warnings)


def finish(function: str, target: BuildTarget, into: Path) -> list[str]:
    """Make of a package by SAM's own builder what `build` would have made; sentences for people. Raises BuildFailed.

    What the function does not need goes, and bytecode comes. The versions of other packages stay as they are.
    """
    _check(function)
    if not (into / LIBRARY).is_dir():
        raise BuildFailed(f"There is no {LIBRARY} in {into}: name the folder that `sam build` made for the function.")
    into, python = into.resolve(), find_python(target)
    if LOCKS[function] != LOCKS["DashboardFunction"]:
        leave_out_pages(into)
    return _compiled(target, python, into, _thinned(function, target, python, into))


def _check(function: str) -> None:
    if function not in LOCKS:
        raise BuildFailed(f"There is no function {function!r}: expected one of {', '.join(LOCKS)}.")


def _thinned(function: str, target: BuildTarget, python: str | None, into: Path) -> list[str | None]:
    thin_out(into)
    copy_library(function, target, into)
    return [postpone(into), compile_templates(python, into)]


def _compiled(target: BuildTarget, python: str | None, into: Path, warnings: list[str | None]) -> list[str]:
    if python is None:
        warnings.append(
            f"no Python {target.version} was found, so the package has no bytecode and cold starts take about half a "
            f"second longer. Install Python {target.version}, or name one: LOWKIQ_BUILD_PYTHON=/path/to/python."
        )
    else:
        warnings.append(compile_modules(python, into))
    told = [f"WARNING: {warning}" for warning in warnings if warning]
    return [*told, f"Built for Runtime={str(target).replace('-', ' Architecture=')}: deploy with the same."]

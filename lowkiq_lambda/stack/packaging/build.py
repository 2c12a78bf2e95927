"""The steps of a build."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from lowkiq_lambda.settings.project import project_root
from lowkiq_lambda.stack.packaging.contents import (
    COPIED,
    LIBRARY,
    PERFORMING,
    REQUIREMENTS,
    copy_app,
    copy_library,
    install_for_app,
    install_locked,
)
from lowkiq_lambda.stack.packaging.lean import forget_installation, leave_out_pages, postpone, thin_out
from lowkiq_lambda.stack.packaging.samconfig import check_deploys
from lowkiq_lambda.stack.packaging.targets import BuildFailed, BuildTarget
from lowkiq_lambda.stack.scaffold.owned import FOLDER, TEMPLATE, lock_file, outdated

LOCKS: Final = {
    "DrainFunction": "drain-function",
    "IngestFunction": "drain-function",
    "DashboardFunction": "dashboard-function",
}
"""The functions of the template, and which packages of others each has."""

TASK_ROOT: Final = "/var/task"
"""Where Lambda puts the package: what tracebacks shall name."""

_OF_EVENTS: Final = r"aws_lambda_powertools/utilities/(batch|data_classes|kafka|streaming)/"
"""Parts of Powertools that read the events of a function: handlers of jobs get none, so drains seldom compile them."""
_VARIABLE: Final = "LOWKIQ_BUILD_PYTHON"


def build(
    function: str, target: BuildTarget, into: Path, app: Path | None = None, template: Path | None = None
) -> list[str]:
    """Fill the folder `into` with all that the function imports; sentences for people. Raises BuildFailed.

    The app's code is in the folder `app`; by default in the current one, where SAM has put a copy of it. `template` is
    the one that the function is of, by default that of the project; an older one than the library's is refused, and so
    are settings of a deploy that AWS would refuse in its middle.
    """
    template = template or project_root() / FOLDER / TEMPLATE
    if template.exists():
        if sentence := outdated(template):
            raise BuildFailed(sentence)
        check_deploys(template)
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
    return _compiled(function, target, python, into, warnings)


def finish(function: str, target: BuildTarget, into: Path) -> list[str]:
    """Turn a package of SAM's own builder into one as of `build`; sentences for people. Raises BuildFailed.

    Parts that the function does not need are removed, and bytecode is added. The versions of other
    packages stay as they are.
    """
    _check(function)
    if not (into / LIBRARY).is_dir():
        raise BuildFailed(f"There is no {LIBRARY} in {into}: name the folder that `sam build` made for the function.")
    into, python = into.resolve(), find_python(target)
    if LOCKS[function] != LOCKS["DashboardFunction"]:
        leave_out_pages(into)
    return _compiled(function, target, python, into, _thinned(function, target, python, into))


def _check(function: str) -> None:
    if function not in LOCKS:
        raise BuildFailed(f"There is no function {function!r}: expected one of {', '.join(LOCKS)}.")


def _thinned(function: str, target: BuildTarget, python: str | None, into: Path) -> list[str | None]:
    forget_installation(into)
    copy_library(function, target, into)
    thin_out(into)
    return [postpone(into), compile_templates(python, into)]


def _compiled(
    function: str, target: BuildTarget, python: str | None, into: Path, warnings: list[str | None]
) -> list[str]:
    if python is None:
        warnings.append(
            f"no Python {target.version} was found, so the package has no bytecode and cold starts take about half a "
            f"second longer. Install Python {target.version}, or name one: LOWKIQ_BUILD_PYTHON=/path/to/python."
        )
    else:
        warnings.append(compile_modules(python, into, _OF_EVENTS if function == PERFORMING else ""))
    lines = [f"WARNING: {warning}" for warning in warnings if warning]
    return [*lines, f"Built for Runtime={str(target).replace('-', ' Architecture=')}: deploy with the same."]


def compile_templates(python: str | None, into: Path) -> str | None:
    """Where the package has pages, as Python modules, by the package's own jinja2; a warning if that failed."""
    program = into / "lowkiq_lambda" / "dashboard" / "template_build.py"
    if not (program.exists() and (into / "jinja2").exists()):
        return None
    code = "import runpy, sys; sys.path.insert(0, sys.argv[1]); runpy.run_path(sys.argv[2])['compile_all']()"
    done = subprocess.run([python or sys.executable, "-ISBc", code, str(into), str(program)], check=False)
    if done.returncode:
        return "The dashboard's templates could not be compiled, see above; each cold start will do it."
    return None


def compile_modules(python: str, into: Path, seldom: str = "") -> str | None:
    """Bytecode beside each module, but for those of paths that match `seldom`; a warning if others have none."""
    # With hashes that are not checked: zip files change the times of files, so that bytecode which goes by them would
    # be made again with each cold start.
    command = [python, "-I", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"]
    command += ["-x", seldom] if seldom else []
    # Relative, so that the paths in the bytecode begin where Lambda has the package.
    done = subprocess.run([*command, "-s", str(into), "-p", TASK_ROOT, str(into)], check=False)
    return "Some modules could not be compiled, see above; Python reads their source." if done.returncode else None


def find_python(target: BuildTarget) -> str | None:
    """The program; None where this machine has none. Raises BuildFailed if LOWKIQ_BUILD_PYTHON names another one."""
    program = os.environ.get(_VARIABLE)
    if program:
        if not _is_of(target, program):
            raise BuildFailed(f"{_VARIABLE}={program} is not a Python {target.version}, which the function runs on.")
        return program
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    candidates = [
        sys.executable,
        shutil.which(f"python{target.version}"),
        *(str(path) for path in sorted(pyenv.glob(f"{target.version}.*/bin/python"))),
        _known_to_uv(target),
    ]
    return next((python for python in candidates if python and _is_of(target, python)), None)


def _is_of(target: BuildTarget, python: str) -> bool:
    """Whether it runs, and is of the target's version: a shim of pyenv may be there and not run."""
    tell = "import sys; print(sys.implementation.name, *sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-I", "-c", tell], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return done.stdout.split() == ["cpython", "3", str(target.minor)]


def _known_to_uv(target: BuildTarget) -> str | None:
    uv = shutil.which("uv")
    if uv is None:
        return None
    command = [uv, "python", "find", "--no-config", "--no-project", "--no-python-downloads", target.version]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None

"""Compiles beforehand what each cold start would compile, by a Python of the runtime's own version."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from lowkiq_lambda.stack.packaging.targets import BuildFailed, BuildTarget

TASK_ROOT: Final = "/var/task"
"""Where Lambda puts the package: what tracebacks shall name."""

_VARIABLE: Final = "LOWKIQ_BUILD_PYTHON"


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


def compile_modules(python: str, into: Path) -> str | None:
    """Bytecode beside each module; a warning if some have none."""
    # With hashes that are not checked: zip files change the times of files, so that bytecode which goes by them would
    # be made again with each cold start.
    command = [python, "-I", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"]
    # Relative, so that the paths in the bytecode begin where Lambda has the package.
    done = subprocess.run([*command, "-s", str(into), "-p", TASK_ROOT, str(into)], check=False)
    return "Some modules could not be compiled, see above; Python reads their source." if done.returncode else None


def find_python(target: BuildTarget) -> str | None:
    """The program; None where this machine has none. Raises BuildFailed if LOWKIQ_BUILD_PYTHON names another one."""
    named = os.environ.get(_VARIABLE)
    if named:
        if not _is_of(target, named):
            raise BuildFailed(f"{_VARIABLE}={named} is no Python {target.version}, which the function runs on.")
        return named
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

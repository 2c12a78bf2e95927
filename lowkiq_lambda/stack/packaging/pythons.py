"""Finds a Python of the runtime's own version, as another's bytecode is of no use there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from lowkiq_lambda.stack.packaging.targets import BuildFailed, BuildTarget

_VARIABLE: Final = "LOWKIQ_BUILD_PYTHON"


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

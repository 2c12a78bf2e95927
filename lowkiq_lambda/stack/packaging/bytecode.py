"""Compiles beforehand what each cold start would compile: modules, and the dashboard's templates."""

import subprocess
import sys
from pathlib import Path
from typing import Final

TASK_ROOT: Final = "/var/task"
"""Where Lambda puts the package: what tracebacks shall name."""


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

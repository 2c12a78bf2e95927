"""The contents of a package: packages of others, the code of the app, and the library."""

import re
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from lowkiq_lambda.base import target as built_for
from lowkiq_lambda.stack.bundles import bundle
from lowkiq_lambda.stack.packaging.targets import BuildFailed, BuildTarget

NEVER_PACKED: Final = (".*", "__pycache__", "*.py[cod]")
# 1.7 MB of Powertools that shows people the API of a resolver, which no function here has.
_NEVER_SHOWN: Final = ("swagger-ui-bundle.min.js", "swagger-ui.min.css")
# The source of time zones, which lie beside it compiled.
_NEVER_READ: Final = ("tzdata.zi",)

REQUIREMENTS: Final = "requirements.txt"
COPIED: Final = "app"
"""The name of a package whose folder SAM has copied: it gives the copy a name of its own."""

LIBRARY: Final = "lowkiq_lambda"
PACKED_WITH_PAGES: Final = "DashboardFunction"
PERFORMING: Final = "DrainFunction"
"""The package of the function that performs jobs."""

_OWN: Final = Path(__file__).parents[2]
# The daemon, what is for a command line, a web server or a project's folder, the simulation and forecasts, and the
# helpers of users' tests.
_NOT_IN_LAMBDA: Final = {
    LIBRARY: {"__main__.py", "cli", "local", "simulate", "stack", "testing"},
    "contrib": {"asgi.py"},
    "acts": {"erasure.py"},
    "auto": {"forecast.py"},
    "drain_schedules": {"coverage.py"},
    "providers": {"embedded"},
}
_PAGES: Final = {
    LIBRARY: {"dashboard"},
    "operate": {"alerts", "doctor", "gauges.py", "presentation"},
    "inspect": {"login_attempts.py", "looking.py", "memory.py", "overdue.py", "saved_views.py", "signed_out.py"},
    "schedules": {"clock_changes.py"},
}
# Folders that an earlier build may have left.
_MADE_HERE: Final = {"dashboard": {"compiled"}}


def install_locked(target: BuildTarget, lock: Path, into: Path) -> None:
    """What a function needs, in our versions. Raises BuildFailed."""
    _install(target, into, "--no-deps", "--require-hashes", "--requirement", str(lock))


def install_for_app(target: BuildTarget, requirements: Path, lock: Path, into: Path) -> None:
    """What the app asks for, with what it shares with us in our versions. Raises BuildFailed."""
    pins = re.findall(r"^[a-z0-9-]+==[^\s;\\]+", lock.read_text(encoding="utf-8"), re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        constraints = Path(folder) / "constraints.txt"
        constraints.write_text("\n".join(pins), encoding="utf-8")
        _install(target, into, "--requirement", str(requirements), "--constraint", str(constraints))


def _install(target: BuildTarget, into: Path, *arguments: str) -> None:
    """As if pip ran on the target: only wheels, as nothing can be compiled for another machine."""
    if find_spec("pip") is None:
        raise BuildFailed(f"{sys.executable} has no pip: give it one, `uv pip install pip` or `python -m ensurepip`.")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--root-user-action=ignore"]
    command += ["--no-compile", "--only-binary=:all:", "--implementation=cp", f"--python-version={target.version}"]
    command += [f"--platform={platform}" for platform in target.platforms]
    with tempfile.TemporaryDirectory() as stage:
        done = subprocess.run([*command, f"--target={stage}", *arguments], check=False)
        if done.returncode:
            raise BuildFailed(f"pip found no packages that fit {target.version} on {target.architecture}, see above.")
        # Apart and then joined: in one folder pip would leave out what two installations share.
        never = shutil.ignore_patterns(*NEVER_PACKED, *_NEVER_SHOWN, *_NEVER_READ, "bin")
        shutil.copytree(stage, into, dirs_exist_ok=True, ignore=never)


def copy_app(app: Path, into: Path, name: str) -> None:
    """Copy the code to where the function imports it from. Raises BuildFailed.

    A folder that is a Python package goes in as that package, so that `app.jobs:app` names the same app here and in
    the function. Of any other folder, what is in it goes to the top.
    """
    if (app / "__init__.py").exists():
        into /= name
        if into.exists():
            raise _taken(name)
    never = shutil.ignore_patterns(*NEVER_PACKED, REQUIREMENTS)
    names = [path.name for path in app.iterdir()]
    for each in sorted({*names} - never(str(app), names)):
        if (into / each).exists():
            raise _taken(each)
    shutil.copytree(app, into, dirs_exist_ok=True, ignore=never)


def _taken(name: str) -> BuildFailed:
    return BuildFailed(f"The app's {name} would take the place of a package of that name: call it otherwise.")


def copy_library(function: str, target: BuildTarget, into: Path) -> None:
    """Copy what the function needs of the library into the package's folder.

    It takes the place of a library that the app's requirements brought along: that one is whole, and may be of another
    version than the template.
    """
    for path in (*into.glob(f"{LIBRARY}-*.dist-info"), into / LIBRARY):
        shutil.rmtree(path, ignore_errors=True)
    never = shutil.ignore_patterns(*NEVER_PACKED)
    without = [_NOT_IN_LAMBDA, _MADE_HERE if function == PACKED_WITH_PAGES else _PAGES]

    def left_out(folder: str, names: list[str]) -> set[str]:
        return never(folder, names).union(*(one.get(Path(folder).name, set()) for one in without))

    shutil.copytree(_OWN, into / LIBRARY, ignore=left_out)
    bundle(into / LIBRARY)
    (into / LIBRARY / built_for.NAME).write_text(f"{target}\n", encoding="utf-8")

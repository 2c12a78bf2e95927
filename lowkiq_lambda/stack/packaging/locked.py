"""Installs packages of others for a target: those of a lock, and those that the app asks for."""

import re
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from lowkiq_lambda.stack.packaging.targets import BuildFailed, BuildTarget

NEVER_PACKED: Final = (".*", "__pycache__", "*.py[cod]")
# 1.7 MB of Powertools that shows people the API of a resolver, which no function here has.
_NEVER_SHOWN: Final = ("swagger-ui-bundle.min.js", "swagger-ui.min.css")


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
        never = shutil.ignore_patterns(*NEVER_PACKED, *_NEVER_SHOWN, "bin")
        shutil.copytree(stage, into, dirs_exist_ok=True, ignore=never)

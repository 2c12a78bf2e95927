"""The environment of the local cloud: what a function imports must come from its package, and not from the tool's."""

import os
import shutil
import subprocess
import sys
import venv
from hashlib import sha256
from pathlib import Path
from typing import Final

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.stack.scaffold.owned import lock_file

_FOLDER: Final = "cloud-environment"
_VARIABLE: Final = "LOWKIQ_TEST_CLOUD"


class CloudFailed(LowkiqError):
    """The local cloud cannot be installed or started."""


def cloud_program(data_dir: Path) -> Path:
    """The program of the local cloud, installed below `data_dir` at the first call. Raises CloudFailed.

    LOWKIQ_TEST_CLOUD may name one that is there.
    """
    if named := os.environ.get(_VARIABLE):
        return Path(named)
    lock = lock_file("cloud")
    folder = data_dir / _FOLDER
    done, wanted = folder / ".done", _mark(lock)
    if not done.exists() or done.read_text(encoding="utf-8") != wanted:
        _install(lock, folder)
        done.write_text(wanted, encoding="utf-8")
    return folder / "bin" / "ministack"


def is_installed(data_dir: Path) -> bool:
    """Whether the first call is over, which takes a minute."""
    done = data_dir / _FOLDER / ".done"
    return bool(os.environ.get(_VARIABLE)) or (done.exists() and done.read_text("utf-8") == _mark(lock_file("cloud")))


def _mark(lock: Path) -> str:
    """Another lock or another Python makes another environment."""
    return sha256(lock.read_bytes() + sys.version.encode()).hexdigest()


def _install(lock: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*command, "--require-hashes", "--requirement", str(lock)], check=False)
    if done.returncode:
        raise CloudFailed(f"The packages of {lock.name} could not be installed into {folder}, see above.")

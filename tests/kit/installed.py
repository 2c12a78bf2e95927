"""The package as users have it: its wheel, installed with the locked versions and without the rest of the checkout."""

import fcntl
import subprocess
import sys
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[2]


def build_wheel(folder: Path) -> Path:
    """The wheel of this checkout."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=_ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def shared_wheel(folder: Path) -> Path:
    """The same, built once for all processes that name the folder: the first builds, and others wait for it."""
    with (folder / "wheel.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        built = next((folder / "wheel").glob("*.whl"), None)
        return built or build_wheel(folder / "wheel")


def install(wheel: Path, folder: Path, extras: str, *others: str, lock: str = "local") -> Path:
    """The Python of a new environment with the wheel, its extras and other packages, and nothing else."""
    uv, python = Path(sys.executable).with_name("uv"), folder / "bin" / "python"
    wanted = [f"lowkiq-lambda[{extras}] @ {wheel.as_uri()}", *others]
    locked = str(_ROOT / "requirements" / f"{lock}.txt")
    for arguments in (
        ["venv", "--python", sys.executable, str(folder)],
        ["pip", "install", "--python", str(python), "--constraint", locked, *wanted],
    ):
        done = subprocess.run([uv, *arguments], cwd=folder.parent, capture_output=True, text=True, check=False)
        assert 0 == done.returncode, done.stderr
    return python

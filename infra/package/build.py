"""Puts the package of one Lambda function together: locked packages, lowkiq_lambda, the app, and bytecode of it all.

`sam build` comes here by the Makefile in the folder that is named after the runtime and the architecture.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
LOCKS: Final = {
    "DrainFunction": "drain-function",
    "DispatchFunction": "drain-function",
    "IngestFunction": "drain-function",
    "DashboardFunction": "dashboard-function",
}
TASK_ROOT: Final = "/var/task"
"""Where Lambda puts the package: what tracebacks shall name."""

_MACHINES: Final = {"arm64": "aarch64", "x86_64": "x86_64"}
_OLDEST_GLIBC: Final = 17
# Amazon Linux 2 below Python 3.11 and with it, Amazon Linux 2023 from 3.12 on.
_GLIBC_BEFORE_3_12: Final = 26
_GLIBC: Final = 34
_NEVER_PACKED: Final = (".*", "__pycache__", "*.py[cod]")
# The daemon, the helpers of users' tests, and a command line.
_NOT_IN_LAMBDA: Final = {
    "lowkiq_lambda": {"__main__.py", "cli", "local", "testing.py"},
    "aws": {"drain_schedules", "schedules.py"},
}
_PAGES: Final = {"lowkiq_lambda": {"dashboard"}}
# What an earlier build may have left.
_MADE_HERE: Final = {"dashboard": {"compiled"}}


class BuildFailed(Exception):
    """The package cannot be built; the message is a sentence for people."""


class Target(NamedTuple):
    """What the package is for."""

    minor: int
    """Of the runtime's Python: 13 for python3.13."""
    architecture: str

    @classmethod
    def named(cls, text: str) -> Target:
        """Reads `python3.13-arm64`."""
        match = re.fullmatch(r"python3\.(\d+)-(arm64|x86_64)", text)
        if match is None:
            raise BuildFailed(f"{text!r} names no runtime and architecture: expected one like python3.13-arm64.")
        return cls(int(match[1]), match[2])

    def __str__(self) -> str:
        return f"python{self.version}-{self.architecture}"

    @property
    def version(self) -> str:
        """As pip has it."""
        return f"3.{self.minor}"

    @property
    def platforms(self) -> list[str]:
        """The platforms whose wheels run there, newest first."""
        newest = _GLIBC if self.minor >= 12 else _GLIBC_BEFORE_3_12  # noqa: PLR2004 - the runtime that changed systems
        tags = [f"manylinux_2_{minor}" for minor in range(newest, _OLDEST_GLIBC - 1, -1)]
        return [f"{tag}_{_MACHINES[self.architecture]}" for tag in (*tags, "manylinux2014")]


def build(function: str, target: Target, app: Path, into: Path) -> None:
    """Fill the folder `into` with all that the function imports. Raises BuildFailed."""
    if function not in LOCKS:
        raise BuildFailed(f"There is no function {function!r}: expected one of {', '.join(LOCKS)}.")
    lock = ROOT / "requirements" / f"{LOCKS[function]}.txt"
    python = _find_python(target)
    into.mkdir(parents=True, exist_ok=True)
    _install(target, into, "--no-deps", "--require-hashes", "--requirement", str(lock))
    if (app / "requirements.txt").exists():
        _install_for_app(target, app / "requirements.txt", lock, into)
    if (ROOT / "lowkiq_lambda").exists():
        _copy_library(function, into / "lowkiq_lambda")
    if not (into / "lowkiq_lambda").exists():
        raise BuildFailed(f"There is no {ROOT / 'lowkiq_lambda'}: name lowkiq_lambda in {app / 'requirements.txt'}.")
    (into / "lowkiq_lambda" / "built_for.txt").write_text(f"{target}\n", encoding="utf-8")
    _compile_templates(python or sys.executable, into)
    _copy_app(app, into)
    if python is None:
        _say(
            f"WARNING: no Python {target.version} was found, so the package has no bytecode and cold starts take about "
            f"half a second longer. Install Python {target.version}, or name one: LOWKIQ_BUILD_PYTHON=/path/to/python."
        )
    else:
        _compile(python, into)
    _say(f"Built for Runtime={str(target).replace('-', ' Architecture=')}: deploy with the same.")


def _install(target: Target, into: Path, *arguments: str) -> None:
    """As if pip ran on the target: only wheels, as nothing can be compiled for another machine."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--root-user-action=ignore"]
    command += ["--no-compile", "--only-binary=:all:", "--implementation=cp", f"--python-version={target.version}"]
    command += [f"--platform={platform}" for platform in target.platforms]
    with tempfile.TemporaryDirectory() as stage:
        done = subprocess.run([*command, f"--target={stage}", *arguments], check=False)
        if done.returncode:
            raise BuildFailed(f"pip found no packages that fit {target.version} on {target.architecture}, see above.")
        # Apart and then joined: in one folder pip would leave out what two installations share.
        shutil.copytree(stage, into, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*_NEVER_PACKED, "bin"))


def _install_for_app(target: Target, requirements: Path, lock: Path, into: Path) -> None:
    """What the app asks for, with what it shares with us in our versions."""
    pins = re.findall(r"^[a-z0-9-]+==[^\s;\\]+", lock.read_text(encoding="utf-8"), re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        constraints = Path(folder) / "constraints.txt"
        constraints.write_text("\n".join(pins), encoding="utf-8")
        _install(target, into, "--requirement", str(requirements), "--constraint", str(constraints))


def _copy_library(function: str, into: Path) -> None:
    never = shutil.ignore_patterns(*_NEVER_PACKED)
    without = [_NOT_IN_LAMBDA, _MADE_HERE if function == "DashboardFunction" else _PAGES]

    def left_out(folder: str, names: list[str]) -> set[str]:
        return never(folder, names).union(*(one.get(Path(folder).name, set()) for one in without))

    shutil.copytree(ROOT / "lowkiq_lambda", into, dirs_exist_ok=True, ignore=left_out)


def _compile_templates(python: str, into: Path) -> None:
    """Where the package has pages, as Python modules, by the package's own jinja2."""
    program = into / "lowkiq_lambda" / "dashboard" / "template_build.py"
    if not (program.exists() and (into / "jinja2").exists()):
        return
    code = "import runpy, sys; sys.path.insert(0, sys.argv[1]); runpy.run_path(sys.argv[2])['compile_all']()"
    done = subprocess.run([python, "-ISBc", code, str(into), str(program)], check=False)
    if done.returncode:
        _say("WARNING: the dashboard's templates could not be compiled, see above; each cold start will do it.")


def _copy_app(app: Path, into: Path) -> None:
    left_out = shutil.ignore_patterns(*_NEVER_PACKED, "requirements.txt")
    names = {path.name for path in app.iterdir()} - left_out(str(app), [path.name for path in app.iterdir()])
    for name in sorted(names):
        if (into / name).exists():
            raise BuildFailed(f"The app's {name} would take the place of a package of that name: call it otherwise.")
    shutil.copytree(app, into, dirs_exist_ok=True, ignore=left_out)


def _compile(python: str, into: Path) -> None:
    # With hashes that are not checked: zip files change the times of files, so that bytecode which goes by them would
    # be made again with each cold start.
    command = [python, "-I", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"]
    # Relative, so that the paths in the bytecode begin where Lambda has the package.
    done = subprocess.run([*command, "-s", str(into), "-p", TASK_ROOT, str(into)], check=False)
    if done.returncode:
        _say("WARNING: some modules could not be compiled, see above; Python reads their source.")


def _find_python(target: Target) -> str | None:
    """A Python of the runtime's own version, as another's bytecode is of no use there."""
    named = os.environ.get("LOWKIQ_BUILD_PYTHON")
    if named:
        if not _is_of(target, named):
            raise BuildFailed(f"LOWKIQ_BUILD_PYTHON={named} is no Python {target.version}, which the function runs on.")
        return named
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    candidates = [
        sys.executable,
        shutil.which(f"python{target.version}"),
        *(str(path) for path in sorted(pyenv.glob(f"{target.version}.*/bin/python"))),
        _known_to_uv(target),
    ]
    return next((python for python in candidates if python and _is_of(target, python)), None)


def _is_of(target: Target, python: str) -> bool:
    """Whether it runs, and is of the target's version: a shim of pyenv may be there and not run."""
    tell = "import sys; print(sys.implementation.name, *sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-I", "-c", tell], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return done.stdout.split() == ["cpython", "3", str(target.minor)]


def _known_to_uv(target: Target) -> str | None:
    uv = shutil.which("uv")
    if uv is None:
        return None
    command = [uv, "python", "find", "--no-config", "--no-project", "--no-python-downloads", target.version]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def _say(sentence: str) -> None:
    """On standard output, as `sam build` shows the other one only when the build fails."""
    print(sentence, flush=True)


def main() -> None:
    """Read the command line and build."""
    parser = argparse.ArgumentParser(description="Put the package of a Lambda function together.")
    parser.add_argument("target", help="a folder, or the name of one, such as python3.13-arm64")
    parser.add_argument("function", help=" or ".join(LOCKS))
    parser.add_argument("into", type=Path, help="the folder to fill")
    parser.add_argument("--app", type=Path, default=Path(), help="the folder of the app (default: the current one)")
    given = parser.parse_args()
    try:
        build(given.function, Target.named(Path(given.target).name), given.app.resolve(), given.into.resolve())
    except BuildFailed as error:
        sys.exit(f"{given.function}: {error}")


if __name__ == "__main__":
    main()

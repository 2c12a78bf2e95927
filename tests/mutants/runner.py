"""Puts each fault of mutants.toml into a copy of the tree, and tells whether the tests that it names see it."""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import Final

import msgspec

ROOT: Final = Path(__file__).parents[2]
FILE: Final = ROOT / "tests" / "mutants.toml"
_TIMEOUT: Final = 900.0
_LEFT_OUT: Final = (".git", ".venv", ".tools", "build", "dist", "__pycache__", ".*_cache", ".hypothesis", ".coverage*")
_TOOLS: Final = (".venv", ".tools")
"""Linked into the copy: no test writes there."""
_FAILED: Final = 1
"""The exit code of pytest if tests failed; with others they did not run."""


class Mutant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fault: which text of which file becomes which, why that is wrong, and the nearest tests that must fail."""

    file: str
    before: str
    after: str
    why: str
    tests: list[str]

    def fits(self, root: Path) -> bool:
        """Whether the text stands once in the file, and the tests exist."""
        path = root / self.file
        is_there = path.is_file() and 1 == path.read_text().count(self.before)
        return is_there and bool(self.tests) and all((root / test.partition("::")[0]).exists() for test in self.tests)


def mutants() -> dict[str, Mutant]:
    """All of them by their names."""
    return msgspec.convert(tomllib.loads(FILE.read_text()), dict[str, Mutant])


def passes(root: Path, tests: Sequence[str]) -> bool:
    """Whether the tests pass in that tree. Raises RuntimeError if they could not be run."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not nightly", *tests]
    # What is imported is the copy, though the checkout may be installed.
    environment = os.environ | {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, check=False, timeout=_TIMEOUT
        )
    except subprocess.TimeoutExpired:
        return False
    if done.returncode not in {0, _FAILED}:
        raise RuntimeError(f"pytest ended with {done.returncode}: {done.stdout[-2_000:]}{done.stderr[-2_000:]}")
    return done.returncode == 0


def outcome_of(mutant: Mutant, root: Path) -> str:
    """Try one in that tree, which is as before afterwards."""
    if not mutant.fits(root):
        return "does not fit"
    path = root / mutant.file
    text = path.read_text()
    path.write_text(text.replace(mutant.before, mutant.after))
    try:
        return "survived" if passes(root, mutant.tests) else "killed"
    finally:
        path.write_text(text)


def outcomes(chosen: dict[str, Mutant]) -> Iterator[tuple[str, str, float]]:
    """Each with what became of it, and the seconds that it took."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        root = Path(folder) / "tree"
        shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(*_LEFT_OUT), symlinks=True)
        for name in _TOOLS:
            if (ROOT / name).exists():
                (root / name).symlink_to((ROOT / name).resolve())
        for name, mutant in chosen.items():
            began = monotonic()
            yield name, outcome_of(mutant, root), monotonic() - began


def main(names: Sequence[str]) -> int:
    """Try those of these names, or all; the exit code."""
    known = mutants()
    if unknown := set(names) - known.keys():
        sys.stderr.write(f"error: there is no mutant {', '.join(sorted(unknown))}\n")
        return 2
    chosen = {name: known[name] for name in names} if names else known
    killed = 0
    for number, (name, outcome, seconds) in enumerate(outcomes(chosen), 1):
        killed += outcome == "killed"
        sys.stdout.write(f"{number:2}/{len(chosen)}  {outcome:12}  {seconds:5.1f} s  {name}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{killed} of {len(chosen)} mutants were killed\n")
    return 0 if killed == len(chosen) else 1

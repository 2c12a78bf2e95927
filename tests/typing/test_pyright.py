"""What pyright says of the public types; mypy has said its own of the same files when `scripts/lint` has passed."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import msgspec
from playwright._impl._driver import compute_driver_executable

FOLDER: Final = Path(__file__).parent
MARK: Final = re.compile(r"# type: \bignore\[")
RED: Final = 1
"""pyright's exit code where it has found errors."""


class Position(msgspec.Struct):
    """Of an error; lines count from 0."""

    line: int


class Range(msgspec.Struct):
    """Of an error."""

    start: Position


class Diagnostic(msgspec.Struct):
    """An error, or less."""

    file: str
    severity: str
    range: Range


class Diagnosis(msgspec.Struct):
    """What pyright prints."""

    diagnostics: list[Diagnostic] = msgspec.field(name="generalDiagnostics")


def marked(name: str) -> set[tuple[str, int]]:
    """The lines of a file that type checkers refuse."""
    lines = (FOLDER / name).read_text().splitlines()
    return {(name, number) for number, line in enumerate(lines, start=1) if MARK.search(line)}


def test_pyright_refuses_what_mypy_refuses_and_nothing_else() -> None:
    """A misspelt keyword, a payload or a job of another type are errors; what people wrote before is none."""
    node, _ = compute_driver_executable()
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(FOLDER)],
        env={**os.environ, "PATH": f"{Path(node).parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert RED == done.returncode, done.stdout + done.stderr
    report = msgspec.json.decode(done.stdout[done.stdout.index("{") :], type=Diagnosis)
    found = {(Path(one.file).name, one.range.start.line + 1) for one in report.diagnostics}
    assert marked("right.py") | marked("wrong.py") == found


def test_the_code_that_is_right_has_one_line_that_strict_checkers_refuse() -> None:
    """That of the function without annotations, which runs all the same."""
    ((_, number),) = marked("right.py")

    assert re.match(r"def bare\(batch\):", (FOLDER / "right.py").read_text().splitlines()[number - 1])

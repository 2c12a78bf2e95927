"""`lowkiq new`: which files a project has, and which names it cannot have."""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest

from lowkiq_lambda.cli import main
from lowkiq_lambda.stack.scaffold.owned import signature
from tests.kit.templates import INFRA, ROOT

OWN: Final = {
    ".dockerignore",
    ".github/workflows/ci.yml",
    ".gitignore",
    "Makefile",
    "README.md",
    "app/__init__.py",
    "app/jobs.py",
    "app/orders.py",
    "app/requirements.txt",
    "compose.yaml",
    "local.mk",
    "pyproject.toml",
    "samconfig.toml",
    "tests/conftest.py",
    "tests/test_jobs.py",
    "tests/test_stack.py",
}
"""For people to change; local.mk says where a library of this machine lies."""
STACK: Final = {f"lowkiq/{path.relative_to(ROOT)}" for path in (ROOT / "template.yaml", *INFRA)}
MAKEFILES: Final = {f"lowkiq/{path.relative_to(ROOT)}" for path in (ROOT / "infra/package").glob("*/Makefile")}
OTHERS: Final = {
    f"lowkiq/{path.relative_to(ROOT)}"
    for pattern in ("terraform/*.tf", "cdk/*.py")
    for path in (ROOT / "infra").glob(pattern)
}
"""The stack for those who deploy by other means."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder: Path) -> set[str]:
    """The paths of all files below it."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_project_has_an_app_and_the_stack(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What people change, and below lowkiq/ what the library brings; and the command says what to type next."""
    assert 0 == main(["new", "shop"])

    assert OWN | STACK | MAKEFILES | OTHERS == files(folder / "shop")
    assert "  make test " in capsys.readouterr().out
    assert [folder / "shop"] == [*folder.iterdir()]


def test_a_project_may_have_a_web_app(folder: Path) -> None:
    """One of FastAPI, which its tests, its container and its linters know."""
    assert 0 == main(["new", "shop", "--web", "fastapi"])

    assert {"web.py", "tests/test_web.py"} == files(folder / "shop") - OWN - STACK - MAKEFILES - OTHERS
    for name in ("Makefile", "compose.yaml"):
        assert "uvicorn web:web" in (folder / "shop" / name).read_text()


def test_no_place_of_a_file_stays_empty(folder: Path) -> None:
    """Each file has the project's name and the library's version where they belong, and nothing to be filled in."""
    main(["new", "web-shop"])

    project = tomllib.loads((folder / "web-shop" / "pyproject.toml").read_text())
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert "web-shop" == project["project"]["name"]
    assert {"app": "app.jobs:app", "version": version} == project["tool"]["lowkiq"]
    assert 'stack_name = "web-shop"' in (folder / "web-shop" / "samconfig.toml").read_text()
    assert [] == [path for path in OWN if "@@" in (folder / "web-shop" / path).read_text()]


def test_the_stack_is_the_librarys_but_for_the_place_of_the_app(folder: Path) -> None:
    """A header stands above each file; the app's folder is beside that of the template."""
    main(["new", "shop"])

    for path in STACK | MAKEFILES:
        signed = signature((folder / "shop" / path).read_text())
        assert signed is not None
        assert signed.is_untouched
        body = signed.body.replace(": ../app/\n", ": app/\n")
        assert (ROOT / path.removeprefix("lowkiq/")).read_text() == body
        assert (body != signed.body) == path.endswith(
            ("/template.yaml", "/queue-function.yaml", "/managed-instances.yaml")
        )


@pytest.mark.parametrize(
    ("name", "because"),
    [
        ("test", "is a name of the tools or in the project itself"),
        ("app", "is a name of the tools or in the project itself"),
        ("lowkiq_lambda", "is a name of the tools or in the project itself"),
        ("lowkiq-lambda", "is a name of the tools or in the project itself"),
        ("1x", "begins with a letter"),
        ("Shop", "needs small letters"),
        ("shop/", "needs small letters"),
        ("../shop", "needs small letters"),
        ("läden", "needs small letters"),
        ("", "needs small letters"),
        ("class", "is a keyword of Python"),
        ("match", "is a keyword of Python"),
        ("json", "is a module of Python's own"),
        ("a" * 41, "has 41 letters"),
        ("taken", "There is a "),
    ],
)
def test_a_name_that_cannot_work_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, because: str
) -> None:
    """In a sentence that says why, with the exit code of misuse, and nothing is written."""
    (folder / "taken").mkdir()

    assert 2 == main(["new", name])

    assert because in capsys.readouterr().err
    assert [folder / "taken"] == [*folder.rglob("*")]


def test_a_project_is_written_where_no_extra_is_installed(folder: Path) -> None:
    """A plain installation can begin: the project itself asks for the extras that it needs."""
    packages = ["cyclopts", "msgspec", "redis", "rich", "boto3"]
    code = f"import sys; sys.modules.update(dict.fromkeys({packages})); from lowkiq_lambda.cli import main; main({{}})"

    for words, said in ((["new", "shop"], "shop/ has "), (["new", "1x"], "error: '1x' cannot be the name")):
        command = [sys.executable, "-c", f"{code.format(words)}"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert 0 == done.returncode
        assert (done.stdout + done.stderr).startswith(said)

    assert OWN | STACK | MAKEFILES | OTHERS == files(folder / "shop")

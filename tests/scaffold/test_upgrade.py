"""`lowkiq upgrade`: the stack's files follow the library, and nothing that somebody has edited is lost."""

from pathlib import Path
from typing import Final

import pytest

from lowkiq_lambda.cli import main
from lowkiq_lambda.stack.scaffold.owned import sign, signature

TEMPLATE: Final = "lowkiq/template.yaml"
NETWORK: Final = "lowkiq/infra/network.yaml"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """The current folder: a project that was just made."""
    monkeypatch.chdir(tmp_path)
    main(["new", "shop"])
    capsys.readouterr()
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


def contents(folder: Path) -> dict[str, str]:
    """The text of each file, by its path."""
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def write_earlier(file: Path) -> None:
    """Put a file there as an earlier library wrote it, and nobody has touched it since."""
    file.parent.mkdir(exist_ok=True)
    file.write_text(sign("Resources: {}\n").replace(" 0.1.0,", " 0.0.9,"))


@pytest.mark.parametrize("words", [["upgrade"], ["upgrade", "--check"]])
def test_a_new_project_needs_no_upgrade(shop: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    """Its files are those of the library, and stay so."""
    before = contents(shop)

    assert 0 == main(words)

    assert before == contents(shop)
    assert "All files of the stack are those of lowkiq_lambda 0.1.0.\n" == capsys.readouterr().out


def test_a_file_that_nobody_touched_is_replaced(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Older ones, one that is missing, and one that the library has no more; and the project notes the version."""
    newest = contents(shop)
    write_earlier(shop / TEMPLATE)
    write_earlier(shop / "lowkiq/infra/gone.yaml")
    (shop / NETWORK).unlink()
    (shop / "pyproject.toml").write_text(
        newest["pyproject.toml"].replace('\nversion = "0.1.0"\n\n[tool.p', '\nversion = "0.0.9"\n\n[tool.p')
    )

    assert 0 == main(["upgrade"])

    assert newest == contents(shop)
    assert [f"replaced  {TEMPLATE}", f"added     {NETWORK}", "removed   lowkiq/infra/gone.yaml"] == (
        capsys.readouterr().out.splitlines()
    )


def test_an_edited_file_stays(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The library's is written beside it, the difference is shown, and the exit code says that there is work to do."""
    newest = contents(shop)
    edited = newest[TEMPLATE].replace("Default: 256", "Default: 512")
    (shop / TEMPLATE).write_text(edited)

    assert 1 == main(["upgrade"])

    assert newest | {TEMPLATE: edited, f"{TEMPLATE}.new": newest[TEMPLATE]} == contents(shop)
    said = capsys.readouterr().out.splitlines()
    assert f"edited    {TEMPLATE} stays as it is, and the library's is in {TEMPLATE}.new" == said[0]
    assert ["-    Default: 512", "+    Default: 256"] == [line for line in said if line.startswith(("- ", "+ "))]

    (shop / f"{TEMPLATE}.new").replace(shop / TEMPLATE)
    assert 0 == main(["upgrade"])


def test_a_file_without_its_header_is_somebodys_own(shop: Path) -> None:
    """Who takes the header away has taken the file over."""
    (shop / NETWORK).write_text("Resources: {}\n")

    assert 1 == main(["upgrade"])

    assert "Resources: {}\n" == (shop / NETWORK).read_text()
    assert (shop / f"{NETWORK}.new").exists()


def test_a_check_changes_nothing(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It tells what an upgrade would do, and ends with 1 where that is anything."""
    write_earlier(shop / TEMPLATE)
    before = contents(shop)

    assert 1 == main(["upgrade", "--check"])

    assert before == contents(shop)
    assert f"would be replaced  {TEMPLATE}\n" == capsys.readouterr().out


def test_an_upgrade_finds_the_project_from_below(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of it as at its top."""
    write_earlier(shop / TEMPLATE)
    monkeypatch.chdir(shop / "app")

    assert 0 == main(["upgrade"])

    signed = signature((shop / TEMPLATE).read_text())
    assert signed is not None
    assert "Resources: {}\n" != signed.body


def test_the_files_of_a_newer_library_are_not_replaced(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Somebody with an older installation is told to update it."""
    text = (shop / "pyproject.toml").read_text()
    (shop / "pyproject.toml").write_text(text.replace('version = "0.1.0"\n\n[tool.p', 'version = "0.10.0"\n\n[tool.p'))
    before = contents(shop)

    assert 2 == main(["upgrade"])

    assert before == contents(shop)
    assert "are of lowkiq_lambda 0.10.0, and 0.1.0 is installed" in capsys.readouterr().err


def test_elsewhere_there_is_nothing_to_upgrade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder without a stack is named."""
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)

    assert 2 == main(["upgrade"])

    assert f"{tmp_path} has no lowkiq/template.yaml" in capsys.readouterr().err


@pytest.mark.parametrize("where", ["", "app"])
def test_an_older_template_is_not_built_for(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    """The build names both versions and the command, before anything is installed."""
    text = (shop / TEMPLATE).read_text()
    (shop / TEMPLATE).write_text(text.replace('LOWKIQ_STACK_VERSION: "1"', 'LOWKIQ_STACK_VERSION: "0"'))
    monkeypatch.chdir(shop / where)

    assert 1 == main(["stack", "build", "DrainFunction", "python3.13-arm64", "built"])

    refused = f"{shop / TEMPLATE} is of stack version 0, and this lowkiq_lambda needs 1: run `lowkiq upgrade`"
    assert refused in capsys.readouterr().err
    assert not (shop / where / "built").exists()

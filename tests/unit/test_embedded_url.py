"""`embedded:` names a folder, and the same one from everywhere in a project."""

from pathlib import Path

import pytest

from lowkiq_lambda import ConfigError
from lowkiq_lambda.providers.embedded.url import folder_of


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of a project; the current folder lies two below."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "shop" / "jobs").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "shop" / "jobs")
    return tmp_path


@pytest.mark.parametrize(
    ("url", "folder"), [("embedded:", ".lowkiq"), ("embedded:data/jobs", "data/jobs"), ("embedded:other", "other")]
)
def test_a_folder_lies_at_the_root_of_the_project(project: Path, url: str, folder: str) -> None:
    """Whichever folder of the project a program is started in, it finds the same server."""
    assert project / folder == folder_of(url)


def test_a_checkout_is_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest mark counts: a repository inside of a project has a server of its own."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "checkout" / ".git").mkdir(parents=True)
    (tmp_path / "checkout" / "docs").mkdir()
    monkeypatch.chdir(tmp_path / "checkout" / "docs")

    assert tmp_path / "checkout" / ".lowkiq" == folder_of("embedded:")


def test_outside_of_a_project_the_current_folder_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no folder above has a mark, the server's folder is made in this one."""
    monkeypatch.chdir(tmp_path)

    assert tmp_path / ".lowkiq" == folder_of("embedded:")


@pytest.mark.usefixtures("project")
def test_a_folder_may_be_named_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An absolute folder is itself, and ~ is the user's own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    assert Path("/var/lib/jobs") == folder_of("embedded:/var/lib/jobs")
    assert tmp_path / "home" / "jobs" == folder_of("embedded:~/jobs")


@pytest.mark.parametrize(
    "url", ["embedded://localhost", "embedded:data?db=1", "embedded:data#1", "embedded:~nobody0/x"]
)
def test_what_is_no_folder_is_refused(url: str) -> None:
    """A host, an option or an unknown user is an error that shows the URL."""
    with pytest.raises(ConfigError, match=r"^redis_url='embedded:.* is refused: ") as refused:
        folder_of(url)

    assert "redis_url" == refused.value.setting

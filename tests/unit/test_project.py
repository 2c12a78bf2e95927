"""What the pyproject.toml of a project says about its app."""

from pathlib import Path

import pytest

from lowkiq_lambda import ConfigError
from lowkiq_lambda.settings.project import app_folder, project_app, project_root


def write(folder: Path, text: str) -> None:
    """The folder's pyproject.toml."""
    (folder / "pyproject.toml").write_text(text)


def test_the_nearest_pyproject_names_the_app(tmp_path: Path) -> None:
    """It is found from each folder below, and one that lies nearer counts."""
    write(tmp_path, '[tool.lowkiq]\napp = "shop.jobs:app"\n')
    below = tmp_path / "shop" / "tests"
    below.mkdir(parents=True)
    inner = tmp_path / "inner"
    inner.mkdir()
    write(inner, '[project]\nname = "inner"\n')

    assert ("shop.jobs:app", tmp_path) == (project_app(below), app_folder(below))
    assert (None, inner) == (project_app(inner), app_folder(inner))


def test_a_checkout_without_a_pyproject_has_a_root_and_no_app_of_its_own(tmp_path: Path) -> None:
    """A repository marks a project; the pyproject.toml may lie above it."""
    write(tmp_path, '[tool.lowkiq]\napp = "shop:app"\n')
    checkout = tmp_path / "checkout"
    (checkout / ".git").mkdir(parents=True)

    assert (checkout, "shop:app") == (project_root(checkout), project_app(checkout))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[tool.lowkiq\n", "pyproject.toml cannot be read: "),
        ("[tool.lowkiq]\napp = 5\n", r"\[tool.lowkiq\] app must be a text as 'shop.jobs:app', not 5"),
        ('[tool.lowkiq]\napp = ""\n', r"\[tool.lowkiq\] app must be a text as 'shop.jobs:app', not ''"),
        ('[tool.lowkiq]\napps = "shop:app"\n', r"\[tool.lowkiq\] has no 'apps'; it has app, version"),
        ("[tool]\nlowkiq = 1\n", r"\[tool.lowkiq\] must be a table"),
    ],
)
def test_what_cannot_work_is_refused_by_its_place(tmp_path: Path, text: str, why: str) -> None:
    """The sentence names the file, and what is wrong in it."""
    write(tmp_path, text)

    with pytest.raises(ConfigError, match=f"^{tmp_path}.*{why}"):
        project_app(tmp_path)

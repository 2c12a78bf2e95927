"""Which server the commands of `lowkiq` use, where the app names none."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.cli import main
from tests.local.programs import Project


def test_an_app_without_a_url_is_on_the_embedded_server_of_its_project(tmp_path: Path) -> None:
    """What one command pushes the next performs, from a folder below, too: the server that `lowkiq run` starts."""
    project = Project(tmp_path)
    module = tmp_path / "jobs.py"
    module.write_text(module.read_text().replace("redis_url='embedded:', ", ""))
    (tmp_path / "pyproject.toml").write_text('[tool.lowkiq]\napp = "jobs:app"\n')

    pushed = project.command("push", "Greet", "Ada")
    drained = project.command("drain")

    assert (0, "Ada: shard 1, due now\n", "") == (pushed.returncode, pushed.stdout, pushed.stderr)
    assert (0, "done       1\n", "") == (drained.returncode, drained.stdout, drained.stderr)
    assert ["Ada"] == project.greeted()


def test_in_a_deployment_a_server_has_to_be_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An operator whose shell lacks the URL is told so, and does not look at an empty server of development."""
    module = ModuleType("app_without_a_server")
    vars(module)["app"] = Lowkiq(Config())
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setenv("LOWKIQ_ENV", "production")

    assert 2 == main(["stats", "--app", f"{module.__name__}:app"])
    assert "No Redis is named, and LOWKIQ_ENV=production says that this is a deployment" in capsys.readouterr().err

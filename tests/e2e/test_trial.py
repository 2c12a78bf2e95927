"""The trial under load, in its short form: `python -m local.trial` runs it for minutes."""

import shutil
from pathlib import Path

import pytest

import local.trial
from local.trial.__main__ import tried
from tests.kit.servers import LocalCloud, Server

SECONDS = 20
PUSHED = 50 * SECONDS


@pytest.mark.nightly("updates, refusals and environments at once are tried with a small function in each check")
@pytest.mark.timeout(400)
def test_nothing_is_lost_while_a_stack_changes_under_load(
    cloud: LocalCloud, packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1 to P3: another release, a throttle, a rotation and a rollback, at 50 pushes a second."""
    for name, value in cloud.environment.items():
        monkeypatch.setenv(name, value)
    own = tmp_path / "packages"
    shutil.copytree(packages, own)
    for package in own.iterdir():
        shutil.copytree(Path(local.trial.__file__).parent / "app", package, dirs_exist_ok=True)
        for compiled in package.glob("__pycache__/jobs.*"):
            compiled.unlink()

    with Server() as server:
        verdict = tried(cloud, server.url, own, tmp_path, SECONDS)

    assert ([], [], []) == (verdict.lost, verdict.out_of_order, verdict.overlaps)
    assert verdict.done >= 0.5 * PUSHED
    assert {1, 2} == verdict.releases.keys()

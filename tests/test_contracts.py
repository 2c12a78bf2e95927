"""The contracts between modules have no holes: imports that break one are planted in a copy, and each is refused."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

import pytest

ROOT: Final = Path(__file__).parents[1]


class Planted(NamedTuple):
    """An import that some contract forbids, by both modules."""

    importer: str
    imported: str


PLANTED: Final = (
    # Pushes and drains load nothing that is for people.
    Planted("lowkiq_lambda.engine.visit", "lowkiq_lambda.operate.queue_operations"),
    Planted("lowkiq_lambda.engine.budget", "lowkiq_lambda.operate.inspect.jobs"),
    Planted("lowkiq_lambda.push.client", "lowkiq_lambda.operate.acts.action_runner"),
    # Helpers of jobs are for jobs.
    Planted("lowkiq_lambda.engine.perform", "lowkiq_lambda.iterate.sequences"),
    # The store: people over shards over servers, and nothing of what is above it.
    Planted("lowkiq_lambda.store.shard.waking", "lowkiq_lambda.operate.inspect.metrics"),
    Planted("lowkiq_lambda.store.server.pipelines", "lowkiq_lambda.store.shard.keys"),
    Planted("lowkiq_lambda.store.shard.pushing", "lowkiq_lambda.engine.queue"),
    # Redis, terminals, AWS and the web have one package each that knows them.
    Planted("lowkiq_lambda.dashboard.charts", "redis"),
    Planted("lowkiq_lambda.store.shard.keys", "redis"),
    Planted("lowkiq_lambda.operate.queue_operations", "redis"),
    Planted("lowkiq_lambda.engine.lease", "cyclopts"),
    Planted("lowkiq_lambda.engine.outcomes", "boto3"),
    Planted("lowkiq_lambda.app", "starlette"),
    Planted("lowkiq_lambda.app", "sqlalchemy"),
    # Kits for frameworks are imported by their users, and each framework by its kit.
    Planted("lowkiq_lambda.cli.program", "lowkiq_lambda.contrib.asgi"),
    Planted("lowkiq_lambda.app", "django"),
    Planted("lowkiq_lambda.contrib.asgi", "fastapi"),
    # Entrances are imported by nobody below them.
    Planted("lowkiq_lambda.engine.drainer", "lowkiq_lambda.cli.program"),
    Planted("lowkiq_lambda.engine.queue", "lowkiq_lambda.aws.logs"),
    Planted("lowkiq_lambda.engine.perform", "lowkiq_lambda.dashboard.charts"),
    Planted("lowkiq_lambda.push.client", "lowkiq_lambda.engine.drainer"),
    Planted("lowkiq_lambda.aws.events", "lowkiq_lambda.local.daemon"),
    # Who runs one process does not load what runs several.
    Planted("lowkiq_lambda.local.splitters", "lowkiq_lambda.local.processes.child"),
    # One module evaluates expressions, and it belongs to nobody's cold start.
    Planted("lowkiq_lambda.schedules.times", "cronsim"),
    Planted("lowkiq_lambda.schedules.times", "lowkiq_lambda.schedules.entry"),
    # Telemetry is imported by who asks for it.
    Planted("lowkiq_lambda.engine.coroutines", "opentelemetry"),
    Planted("lowkiq_lambda.aws.logs", "sentry_sdk"),
    Planted("lowkiq_lambda.local.traces", "lowkiq_lambda.contrib.otel"),
    # Values know of no part that works with them.
    Planted("lowkiq_lambda.jobs.job", "lowkiq_lambda.store.shard.codec"),
    Planted("lowkiq_lambda.settings.config", "lowkiq_lambda.app"),
)
NEW_MODULES: Final = ("lowkiq_lambda.engine.planted", "lowkiq_lambda.operate.inspect.planted", "lowkiq_lambda.planted")
"""Modules that no contract gives a place."""

pytestmark = pytest.mark.xdist_group("contracts")  # which are judged once


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `lint-imports` says of a copy with all of it."""
    folder = tmp_path_factory.mktemp("planted")
    shutil.copytree(
        ROOT / "lowkiq_lambda", folder / "lowkiq_lambda", ignore=shutil.ignore_patterns("__pycache__", "static")
    )
    shutil.copy(ROOT / "pyproject.toml", folder)
    for importer, imported in PLANTED:
        with path_of(folder, importer).open("a", encoding="utf-8") as module:
            # As late as an import can be, and found all the same.
            module.write(f"\n\ndef planted_{imported.replace('.', '_')}():\n    import {imported}\n")
    for name in NEW_MODULES:
        path_of(folder, name).write_text("", encoding="utf-8")
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--no-cache"],
        cwd=folder,
        env={"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert 1 == done.returncode, done.stderr
    # Its lines are cut at the width of a terminal.
    return " ".join(done.stdout.split())


def path_of(folder: Path, module: str) -> Path:
    """Where the copy has the module."""
    return folder / f"{module.replace('.', '/')}.py"


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: f"{planted.importer} -> {planted.imported}")
def test_an_import_that_crosses_layers_is_refused(refused: str, planted: Planted) -> None:
    """Each of them is named, also where a function imports it when it is called."""
    assert re.search(rf"\b{re.escape(planted.importer)} -> {re.escape(planted.imported)} \(l\.\d+\)", refused), refused


@pytest.mark.parametrize("module", NEW_MODULES)
def test_a_module_without_a_place_is_refused(refused: str, module: str) -> None:
    """Somebody who adds one has to say what it may import."""
    assert re.search(rf"- {re.escape(module)}(?= |$)", refused), refused

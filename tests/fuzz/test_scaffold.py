"""The handler of a new project ends as a plain run ends, as the project's own tests try it for longer."""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from lowkiq_lambda.stack import scaffold
from lowkiq_lambda.testing import OwnServer, app_under_test

FILES = Path(scaffold.__file__).parent / "files" / "project" / "app"
SCENARIOS = 25


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of the jobs, in a project that was just written."""
    (tmp_path / "app").mkdir()
    for file in FILES.glob("*.py.txt"):
        (tmp_path / "app" / file.name.removesuffix(".txt")).write_text(file.read_text())
    monkeypatch.setenv("ORDERS_DATABASE", str(tmp_path / "orders.db"))
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("app", "app.jobs", "app.orders"):
        # Afterwards they are forgotten.
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
        del sys.modules[name]
    return import_module("app.jobs")


def test_the_handler_of_a_new_project(jobs: ModuleType, lowkiq_test_server: OwnServer) -> None:
    """Deaths, failures, freezes, late versions and merging change nothing."""
    orders = jobs.orders

    def state() -> list[object]:
        with orders.connected() as database:
            return [orders.find(database, id) for id in ("1", "2", "3")]

    def reset() -> None:
        with orders.connected() as database:
            database.execute("DELETE FROM orders")

    statuses = [jobs.OrderChanged(status) for status in ("new", "paid", "sent")]
    with app_under_test(jobs.app, lowkiq_test_server) as kit:
        report = kit.fuzz(jobs.SyncOrder, state=state, reset=reset, payloads=statuses, scenarios=SCENARIOS)

    assert SCENARIOS == report.scenarios
    assert report.faults["freeze"] > 0

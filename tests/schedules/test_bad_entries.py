"""Entries of code that cannot work: the app does not start, or one is shown broken while the others load and fire."""

import logging
from pathlib import Path
from typing import Any

import pytest

from lowkiq_lambda import DeclarationError, Lowkiq
from lowkiq_lambda.cli.schedules.sources import read_checked
from lowkiq_lambda.operate.doctor.queue_state import read_queues
from lowkiq_lambda.operate.doctor.recurring import schedule_findings
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.firing import MINUTE, NOON, at_noon
from tests.kit.handlers import Notes
from tests.kit.workers import declare

BAD = "cron 'every day at 4' is not an expression: did you mean '0 4 * * *'?"


@pytest.fixture
def lenient(make_app: MakeApp) -> Lowkiq:
    """An app that reports bad entries."""
    return make_app(bad_entries="report")


def declare_some(app: Lowkiq, worker: Any) -> None:
    """Three entries, of which the middle one cannot work."""
    app.every(MINUTE, worker, id="first")
    app.cron("every day at 4", worker, id="bad")
    app.every(MINUTE, worker, id="last")


def test_a_bad_entry_keeps_the_app_from_starting_by_default(app: Lowkiq, queue_name: str) -> None:
    """A mistake is found where it is made, not by a job that never ran."""
    with pytest.raises(DeclarationError) as refused:
        declare_some(app, declare(app, queue_name, Notes()))
    assert BAD == str(refused.value)


def test_a_reported_one_is_shown_broken_and_rings(
    lenient: Lowkiq, clock: ManualClock, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The others fire; logs, the summary of the look, `check`, and the list of entries have the reason."""
    worker = declare(lenient, queue_name, Notes())
    at_noon(clock)
    declare_some(lenient, worker)
    lenient.schedules.tick()
    clock.advance(60.0)
    with caplog.at_level(logging.WARNING):
        ticked = lenient.schedules.tick()

    assert [("first", NOON + 60.0), ("last", NOON + 60.0)] == sorted((one.name, one.planned) for one in ticked.fired)
    assert [f"entry 'bad' of {queue_name!r}: {BAD}"] == ticked.problems
    assert [f"Entry 'bad' of {queue_name!r}: {BAD}"] == lenient.schedules.check()
    assert [("bad", "code", BAD), ("first", "code", None), ("last", "code", None)] == [
        (view.name, view.source, view.problem) for view in lenient.schedules.all(worker)
    ]
    assert {"first", "last"} == {one.id for one in lenient.schedules.run(all=True)}
    lenient.every(MINUTE, worker, id="off as declared", enabled=False)
    own = read_queues(lenient.core, lenient.core.backend, only_own=True).found
    (finding,) = schedule_findings(lenient.operate, own, lenient.core.backend)
    assert ("broken", f"{queue_name}/bad", True) == (finding.mark, finding.about, BAD in finding.says)


def test_a_name_that_code_declares_twice_is_reported_too(lenient: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """The first one fires, and is the one that is listed."""
    worker = declare(lenient, queue_name, Notes())
    at_noon(clock)
    lenient.every(MINUTE, worker, id="poll", payload=1)
    lenient.every(MINUTE, worker, id="poll", payload=2)

    (view,) = lenient.schedules.all(worker)
    assert view.entry is not None
    assert (1, None) == (view.entry.payload, view.problem)
    assert [True] == ["already" in problem for problem in lenient.schedules.check()]


def test_a_file_with_bad_tables_loads_the_others(lenient: Lowkiq, queue_name: str, tmp_path: Path) -> None:
    """Whether a key, a value, the times or the name of the worker are wrong; a file that is not TOML is an error."""
    declare(lenient, queue_name, Notes())
    file = tmp_path / "schedules.toml"
    tables = {
        "good": f'worker = "{queue_name}"\nid = 1\nevery = 60',
        "key": f'worker = "{queue_name}"\nid = 1\ncorn = "* * * * *"',
        "times": f'worker = "{queue_name}"\nid = 1\ncron = "0 25 * * *"',
        "worker": 'worker = "nobody"\nid = 1\nevery = 60',
        "none": "id = 1\nevery = 60",
    }
    file.write_text("".join(f"[{name}]\n{text}\n" for name, text in tables.items()))
    lenient.entries_from(file)
    file.write_text("[")

    assert ["good"] == [entry.name for entry in lenient.schedules.declared]
    assert {"key": queue_name, "times": queue_name, "worker": "nobody", "none": ""} == {
        one.name: one.queue_name for one in lenient.schedules.broken
    }
    with pytest.raises(DeclarationError, match="cannot be read"):
        lenient.entries_from(file)


def test_commands_that_read_an_app_say_which_entry_is_broken(
    lenient: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`diff` and `load` need entries that can work, so they refuse."""
    declare_some(lenient, declare(lenient, queue_name, Notes()))
    monkeypatch.setattr("lowkiq_lambda.cli.schedules.sources.load_app", lambda *_: lenient)
    with pytest.raises(DeclarationError, match="Entry 'bad' of"):
        read_checked("shop:app")

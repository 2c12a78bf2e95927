"""Drains in children that are really killed and stopped, and what that says about a finding."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import create_engine

from lowkiq_lambda import Batch, ConfigError, Lowkiq, Worker
from lowkiq_lambda.testing import AppUnderTest
from lowkiq_lambda.testing.fuzz.options import FuzzOptions, all_options
from lowkiq_lambda.testing.fuzz.report import FuzzReport
from lowkiq_lambda.testing.fuzz.run import FuzzRun, fuzz
from tests.fuzz import on_engine

app = on_engine.app
place = SimpleNamespace()
memory: dict[str, int] = {}
CONFIRMED = "  confirmed by a real kill"
NOT_SHOWN = "  a real kill does not show it"


def folder() -> Path:
    """Where the state is: files, which a child changes for all."""
    path: Path = place.folder
    return path


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> Iterator[None]:
    """A new folder."""
    place.folder = tmp_path
    yield
    del place.folder


def reset() -> None:
    """No file is there."""
    for file in folder().glob("id*"):
        file.unlink()


def state() -> dict[str, str]:
    """The files of ids."""
    return {file.name: file.read_text() for file in sorted(folder().glob("id*"))}


@app.worker
class CountsRuns(Worker[Any]):
    """A line for each run, and one of the process and its connection."""

    merge = "never"

    def perform(self, batch: Batch[Any]) -> None:
        """Count."""
        for id in batch:
            with (folder() / f"id {id}").open("a") as file:
                file.write("run\n")
            with (folder() / "processes").open("a") as file:
                file.write(f"{os.getpid()} {app.core.backend.client.client_id()}\n")


@app.worker
class CleansUp(Worker[Any]):
    """What is cleaned up at the end of a block is not by a kill."""

    merge = "never"

    def perform(self, batch: Batch[Any]) -> None:
        """Note that it failed."""
        with ExitStack() as stack:
            stack.callback((folder() / "id failed").write_text, "failed")
            (folder() / f"id {min(batch)}").write_text("done")
            stack.pop_all()


@app.worker
class CountsInMemory(Worker[Any]):
    """Its state ends with its process."""

    merge = "never"

    def perform(self, batch: Batch[Any]) -> None:
        """Count."""
        for id in batch:
            memory[id] = memory.get(id, 0) + 1


@pytest.fixture
def lowkiq_app() -> Lowkiq:
    """The app of these handlers."""
    return app


def fuzzed(kit: AppUnderTest, worker: Any, **options: Any) -> FuzzReport:
    """The report."""
    common = {"payloads": ["a"], "state": state, "reset": reset, **options}
    return fuzz(kit.app, kit.clock, worker, FuzzOptions(**common))  # type: ignore[typeddict-item]  # a dict by its names


def verdicts(report: FuzzReport) -> list[str]:
    """Lines about kills."""
    return [line for one in report.findings for line in one.story if "real kill" in line]


AFTER = '[["push","1","a",1.0],["drain","after_handler",0]]'
DIES = '[["push","1","a",1.0],["drain","{kind}",0{line}]]'


def test_a_real_kill_confirms_a_finding(lowkiq: AppUnderTest) -> None:
    """At a line, and beside the handler."""
    at_line = DIES.format(kind="die", line=',"test_forked.py:CountsRuns.perform+5"')

    assert [[CONFIRMED]] * 2 == [verdicts(fuzzed(lowkiq, CountsRuns, plan=plan)) for plan in (at_line, AFTER)]


def test_a_real_kill_may_not_show_a_finding(lowkiq: AppUnderTest) -> None:
    """If its cause is how a death is played."""
    plan = DIES.format(kind="die", line=',"test_forked.py:CleansUp.perform+4"')

    assert [NOT_SHOWN] == verdicts(fuzzed(lowkiq, CleansUp, plan=plan))


def test_state_in_memory_has_no_verdict(lowkiq: AppUnderTest) -> None:
    """A child changes nothing of it; nor is a fuzz without a reset or with a failure replayed."""
    report = fuzzed(lowkiq, CountsInMemory, state=lambda: memory, reset=memory.clear, plan=AFTER)
    failed = DIES.format(kind="fail", line=',"test_forked.py:CountsRuns.perform+5"')

    assert "repeat" in [one.fault_class for one in report.findings]
    assert [] == verdicts(report)
    failing = fuzzed(lowkiq, CountsRuns, plan=failed)
    assert ([], 1) == (verdicts(failing), len(failing.findings))


def test_each_drain_is_a_child_with_a_connection_of_its_own(lowkiq: AppUnderTest) -> None:
    """The fault kills or stops it, others go on, and a stopped one goes on later."""
    plan = (
        '[["push","1","a",1.0],["drain","freeze",0,"test_forked.py:CountsRuns.perform+5"],["drain"],["thaw"],'
        '["push","2","a",1.0],["drain","die",0,"test_forked.py:CountsRuns.perform+5"]]'
    )
    report = fuzzed(lowkiq, CountsRuns, plan=plan, fork=True)

    lines = [line.split() for line in (folder() / "processes").read_text().splitlines()]
    client = lowkiq.app.core.backend.client.client_id()
    assert {"freeze": 1, "die": 1} == dict(report.faults)
    assert "actual    {'id 1': 'run\\nrun\\n', 'id 2': 'run\\nrun\\n'}" in str(report)
    in_children = {(pid, connection) for pid, connection in lines if pid != str(os.getpid())}
    assert 3 <= len(in_children) == len({pid for pid, _ in in_children})
    assert len(in_children) == len({connection for _, connection in in_children} - {str(client)})


def test_a_fuzz_in_children(lowkiq: AppUnderTest) -> None:
    """It finds what one in this process finds, and its plan replays in either."""
    alone: Any = {"ids": 1, "merges": False, "versions": False}
    report = fuzzed(lowkiq, CountsRuns, scenarios=5, fork=True, faults=["after_handler"], **alone)

    [finding] = report.findings
    assert ("repeat", 1) == (finding.fault_class, finding.plan.count("after_handler"))
    assert ["repeat"] == [one.fault_class for one in fuzzed(lowkiq, CountsRuns, plan=finding.plan).findings]
    assert [] == fuzzed(lowkiq, CountsRuns, scenarios=2, fork=True, faults=[], **alone).findings


def test_a_child_that_waits_for_the_lock_of_a_stopped_one(lowkiq: AppUnderTest) -> None:
    """The stopped one goes on."""
    engine = create_engine(f"sqlite:///{folder() / 'shop.db'}")
    on_engine.use(engine)
    worker = on_engine.CounterOnEngineMended
    plan = (
        '[["push","1",{"change":"a","points":5},1.0],'
        '["drain","freeze",0,"on_engine.py:CounterOnEngineMended.perform+6"],["drain"],["thaw"]]'
    )
    options = on_engine.options_of("CounterOnEngineMended", plan=plan, fork=True, isolate=engine)
    run = FuzzRun(lowkiq.app, lowkiq.clock, worker, all_options(worker, options), lambda *_: None)
    try:
        report = run.run()
    finally:
        on_engine.drop()
        engine.dispose()

    assert run._oracle.last.was_waited_for
    assert ({"freeze": 1}, []) == (dict(report.faults), report.findings)


def test_what_cannot_be_forked_is_refused(lowkiq: AppUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the reason."""
    with pytest.raises(ConfigError, match="fork=: a run in a child ends differently"):
        fuzzed(lowkiq, CountsInMemory, state=lambda: memory, reset=memory.clear, fork=True)
    with closing(sqlite3.connect(":memory:")) as connection:
        monkeypatch.setitem(globals(), "open_connection", connection)
        with pytest.raises(ConfigError, match="fork=: a variable of a module holds a connection"):
            fuzzed(lowkiq, CountsRuns, fork=True)
        monkeypatch.delitem(globals(), "open_connection")
    monkeypatch.delattr(os, "fork")
    with pytest.raises(ConfigError, match=r"fork= needs a system with os\.fork"):
        fuzzed(lowkiq, CountsRuns, fork=True)


@app.worker
class Exits(Worker[Any]):
    """It ends its process by itself, if that is a child."""

    def perform(self, _batch: Batch[Any]) -> None:
        """End."""
        if os.getpid() != place.pid:
            os._exit(1)


def test_a_child_that_ends_by_itself_is_told(lowkiq: AppUnderTest) -> None:
    """As nothing is known of its drain then."""
    place.pid = os.getpid()

    with pytest.raises(ConfigError, match=r"The forked drain broke: it ended without a word\."):
        fuzzed(lowkiq, Exits, fork=True)

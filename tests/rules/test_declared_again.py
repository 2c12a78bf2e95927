"""A worker that is declared twice under one name: by a cell of a notebook, by a reload, and by mistake."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pytest

from lowkiq_lambda import Debounce, DeclarationError, Worker
from lowkiq_lambda.testing import AppUnderTest, ManualClock
from tests.kit.apps import MakeApp

ONE = """
from lowkiq_lambda import Lowkiq, Worker

app = globals().get("app") or Lowkiq()
calls = globals().get("calls") or []


@app.worker
class SyncOrder(Worker):
    def perform(self, batch):
        calls.append(({answer}, dict(batch)))


@app.worker(queue_name="function")
def sync(batch):
    calls.append(({answer}, dict(batch)))
"""


@pytest.fixture
def written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lowkiq: AppUnderTest
) -> Iterator[Callable[[str], ModuleType]]:
    """Writes a module `cells`, and imports it, or reloads it; its app is that of the test."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(code: str) -> ModuleType:
        (tmp_path / "cells.py").write_text(code.replace("Lowkiq()", "__import__('builtins').app_of_cells"))
        importlib.invalidate_caches()
        module = sys.modules.get("cells")
        return importlib.reload(module) if module else importlib.import_module("cells")

    monkeypatch.setattr("builtins.app_of_cells", lowkiq.app, raising=False)
    yield write
    sys.modules.pop("cells", None)


def test_the_newer_of_two_declarations_counts_after_a_reload(
    written: Callable[[str], ModuleType], lowkiq: AppUnderTest, caplog: pytest.LogCaptureFixture
) -> None:
    """Jobs that wait are performed by the newer handler, a class or a function, and a line says so."""
    module = written(ONE.format(answer=1))
    module.SyncOrder.push("before")
    lowkiq.drain()
    module.SyncOrder.push("a", "waits")
    older = module.SyncOrder
    module = written(ONE.format(answer="'other'"))
    module.sync.push("b")
    older.push("c")

    lowkiq.drain()

    assert {(1, "before", ""), ("other", "a", "waits"), ("other", "b", ""), ("other", "c", "")} == {
        (answer, id, *payloads) for answer, batch in module.calls for id, payloads in batch.items()
    }
    assert [
        "SyncOrder is declared again, as by a cell that runs twice: the newer one counts",
        "sync is declared again, as by a cell that runs twice: the newer one counts",
    ] == caplog.messages
    assert [module.SyncOrder, module.sync.worker] == lowkiq.app.workers


def test_one_name_twice_in_a_module_is_a_mistake(written: Callable[[str], ModuleType]) -> None:
    """The first import of a module that has pasted a worker twice refuses the second."""
    twice = ONE.format(answer=1)

    with pytest.raises(
        DeclarationError, match=r"cells\.SyncOrder and cells\.SyncOrder are both declared for the queue"
    ):
        written(twice + twice.partition("calls = globals().get")[2].partition("\n")[2])


def test_another_module_does_not_take_over_a_queue(written: Callable[[str], ModuleType], lowkiq: AppUnderTest) -> None:
    """A class of the same name in another module is another worker."""
    written(ONE.format(answer=1))

    with pytest.raises(DeclarationError, match=f"{__name__}.SyncOrder and cells.SyncOrder are both declared"):
        lowkiq.app.worker(type("SyncOrder", (Worker,), {"__module__": __name__, "perform": lambda *_: None}))


@pytest.mark.parametrize(("is_interactive", "refusals"), [(False, 1), (True, 0)])
def test_a_script_declares_each_name_once_and_a_session_may_again(
    lowkiq: AppUnderTest, monkeypatch: pytest.MonkeyPatch, *, is_interactive: bool, refusals: int
) -> None:
    """A class that was pasted twice is refused in a script; at a prompt the newer one counts, also by a plain call."""
    if is_interactive:
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    refused = 0
    for _ in range(2):
        worker = type("Typed", (Worker,), {"__module__": "__main__", "perform": lambda *_: None})
        monkeypatch.setattr(sys.modules["__main__"], "Typed", worker, raising=False)
        try:
            lowkiq.app.worker(worker)
        except DeclarationError:
            refused += 1

    assert refusals == refused


def test_a_name_that_stands_for_something_else_is_another_worker(lowkiq: AppUnderTest) -> None:
    """Whatever the module has under the name of a worker, two workers of a queue are refused in a sentence."""
    lowkiq.app.worker(type("First", (Worker,), {"__module__": __name__, "queue_name": "q", "perform": lambda *_: None}))

    with pytest.raises(DeclarationError, match="are both declared for the queue 'q'"):
        lowkiq.app.worker(
            type("ONE", (Worker,), {"__module__": __name__, "queue_name": "q", "perform": lambda *_: None})
        )


def test_a_session_declares_an_entry_again(lowkiq: AppUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script is refused; at a prompt the newer times count, in a process that has fired by the older ones, too."""
    worker = lowkiq.app.worker(type("Typed", (Worker,), {"perform": lambda *_: None}))
    lowkiq.app.every(60, worker, id="a")
    lowkiq.drain()
    with pytest.raises(DeclarationError, match="has a schedule entry 'a' already"):
        lowkiq.app.every(3_600, worker, id="a")

    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    lowkiq.app.every(3_600, worker, id="a")

    assert [] == lowkiq.drain().done
    lowkiq.advance(minutes=1)
    assert [] == lowkiq.drain().done
    lowkiq.advance(hours=1)
    assert ["a"] == lowkiq.drain().done


def test_a_reload_declares_entries_again(written: Callable[[str], ModuleType], lowkiq: AppUnderTest) -> None:
    """Behind their worker, of which the newer one counts; the same entry twice in one run of the module is refused."""
    every = "\napp.every({seconds}, SyncOrder, id='a')\napp.every(60, sync, id='a')"
    written(ONE.format(answer=1) + every.format(seconds=60))
    again = [entry.times for entry in lowkiq.app.schedules.declared]
    written(ONE.format(answer=2) + every.format(seconds=3_600))
    entries = [entry.times for entry in lowkiq.app.schedules.declared]

    assert (2, again[1]) == (len(entries), entries[1])
    assert again[0] != entries[0]
    with pytest.raises(DeclarationError, match="has a schedule entry 'a' already"):
        written(ONE.format(answer=3) + 2 * every.format(seconds=60))


@pytest.mark.parametrize("when_unavailable", ["raise", "buffer"])
def test_pushes_go_by_the_newer_declaration(
    make_app: MakeApp,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    when_unavailable: Literal["raise", "buffer"],
) -> None:
    """Once a cell has run again, its fields count for pushes of either client: how long a job waits, and lives."""
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    app = make_app(when_unavailable=when_unavailable)

    def declared(**fields: Any) -> type[Worker]:
        body = {"__module__": "__main__", "perform": lambda *_: None, **fields}
        worker: type[Worker] = type("Typed", (Worker,), body)
        monkeypatch.setattr(sys.modules["__main__"], "Typed", worker, raising=False)
        return app.worker(worker)

    before = declared().push("a")
    worker = declared(debounce=Debounce(60.0, at_most=90.0), expires_in=120.0)
    after = [worker.push("b"), worker.push("c")]

    assert [0.0, 60.0, 60.0] == [one.due_at - clock.time() for one in (before, *after)]
    assert clock.time() + 120.0 == app.operate(worker).explain("c").expires_at

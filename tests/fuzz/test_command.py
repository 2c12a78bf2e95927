"""`lowkiq fuzz`, as it is called in a project."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.cli import main
from lowkiq_lambda.providers.embedded.folder import ServerFolder
from lowkiq_lambda.testing.server import URL_VARIABLE, OwnServer
from tests.kit.daemons import clean_environment
from tests.kit.embedded import server_lives

SHOP = '''
from dataclasses import dataclass
from typing import Literal

from lowkiq_lambda import Batch, Lowkiq, Worker

app = Lowkiq()
orders: dict[str, str] = {}
points: dict[str, int] = {}


@dataclass(frozen=True)
class Status:
    status: Literal["new", "paid", "sent"]


@app.worker
class SetOrder(Worker[Status]):
    """Right for pushes without versions, and one process at a time."""

    merge = "never"

    @staticmethod
    def fuzz() -> dict[str, object]:
        return {"state": lambda: orders, "isolate": orders, "versions": False, "faults": ["die", "fail"]}

    def perform(self, batch: Batch[Status]) -> None:
        for id, changes in batch.items():
            orders[id] = changes[-1].status


@app.worker
class AddPoint(Worker[Status]):
    """It counts runs."""

    merge = "never"

    def perform(self, batch: Batch[Status]) -> None:
        for id, changes in batch.items():
            points[id] = points.get(id, 0) + len(changes)


@app.worker
class Passes(Worker[Status]):
    """Nothing says what its state is."""

    def perform(self, batch: Batch[Status]) -> None:
        for id in batch:
            SetOrder.push(id, Status("new"))
'''
PYPROJECT = """
[tool.lowkiq]
app = "shop:app"

[tool.lowkiq.fuzz.AddPoint]
state = "fuzzing:state"
reset = "fuzzing:reset"
merges = false
"""
FUZZING = """
import shop


def state():
    return dict(shop.points)


def reset():
    shop.points.clear()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lowkiq_test_server: OwnServer) -> Path:
    """The folder of a project, which is the current one; its modules are imported anew."""
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "fuzzing.py").write_text(FUZZING)
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv(URL_VARIABLE, lowkiq_test_server.url)
    monkeypatch.delenv("LOWKIQ_APP", raising=False)
    lowkiq_test_server.clear()
    for name in ("shop", "fuzzing"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


@pytest.mark.usefixtures("project")
def test_a_handler_without_a_difference(capsys: pytest.CaptureFixture[str]) -> None:
    """Payloads come from its type, options from its class; the exit code is 0, and no word says that it is safe."""
    code = main(["fuzz", "shop:SetOrder", "--scenarios", "40"])

    text, errors = capsys.readouterr()
    assert (0, "") == (code, errors)
    assert text.startswith("SetOrder: no difference in 40 scenarios in ")
    assert "safe" not in text


def test_options_under_a_misspelt_name_are_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They would be left out, and the fuzz would compare nothing."""
    (project / "pyproject.toml").write_text(PYPROJECT + '\n[tool.lowkiq.fuzz.SetOrdr]\nstate = "fuzzing:state"\n')

    assert 2 == main(["fuzz", "shop:SetOrder", "--scenarios", "5"])
    assert "[tool.lowkiq.fuzz.SetOrdr] is of no worker: the name of this one is SetOrder." in capsys.readouterr().err


def test_a_finding_becomes_a_test(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The story is printed, the exit code is 1, and pytest runs what was written, though Django is loaded."""
    monkeypatch.setitem(sys.modules, DJANGO, ProjectOfDjango(DJANGO))
    code = main(["fuzz", "AddPoint", "--scenarios", "30", "--write-test", "tests/test_of_fuzz.py"])

    text, errors = capsys.readouterr()
    assert (1, "wrote tests/test_of_fuzz.py\n") == (code, errors)
    assert "AddPoint ends differently (repeat): scenario " in text
    assert "def test_add_point_repeat(lowkiq):" in (project / "tests" / "test_of_fuzz.py").read_text()
    arguments = ["-q", "-p", "no:cacheprovider", "-p", "lowkiq", "tests/test_of_fuzz.py"]
    own = {name: value for name, value in clean_environment().items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        env={**own, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert 1 == done.returncode, done.stdout + done.stderr
    assert "AddPoint ends differently (repeat)" in done.stdout
    assert 2 == main(["fuzz", "AddPoint", "--scenarios", "30", "--write-test", "tests/test_of_fuzz.py"])
    assert "tests/test_of_fuzz.py exists: name a new file." in capsys.readouterr().err


@pytest.mark.usefixtures("project")
def test_a_report_for_programs_and_a_replay(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON has the plan, which shows the same by itself."""
    assert 1 == main(["fuzz", "AddPoint", "--scenarios", "30", "--json"])
    report = json.loads(capsys.readouterr().out)
    [finding] = report["findings"]

    assert 1 == main(["fuzz", "AddPoint", "--replay", finding["plan"], "--json"])

    again = json.loads(capsys.readouterr().out)
    assert ("repeat", 1) == (finding["class"], again["scenarios"])
    assert finding["story"] == again["findings"][0]["story"]
    assert report["systematic"] == 30 < report["all_systematic"]
    assert report["seconds"] > 0.0


@pytest.mark.parametrize("option", ["state", "reset"])
def test_a_fuzz_that_fails_itself_has_found_nothing(
    project: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 2, and the error is there with its lines."""
    with (project / "fuzzing.py").open("a") as file:
        file.write(f"def {option}():\n    raise ZeroDivisionError('of its own')\n")

    assert 2 == main(["fuzz", "AddPoint", "--scenarios", "30"])

    errors = capsys.readouterr().err
    assert "ZeroDivisionError: of its own" in errors
    assert errors.endswith("error: the fuzz of AddPoint failed itself, as shown above.\n")


DJANGO = "lowkiq_lambda.contrib.django.project"


class ProjectOfDjango(ModuleType):
    """In place of the module that sets Django up; Django can be set up only once in a process."""

    is_set_up = False

    @property
    def app(self) -> Lowkiq:
        """The app of the jobs."""
        self.is_set_up = True
        return Lowkiq()


@pytest.mark.parametrize("named_by", ["variable of Django", "pyproject.toml"])
def test_django_is_set_up_before_a_worker_is_imported(
    project: Path, named_by: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Models can be imported only then; a test that is written does the same."""
    name = DJANGO
    monkeypatch.setitem(sys.modules, name, ProjectOfDjango(name))
    if named_by == "pyproject.toml":
        (project / "pyproject.toml").write_text(PYPROJECT.replace("shop:app", f"{name}:app"))
    else:
        (project / "pyproject.toml").write_text(PYPROJECT.replace('app = "shop:app"', ""))
        monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "shop.settings")
    (project / "shop.py").write_text(f"import sys\nassert sys.modules['{name}'].is_set_up\n{SHOP}")

    assert 1 == main(["fuzz", "shop:AddPoint", "--scenarios", "20", "--write-test", "test_of_fuzz.py"])

    assert "AddPoint ends differently (repeat): scenario " in capsys.readouterr().out
    lines = (project / "test_of_fuzz.py").read_text().splitlines()
    assert lines.index(f"import {name}  # noqa: F401 - it sets Django up, by DJANGO_SETTINGS_MODULE") == 2


HANGS = """
from threading import Event

from lowkiq_lambda import Lowkiq, Worker

app = Lowkiq()


@app.worker
class Hangs(Worker):
    payloads = ["a"]

    def perform(self, batch):
        print("begun", flush=True)
        Event().wait()
"""


def test_term_ends_the_server_with_the_command(tmp_path: Path) -> None:
    """Also while a handler hangs."""
    (tmp_path / "shop.py").write_text(HANGS)
    (tmp_path / "pyproject.toml").write_text(PYPROJECT.replace("AddPoint", "Hangs") + 'payloads = "fuzzing:PAYLOADS"\n')
    (tmp_path / "fuzzing.py").write_text("PAYLOADS = ['a']\nstate = reset = dict\n")
    command = subprocess.Popen(
        [sys.executable, "-m", "lowkiq_lambda", "fuzz", "shop:Hangs"],
        cwd=tmp_path,
        env={**clean_environment(), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    with command:
        assert command.stdout is not None
        assert "begun\n" == command.stdout.readline()
        [folder] = tmp_path.glob("lowkiq*")
        server = ServerFolder(folder)
        assert server.server_lives()
        command.send_signal(signal.SIGTERM)
        assert 143 == command.wait(60.0)

    assert not folder.exists()
    assert not server_lives(server)


@pytest.mark.usefixtures("project")
def test_without_a_state_pushes_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    """And the report says so."""
    assert 0 == main(["fuzz", "Passes", "--scenarios", "15"])

    assert "state: no `state` and no `effects` are given, so pushes alone are compared." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["shop:Missing"], "Module 'shop' has no 'Missing'; it has shop:AddPoint, shop:Passes, shop:SetOrder."),
        (["shop:"], "'shop:' names no worker: expected MODULE:WORKER, such as shop:SyncOrder."),
        (["shop:Status"], "Status is not a worker"),
        (["AddPoints"], "did you mean AddPoint?"),
        (["AddPoint", "--replay", "[["], "The plan cannot be read"),
        (["AddPoint", "--fork"], "fork=: a run in a child ends differently, so `state` or `effects` are in the memory"),
    ],
)
@pytest.mark.usefixtures("project")
def test_what_cannot_run_is_refused(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With exit code 2 and a sentence."""
    assert 2 == main(["fuzz", *words])

    assert sentence in capsys.readouterr().err

"""`lowkiq processes`: the list, and the orders."""

import json
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Final

import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.cli import main
from lowkiq_lambda.engine.heartbeat import Heartbeat
from lowkiq_lambda.operate.inspect.activity import OF_NO_QUEUE, read_activity
from tests.kit.apps import closing_app
from tests.kit.servers import Server

SPEC: Final = "app_of_processes:app"


@pytest.fixture
def app(own_server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lowkiq]:
    """What the command line finds."""
    module = ModuleType("app_of_processes")
    with closing_app(Lowkiq(Config(redis_url=own_server.url))) as made:
        vars(module)["app"] = made
        monkeypatch.setitem(sys.modules, module.__name__, module)
        yield made


def test_sk2_orders_are_given_to_the_process_that_is_named(app: Lowkiq, capsys: pytest.CaptureFixture[str]) -> None:
    """SK-2: the beginning of a name will do; one that fits none, or two, is refused, and nobody is told anything."""
    first, second = (Heartbeat(app.core.drains.drainer, "daemon", 5, print) for _ in range(2))
    codes = [main(["processes", SPEC])]
    for heartbeat in (first, second):
        heartbeat.sender.send(heartbeat.told())
    codes += [
        main(["processes", SPEC, *words, "--yes"]) for words in ([], ["--quiet", "nobody"], ["--stop", first.id[:3]])
    ]
    before = [first.sender.send(first.told()), second.sender.send(second.told())]
    codes += [
        main(["processes", SPEC, "--quiet", first.id, "--yes"]),
        main(["processes", SPEC, "--stop", second.id[:-1], "--yes"]),
    ]
    after = [first.sender.send(first.told()), second.sender.send(second.told())]
    codes.append(main(["processes", SPEC]))
    told = capsys.readouterr()

    past = read_activity(app.core.backend, 0.0, [OF_NO_QUEUE], 10)

    assert [0, 0, 1, 1, 0, 0, 0] == codes
    assert [("stop", f"process {second.id}"), ("quiet", f"process {first.id}")] == [
        (one.action, one.target) for one in past
    ]
    assert (["", ""], ["quiet", "stop"]) == (before, after)
    assert told.out.startswith("no process drains, as far as is known\n")
    assert f"{first.id}  daemon  running for " in told.out
    assert " s, 0 of 5 threads busy" in told.out
    assert f"{first.id} begins nothing new as soon as it has heard that" in told.out
    assert "running (told to be quiet) for " in told.out
    assert "running (told to stop) for " in told.out
    assert "error: no processes are named 'nobody'." in told.err
    assert "error: 2 processes are named" in told.err


def test_the_list_is_told_as_json(app: Lowkiq, capsys: pytest.CaptureFixture[str]) -> None:
    """For other programs: each process with all that it told."""
    heartbeat = Heartbeat(app.core.drains.drainer, "lambda", 5, print)
    heartbeat.sender.send(heartbeat.told())

    code = main(["processes", SPEC, "--json"])

    (shown,) = json.loads(capsys.readouterr().out)
    assert (0, heartbeat.id, "lambda", False) == (code, shown["id"], shown["kind"], shown["is_gone"])

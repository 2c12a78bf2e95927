"""`lowkiq doctor`: the lines, the object for programs, and the exit codes."""

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Final

import msgspec
import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.cli import main
from lowkiq_lambda.cli.codes import AWAY, DONE, FAILED
from lowkiq_lambda.operate.doctor.findings import CheckUp
from tests.kit.apps import closing_app
from tests.kit.handlers import Notes
from tests.kit.servers import Server
from tests.kit.workers import declare

SPEC: Final = "app_to_look_at:app"


@pytest.fixture
def app(own_server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lowkiq]:
    """What the command line finds."""
    module = ModuleType("app_to_look_at")
    # Lines are wrapped as on a wide terminal, wherever the tests run.
    monkeypatch.setenv("COLUMNS", "200")
    with closing_app(Lowkiq(Config(redis_url=own_server.url, redis_timeout=0.1))) as made:
        declare(made, "orders", Notes())
        vars(module)["app"] = made
        monkeypatch.setitem(sys.modules, module.__name__, module)
        yield made


@pytest.mark.usefixtures("app")
def test_what_is_broken_decides_the_exit_code(own_server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """0 with warnings, 1 where something is broken, 3 where the server is away; each line says what to do."""
    own_server.admin.config_set("appendonly", "yes")
    own_server.admin.config_set("appendfsync", "no")
    codes = [main(["doctor", SPEC])]
    warned = capsys.readouterr().out
    own_server.admin.config_set("maxmemory-policy", "allkeys-lru")
    own_server.admin.config_set("maxmemory", "1gb")
    codes.append(main(["doctor", SPEC]))
    broken = capsys.readouterr().out
    own_server.kill()
    codes.append(main(["doctor", SPEC]))

    assert [DONE, FAILED, AWAY] == codes
    assert "\n  warning    durability: a crash of the machine loses what the system has not written" in warned
    assert "\n             -> Set appendfsync to everysec.\n" in warned
    assert "\n  warning    P2 Nothing lost: see durability\n" in warned
    assert "\n  ok         P7 Equal chances\n" in warned
    assert warned.endswith("\n0 broken, 1 to look at, 0 not known.\n")
    assert "\n  BROKEN     eviction: maxmemory-policy is allkeys-lru" in broken
    assert "\n  BROKEN     P1 One at a time: see eviction, durability\n" in broken


@pytest.mark.usefixtures("app")
def test_programs_read_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    """All that the lines say, in the shape that `CheckUp` documents."""
    code = main(["doctor", SPEC, "--json"])
    told = msgspec.json.decode(capsys.readouterr().out, type=CheckUp)

    assert (1, "broken") == (code, told.mark)
    assert [*range(1, 11)] == [promise.number for promise in told.promises]
    (durability,) = [finding for finding in told.findings if finding.check == "durability"]
    assert ("broken", "Set appendonly yes.", (1, 2, 3, 4)) == (
        durability.mark,
        durability.advice,
        durability.promises,
    )

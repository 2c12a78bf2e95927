"""`lowkiq verify`: the verdict on a queue."""

import json
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Final

import pytest

from lowkiq_lambda import Config, Lowkiq, Worker
from lowkiq_lambda.cli import main
from tests.kit.apps import closing_app
from tests.kit.handlers import Notes
from tests.kit.servers import Server
from tests.kit.workers import declare, jobs_of

SPEC: Final = "app_to_verify:app"


@pytest.fixture
def app(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lowkiq]:
    """What the command line finds."""
    module = ModuleType("app_to_verify")
    with closing_app(Lowkiq(Config(redis_url=server.url))) as made:
        vars(module)["app"] = made
        monkeypatch.setitem(sys.modules, module.__name__, module)
        yield made


@pytest.fixture
def worker(app: Lowkiq, queue_name: str) -> type[Worker]:
    """One with a queue of two shards."""
    return declare(app, queue_name, Notes(), shards_count=2)


def test_a_sound_queue_passes(app: Lowkiq, worker: type[Worker], capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is judged before something was recorded; then the verdict says how much it is about."""
    words = ["verify", worker.queue_name, "--app", SPEC]
    codes = [main(words)]
    app.operate(worker).journal("all")
    worker.push_many(jobs_of("ab"))
    app.drain()
    codes += [main(words), main([*words, "--record", "0.01"])]
    told = capsys.readouterr().out.splitlines()

    assert [1, 0, 0] == codes
    assert ["nothing was recorded: give --record SECONDS", "no violation in 5 events of 2 ids in 2 shards"] == told[:2]
    (meta,) = {
        app.core.backend.client.hget(shard.key("meta"), "in_use") for shard in app.core.queues.agreed(worker).shards
    }
    assert meta is None


def test_a_violation_is_told_with_its_rule(
    app: Lowkiq, worker: type[Worker], capsys: pytest.CaptureFixture[str]
) -> None:
    """A payload that somebody has deleted by hand is missing."""
    app.operate(worker).journal("all")
    worker.push_many(jobs_of("a"))
    shard = app.core.queues.agreed(worker).shards.home_of("a")
    app.core.backend.client.delete(shard.key("jobs"), shard.key("due"))

    codes = [
        main(["verify", worker.queue_name, "--app", SPEC]),
        main(["verify", worker.queue_name, "--app", SPEC, "--json"]),
    ]

    told = capsys.readouterr().out
    (line, _, *report) = told.splitlines()
    assert [1, 1] == codes
    assert f"account: id 'a', shard {shard.number} of 2, at the end: payload 1 is gone, and should be waiting" == line
    assert ["account"] == [violation["rule"] for violation in json.loads("".join(report))["violations"]]


def test_a_queue_that_the_app_has_not_is_refused(app: Lowkiq, capsys: pytest.CaptureFixture[str]) -> None:
    """With the names of those that it has."""
    declare(app, "orders", Notes())

    code = main(["verify", "order", "--app", SPEC])

    assert (2, "error: There is no queue 'order': did you mean orders? The app has orders.\n") == (
        code,
        capsys.readouterr().err,
    )

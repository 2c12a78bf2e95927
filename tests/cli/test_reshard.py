"""`lowkiq reshard`: the plan, the move, and who may declare what."""

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Final

import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.cli import main
from lowkiq_lambda.operate.inspect.activity import read_activity
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import closing_app
from tests.kit.handlers import Notes
from tests.kit.servers import Server
from tests.kit.workers import declare, jobs_of

MODULE: Final = "app_of_reshard"
APP: Final = ("--app", f"{MODULE}:app")


@pytest.fixture
def app(server: Server, queue_name: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lowkiq]:
    """What the command line finds, with 20 ids in a queue of 4 shards."""
    module = ModuleType(MODULE)
    with closing_app(Lowkiq(Config(redis_url=server.url), clock=clock)) as made:
        worker = declare(made, queue_name, Notes(), shards_count=4)
        worker.push_many(jobs_of([f"id {number}" for number in range(20)]))
        vars(module)["app"] = made
        monkeypatch.setitem(sys.modules, MODULE, module)
        yield made


def noted(app: Lowkiq, queue_name: str) -> list[tuple[str, str, int]]:
    """What the dashboard tells of the queue's activity."""
    return [(one.action, one.target, one.changed) for one in read_activity(app.core.backend, 0.0, [queue_name], 10)]


def test_a_queue_is_moved_by_a_command(app: Lowkiq, queue_name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It tells the plan, moves group by group, finds nothing to do the second time, and is known by its worker too."""
    words = ["reshard", queue_name, *APP]
    codes = [main([*words, "--to", "6", "--dry-run"])]
    plan = capsys.readouterr().out
    codes += [
        main([*words, "--to", "6", "--yes"]),
        main([*words, "--to", "6", "--dry-run"]),
        main(["reshard", "Noting", *APP]),
    ]
    told = capsys.readouterr().out

    assert [1, 0, 0, 0] == codes
    assert plan.startswith("from 4 to 6 shards: 2 groups, 20 ids\ngroup 0: ")
    assert "group 2 of 2: " in told
    assert told.endswith("6 shards; code may declare 4 too\n" * 2)
    assert 6 == app.operate(app.workers[0]).resharding().layout.after
    assert [("reshard", "from 4 to 6 shards", 6)] == noted(app, queue_name)


def test_code_may_declare_a_count_before_and_not_for_ever(
    app: Lowkiq, queue_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """--announce lets code be deployed before a move; --forget ends that, but never for what the queue has."""
    words = ["reshard", queue_name, *APP]
    codes = [
        main([*words, "--announce", "--to", "8", "--yes"]),
        main([*words, "--forget", "8", "--yes"]),
        main([*words, "--forget", "4", "--yes"]),
    ]
    told = capsys.readouterr()

    assert [0, 0, 1] == codes
    assert "4 shards; code may declare 8 too\n4 shards\n" == told.out
    assert "has 4 shards: code has to be able to declare that" in told.err
    assert () == app.operate(app.workers[0]).resharding().layout.accepts


def test_a_move_is_turned_round_by_a_command(app: Lowkiq, queue_name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What another process began, --abort ends; the queue has the shards that it had."""
    app.operate(app.workers[0]).resharding().begin(6)
    words = ["reshard", queue_name, *APP]
    codes = [main(words), main([*words, "--abort", "--yes"])]

    assert [0, 0] == codes
    assert "on its way from 4 to 6 shards: 0 of 2 groups have moved\n4 shards" in capsys.readouterr().out
    assert [("reshard", "from 6 to 4 shards", 4)] == noted(app, queue_name)


@pytest.mark.parametrize("words", [["--to", "6", "--abort"], ["--dry-run"], ["--forget", "4", "--to", "6"]])
def test_orders_that_contradict_each_other_are_refused(app: Lowkiq, queue_name: str, words: list[str]) -> None:
    """Nothing is begun by a command line that says two things."""
    assert 2 == main(["reshard", queue_name, *APP, *words])
    assert 2 == main(["reshard", "nobody's", *APP])
    assert not app.operate(app.workers[0]).resharding().layout.is_moving


@pytest.mark.usefixtures("app")
def test_code_that_declares_the_new_count_already_moves_its_queue(
    server: Server,
    queue_name: str,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Who edits the number first is told by the drift guard to come here: this code has no shard of the queue yet."""
    with closing_app(Lowkiq(Config(redis_url=server.url), clock=clock)) as edited:
        declare(edited, queue_name, Notes(), shards_count=8)
        monkeypatch.setattr(sys.modules[MODULE], "app", edited)
        words = ["reshard", queue_name, *APP, "--to", "8", "--yes"]
        codes = [main([*words, "--announce"]), main(words)]
        told = capsys.readouterr()

        assert [0, 0] == codes
        assert told.err.startswith("note: shards 4 to 7 are new: ")
        assert told.out.endswith("8 shards; code may declare 4 too\n")
        # For a second it goes by the declarations that it has read.
        clock.advance(1)
        assert 20 == edited.operate.metrics()[queue_name].length


@pytest.mark.usefixtures("app")
def test_new_shards_need_their_schedules(
    queue_name: str, clock: ManualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before a move is begun the command says so; where the app's widest queue has as many it does not."""
    words = ["reshard", queue_name, *APP]
    told = []
    for options in (["--to", "5"], ["--to", "8"], ["--to", "3"]):
        main([*words, *options, "--dry-run"])
        told.append(capsys.readouterr().err)
    main([*words, "--to", "8", "--yes"])
    capsys.readouterr()
    clock.advance(60)
    main([*words, "--to", "6", "--dry-run"])
    told.append(capsys.readouterr().err)

    new = (
        "note: {}: where each shard has a schedule on AWS, they need theirs. --announce, deploy with the ShardIndexes "
    )
    assert told[0].startswith(new.format("shard 4 is new"))
    assert told[1].startswith(new.format("shards 4 to 7 are new"))
    assert ["", ""] == told[2:]


def test_new_shards_of_a_narrow_queue_need_theirs_if_each_queue_has_its_own(
    app: Lowkiq, queue_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another queue of the app may have as many: only schedules of all queues drain its shards, too."""
    declare(app, f"{queue_name}-wide", Notes(), shards_count=20)

    main(["reshard", queue_name, *APP, "--to", "6", "--dry-run"])

    told = capsys.readouterr().err
    assert told.startswith(
        "note: shards 4 to 5 are new: where `lowkiq stack schedules --each queue` made the schedules"
    )

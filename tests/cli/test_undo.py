"""`lowkiq undo`: takes back the last change, or one by its id."""

import json

import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.operate.inspect.activity import read_activity
from tests.cli.conftest import ShopOfCommands, Type
from tests.kit.apps import closing_app
from tests.kit.handlers import Notes
from tests.kit.looks import ids_of
from tests.kit.sends import counted_sends
from tests.kit.workers import declare, jobs_of


def test_the_last_change_is_taken_back_after_a_yes(shop: ShopOfCommands, type_in: Type) -> None:
    """The question says what was changed, where and when; anything but yes changes nothing."""
    shop.worker.push_many(jobs_of("ab"))
    shop.run("delete", shop.queue, "a", "--yes")
    shop.run("delete", shop.queue, "b", "--yes")
    (last, _first) = shop.app.operate(shop.worker).undoable()
    type_in("y\n")
    refused = shop.run("undo")
    assert (1, "") == (refused[0], refused[2])
    assert f"Undo {last.id}: delete of 1 job in {shop.queue}, " in refused[1]
    assert [] == ids_of(shop.app.operate(shop.worker).waiting.list())
    type_in("yes\n")
    code, out, _ = shop.run("undo")
    assert 0 == code
    assert "undone: 1 job; undo that by: lowkiq undo " in out
    assert ["b"] == ids_of(shop.app.operate(shop.worker).waiting.list())
    # Once more is the change before, and not the undo.
    assert 0 == shop.run("undo", "--yes")[0]
    assert ["a", "b"] == sorted(ids_of(shop.app.operate(shop.worker).waiting.list()))


def test_a_change_is_named_by_its_id_and_an_undo_is_an_action(shop: ShopOfCommands) -> None:
    """With --json the result is an object; the activity has the undo with its id; a second one is refused."""
    shop.worker.push_many(jobs_of("ab"))
    shop.run("delete", shop.queue, "--all", "--yes")
    (action,) = shop.app.operate(shop.worker).undoable()
    code, out, _ = shop.run("undo", action.id, "--yes", "--json")
    undone = json.loads(out)
    assert (0, 2, {}) == (code, undone["restored"], undone["skipped"])
    past = read_activity(shop.app.core.backend, 0.0, [shop.queue], 10)
    assert [("undo", f"delete {action.id}", 2, undone["action_id"]), ("delete", "all", 2, action.id)] == [
        (one.action, one.target, one.changed, one.action_id) for one in past
    ]
    code, _, told = shop.run("undo", action.id, "--yes")
    assert (2, f"error: Action {action.id} cannot be undone") == (code, told.partition(" undone:")[0] + " undone")


def test_the_last_change_of_many_queues_takes_few_round_trips(
    shop: ShopOfCommands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many for twenty queues as for one; one that was made with another declaration is looked at, too."""
    workers = [declare(shop.app, f"{shop.queue}-{number}", Notes()) for number in range(20)]
    workers[7].push("a")
    shop.run("delete", workers[7].queue_name, "a", "--yes")
    trips = counted_sends(monkeypatch)
    done = shop.run("undo", "--yes")
    assert "undone: 1 job" in done[1]
    assert len(trips) < len(workers)

    with closing_app(Lowkiq(Config(redis_url=shop.app.config.redis_url))) as other:
        worker = declare(other, f"{shop.queue}-other", Notes(), shards_count=2)
        worker.push("c")
    declare(shop.app, f"{shop.queue}-other", Notes(), shards_count=3)
    shop.run("delete", f"{shop.queue}-other", "c", "--yes")
    code, out, _ = shop.run("undo", "--yes")
    assert (0, True) == (code, out.startswith("undone: 1 job"))


def test_a_change_of_more_than_can_be_undone_says_so(shop: ShopOfCommands) -> None:
    """The end says how many of the jobs can be undone, also to a script."""
    shop.worker.push_many([{"id": n, "payload": f"{n}" + "x" * 700_000} for n in range(24)])
    code, out, told = shop.run("delete", shop.queue, "--all", "--yes")
    assert (0, "deleted 24 jobs\n") == (code, out)
    ids = sum(action.ids for action in shop.app.operate(shop.worker).undoable())
    assert f"{ids} of 24 jobs can be undone for ten minutes: lowkiq undo " in told

"""Schedules of shards follow a move that housekeeping makes, on the local cloud."""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

import pytest

from lowkiq_lambda import Auto, Worker
from lowkiq_lambda.aws.drain_schedules.deployed import DeployError, Group
from lowkiq_lambda.aws.drain_schedules.following import FollowedSchedules
from lowkiq_lambda.aws.drain_schedules.plan import make_plan
from lowkiq_lambda.aws.drain_schedules.schedule import wanted_schedule
from lowkiq_lambda.cli import main
from lowkiq_lambda.operate.auto.queue_auto import QueueAuto
from lowkiq_lambda.views.auto import AutoDecision
from tests.aws.schedules.values import LIKE, names
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.workers import declare

MODULE: Final = "app_that_grows"


def made(scheduler: Any, group: str) -> list[str]:
    """The names of the schedules in the group, in the order of their numbers."""
    found = [one["Name"] for one in scheduler.list_schedules(GroupName=group)["Schedules"]]
    return sorted(found, key=lambda name: int(name.rpartition("-")[2]))


def make(group: str, prefix: str, count: int, queue: str = "") -> None:
    """So many of them, by the command's own plan."""
    there = Group(group)
    plan = make_plan(
        prefix, [wanted_schedule(prefix, index, LIKE, queue) for index in range(count)], there.read(prefix), []
    )
    there.apply(plan, lambda _what: None)


@pytest.mark.usefixtures("aws")
def test_new_ones_are_there_before_a_move_and_go_after_the_way_back(scheduler: Any, group: str, prefix: str) -> None:
    """They are like the first; what the widest queue needs stays; a second run finds them as they are."""
    make(group, prefix, 2)
    followed = FollowedSchedules(prefix)

    followed.before("Orders", 4)
    followed.before("Orders", 4)
    assert names(prefix, range(4)) == made(scheduler, group)

    followed.after("Orders", {"Orders": 2, "Other": 3})
    assert names(prefix, range(3)) == made(scheduler, group)


@pytest.mark.usefixtures("aws")
def test_those_of_one_queue_are_its_own(scheduler: Any, group: str, prefix: str) -> None:
    """Other queues need none of them."""
    make(group, prefix, 2, "Orders")
    followed = FollowedSchedules(prefix)

    followed.before("Orders", 4)
    assert [f"{prefix}-shards.Orders-{index}" for index in range(4)] == made(scheduler, group)

    followed.after("Orders", {"Orders": 2, "Other": 8})
    assert 2 == len(made(scheduler, group))


@pytest.mark.usefixtures("aws")
def test_without_a_first_one_nothing_is_made(group: str, prefix: str) -> None:
    """There is none to make others like: the move is only proposed then."""
    make(group, prefix, 0)

    with pytest.raises(DeployError, match="run lowkiq stack schedules"):
        FollowedSchedules(prefix).before("Orders", 4)


def operate(worker: type[Worker]) -> Any:
    """What operators see of the queue."""
    app: Any = worker.app
    return app.operate(worker)


@pytest.fixture
def growing(make_app: MakeApp, queue_name: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], type[Worker]]:
    """A queue of one shard for which four are proposed; its command finds the app, and schedules with the prefix."""

    def declared(prefix: str) -> type[Worker]:
        app = make_app(namespace=queue_name)
        worker = declare(app, queue_name, Notes(), shards_count=Auto(least=1, unreplicated=True))
        worker.push("1")
        proposal = AutoDecision(queue=queue_name, at=0.0, answer="proposal", says="1 → 4 shards", shards=1, to=4)
        monkeypatch.setattr(QueueAuto, "decide", lambda _: proposal)
        module = ModuleType(MODULE)
        vars(module)["app"] = app
        monkeypatch.setitem(sys.modules, MODULE, module)
        monkeypatch.setenv("LOWKIQ_APP", f"{MODULE}:app")
        monkeypatch.setenv("LOWKIQ_AUTO_SCHEDULES", prefix)
        return worker

    return declared


@pytest.mark.usefixtures("aws")
def test_the_command_makes_schedules_for_what_it_moves(
    growing: Callable[[str], type[Worker]], scheduler: Any, group: str, prefix: str
) -> None:
    """`lowkiq auto QUEUE --do` makes those of the new shards, like the first."""
    worker = growing(prefix)
    make(group, prefix, 1)

    assert 0 == main(["auto", worker.queue_name, "--do", "--yes"])

    assert names(prefix, range(4)) == made(scheduler, group)
    assert 4 == operate(worker).resharding().layout.after


@pytest.mark.usefixtures("aws")
def test_the_command_moves_nothing_whose_schedules_cannot_be_made(
    growing: Callable[[str], type[Worker]], group: str, prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names what is missing; nothing was begun, and nothing counts as a move."""
    worker = growing(prefix)
    make(group, prefix, 0)

    assert 1 == main(["auto", worker.queue_name, "--do", "--yes"])

    assert "run lowkiq stack schedules" in capsys.readouterr().err
    of_queue = operate(worker)
    assert (1, ()) == (of_queue.resharding().layout.after, of_queue.auto.state().moves)

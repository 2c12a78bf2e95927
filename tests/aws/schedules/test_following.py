"""Schedules of shards follow a move that housekeeping makes, on the local cloud."""

from typing import Any

import pytest

from lowkiq_lambda.aws.drain_schedules.deployed import DeployError, Group
from lowkiq_lambda.aws.drain_schedules.following import FollowedSchedules
from lowkiq_lambda.aws.drain_schedules.plan import make_plan
from lowkiq_lambda.aws.drain_schedules.schedule import wanted_schedule
from tests.aws.schedules.values import LIKE, names


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

"""What a plan does, and what it never does."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowkiq_lambda.aws.drain_schedules.deployed import request_of, schedule_of
from lowkiq_lambda.aws.drain_schedules.guard import Stranded
from lowkiq_lambda.aws.drain_schedules.plan import DeployedGroup, make_plan
from lowkiq_lambda.aws.drain_schedules.schedule import (
    EACH_QUEUE_PREFIX_LENGTH,
    FieldDifference,
    Schedule,
    ScheduledShard,
    differences,
    indexes_of,
    name_of,
    place_of,
    wanted_schedule,
)
from tests.aws.schedules.values import (
    DEAD_LETTERS,
    FUNCTION,
    LIKE,
    OTHER_FUNCTION,
    OTHER_ROLE,
    ROLE,
    after,
    as_found,
    names,
)

PREFIX = "shop"
WANTED = [wanted_schedule(PREFIX, index, LIKE) for index in range(3)]

likes = st.builds(
    Schedule,
    name=st.just(""),
    event=st.just(""),
    expression=st.sampled_from(["rate(1 minute)", "rate(5 minutes)"]),
    function=st.sampled_from([FUNCTION, OTHER_FUNCTION]),
    role=st.sampled_from([ROLE, OTHER_ROLE]),
    dead_letters=st.sampled_from([None, DEAD_LETTERS]),
    retries=st.sampled_from([0, 185]),
    event_age=st.sampled_from([60, 86_400]),
    timezone=st.sampled_from(["UTC", "Europe/Berlin"]),
    ends_at=st.sampled_from([None, "2030-01-01 00:00:00+00:00"]),
    enabled=st.sampled_from([None, True]),
)
indexes = st.integers(0, 20)
prefixes = st.text("ab-._9", min_size=1, max_size=8)


@st.composite
def groups(draw: st.DrawFn) -> tuple[str, DeployedGroup]:
    """A prefix, and what may be found of it in a group, which may have anything else in it too."""
    prefix = draw(prefixes)
    made = draw(st.dictionaries(indexes, st.tuples(likes, st.booleans())))
    own = tuple(
        as_found(wanted_schedule(prefix, index, like), enabled=enabled) for index, (like, enabled) in made.items()
    )
    texts = st.sampled_from(["backup", f"{prefix}-shard-", f"{prefix}-shard-01", f"x{prefix}-shard-1", "shard-1"])
    foreign = [name for name in draw(st.lists(texts, unique=True)) if place_of(prefix, name) is None]
    mine = [schedule.name for schedule in own]
    return prefix, DeployedGroup("group", exists=bool(own or foreign), names=(*foreign, *mine), own=own)


@given(groups(), st.integers(0, 20), likes)
def test_a_plan_that_was_carried_out_leaves_nothing_to_do(
    group: tuple[str, DeployedGroup], count: int, like: Schedule
) -> None:
    """The command is idempotent: planned again after it was applied, there is nothing to change."""
    prefix, found = group
    wanted = [wanted_schedule(prefix, index, like) for index in range(count)]

    plan = make_plan(prefix, wanted, found, [], retarget=True)
    again = make_plan(prefix, wanted, after(plan, found), [])

    assert not again.has_changes
    assert not again.refused
    assert {schedule.name for schedule in wanted} == {schedule.name for schedule in again.keep}
    assert plan.foreign == again.foreign


@given(groups(), st.integers(0, 20), likes, st.booleans())
def test_a_plan_touches_only_its_own(
    group: tuple[str, DeployedGroup],
    count: int,
    like: Schedule,
    guarded: bool,  # noqa: FBT001 - Hypothesis gives it
) -> None:
    """Each wanted schedule has one place in the plan, and what is not ours, or not of the form, is in none."""
    prefix, found = group
    wanted = [wanted_schedule(prefix, index, like) for index in range(count)]

    plan = make_plan(prefix, wanted, found, [] if guarded else None)

    changed = [change.schedule for change in plan.update]
    placed = [schedule.name for schedule in (*plan.create, *changed, *plan.keep)]
    removed = [schedule.name for schedule in (*plan.delete, *plan.withheld)]
    assert sorted(placed) == sorted(schedule.name for schedule in wanted)
    assert set(removed) == {schedule.name for schedule in found.own} - set(placed)
    assert all(place_of(prefix, name) is not None for name in (*placed, *removed))
    assert set(found.names) - {schedule.name for schedule in found.own} == set(plan.foreign)


@given(groups(), st.integers(0, 20))
def test_nothing_is_deleted_that_nobody_looked_at(group: tuple[str, DeployedGroup], count: int) -> None:
    """Without the drift guard a schedule that no shard needs stays."""
    prefix, found = group

    plan = make_plan(prefix, [wanted_schedule(prefix, index, LIKE) for index in range(count)], found, None)

    assert () == plan.delete


@given(prefixes, st.integers(0, 99_999))
def test_a_name_tells_its_index(prefix: str, index: int) -> None:
    """What is written as a name is read as the same index, under the same prefix only."""
    name = name_of(prefix, index)

    assert ScheduledShard("", index) == place_of(prefix, name)
    assert place_of(f"{prefix}x", name) is None


@pytest.mark.parametrize(
    "name", ["shop-shard-01", "shop-shard-", "shop-shard-1a", "shop-shard-100000", "a-shop-shard-1"]
)
def test_names_of_others_have_no_index(name: str) -> None:
    """A name that this command would not give is not taken for its own."""
    assert place_of("shop", name) is None


QUEUES = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=1, max_size=90)


@given(QUEUES, st.integers(0, 99_999))
def test_a_name_tells_its_queue(queue: str, index: int) -> None:
    """Whatever the queue is called its schedules have names that AWS takes, and no other command takes for its own."""
    prefix = "p" * EACH_QUEUE_PREFIX_LENGTH
    for each in (prefix, "shop"):
        name = name_of(each, index, queue)
        place = place_of(each, name)

        assert re.fullmatch(r"[0-9a-zA-Z\-_.]{1,64}", name)
        assert place is not None
        assert (index, True) == (place.number, bool(place.queue))
        assert place_of(f"{each}x", name) is None
    assert name_of("shop", index, queue) != name_of("shop", index, f"{queue} ")


def test_a_queue_that_loses_its_schedules_is_told_which() -> None:
    """Those of its own name and those of an index of all queues, and no other queue's."""
    own = [wanted_schedule(PREFIX, 0, LIKE), *(wanted_schedule(PREFIX, 0, LIKE, name) for name in ("Old", "New"))]
    found = DeployedGroup("group", exists=True, own=tuple(map(as_found, own)))

    (sentence,) = make_plan(PREFIX, [], found, [Stranded("Old", (0,), "Old is left.")]).refused

    assert sentence.endswith("would go: shop-shard-0, shop-shards.Old-0.")


def test_there_are_as_many_indexes_as_the_widest_queue_has_shards() -> None:
    """A schedule drains its shard of every queue that has one, so the widest queue says how many there are."""
    assert [0, 1, 2, 3] == list(indexes_of([2, 4, 1]))
    assert [] == list(indexes_of([]))


@given(likes, indexes)
def test_a_schedule_comes_back_as_it_was_sent(like: Schedule, index: int) -> None:
    """What AWS is told of a schedule is what it tells of it: no run finds a difference that it cannot remove."""
    schedule = as_found(replace(wanted_schedule(PREFIX, index, like), ends_at=None))

    assert schedule == schedule_of(request_of(schedule, "group"))


def test_what_aws_does_not_tell_is_its_default() -> None:
    """A schedule that somebody made with nothing but what must be said is read with AWS's own defaults."""
    found = schedule_of(
        {
            "Name": "shop-shard-0",
            "ScheduleExpression": "rate(1 minute)",
            "FlexibleTimeWindow": {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 5},
            "Target": {"Arn": FUNCTION, "RoleArn": ROLE},
        }
    )

    assert (185, 86_400, "FLEXIBLE 5 minutes") == (found.retries, found.event_age, found.window)
    assert {"event", "retries", "event_age", "window", "description"} == {
        one.field for one in differences(WANTED[0], found)
    }


def test_a_disabled_schedule_stays_disabled_and_keeps_its_key() -> None:
    """What an operator switched off, or encrypted with a key of theirs, stays so when the schedule is updated."""
    there = replace(as_found(WANTED[0], enabled=False), expression="rate(9 minutes)", kms_key="arn:key")

    plan = make_plan(PREFIX, WANTED, DeployedGroup("group", exists=True, names=(there.name,), own=(there,)), [])

    (change,) = plan.update
    assert (False, "arn:key") == (change.schedule.enabled, change.schedule.kms_key)
    assert (FieldDifference("expression", "rate(9 minutes)", "rate(1 minute)"),) == change.differences


def test_a_disabled_schedule_is_enabled_on_demand() -> None:
    """With `enabled` wanted, a schedule that is switched off differs."""
    there = as_found(WANTED[0], enabled=False)

    plan = make_plan(
        PREFIX,
        [replace(WANTED[0], enabled=True)],
        DeployedGroup("group", exists=True, names=(there.name,), own=(there,)),
        [],
    )

    assert [("enabled", False, True)] == [(one.field, one.found, one.wanted) for one in plan.update[0].differences]


def test_a_stranded_queue_refuses_the_plan_and_names_the_schedules_that_drain_it() -> None:
    """With anything stranded the plan is refused, and says which schedules still serve it."""
    own = tuple(as_found(wanted_schedule(PREFIX, index, LIKE)) for index in range(5))
    found = DeployedGroup("group", exists=True, names=tuple(names(PREFIX, range(5))), own=own)

    plan = make_plan(PREFIX, WANTED, found, [Stranded("Old", (1, 3, 4), "Old is left.")])

    assert (
        "Old is left. The schedules that drain them until then would go: shop-shard-3, shop-shard-4.",
    ) == plan.refused


def test_schedules_of_another_function_are_not_taken_over_unasked() -> None:
    """Two apps with one prefix and group do not take each other's schedules; a moved function is said to be one."""
    own = tuple(as_found(wanted_schedule(PREFIX, index, replace(LIKE, function=OTHER_FUNCTION))) for index in range(5))
    found = DeployedGroup("group", exists=True, names=tuple(names(PREFIX, range(5))), own=own)

    refused, moved = (make_plan(PREFIX, WANTED, found, [], retarget=retarget) for retarget in (False, True))

    assert "5 of the schedules invoke" in refused.refused[0]
    assert "--retarget" in refused.refused[0]
    assert () == moved.refused
    assert {"function"} == {one.field for change in moved.update for one in change.differences}


def test_an_alias_of_the_function_is_the_same_function() -> None:
    """Going over to an alias is an update like any other."""
    own = tuple(as_found(schedule) for schedule in WANTED)
    wanted = [replace(schedule, function=f"{FUNCTION}:live") for schedule in WANTED]

    plan = make_plan(
        PREFIX, wanted, DeployedGroup("group", exists=True, names=tuple(names(PREFIX, range(3))), own=own), []
    )

    assert () == plan.refused
    assert 3 == len(plan.update)

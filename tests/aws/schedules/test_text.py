"""A plan as it is read."""

from dataclasses import replace

from lowkiq_lambda.aws.drain_schedules.guard import Stranded
from lowkiq_lambda.aws.drain_schedules.plan import DeployedGroup, describe, make_plan
from lowkiq_lambda.aws.drain_schedules.schedule import wanted_schedule
from tests.aws.schedules.values import LIKE, as_found

PREFIX = "shop"


def test_a_plan_shows_every_change_and_sums_up_what_stays() -> None:
    """Each change has its line with what becomes of what; what stays is told in ranges; the last line is the sum."""
    wanted = [wanted_schedule(PREFIX, index, LIKE) for index in range(300)]
    own = [as_found(schedule) for schedule in wanted[1:]]
    own[9] = replace(own[9], expression="rate(5 minutes)", dead_letters="arn:queue")
    own[19] = replace(own[19], enabled=False)
    own.append(as_found(wanted_schedule(PREFIX, 300, LIKE)))
    found = DeployedGroup("group", exists=True, names=("backup", *(schedule.name for schedule in own)), own=tuple(own))

    plan = make_plan(PREFIX, wanted, found, [])

    assert describe(plan).splitlines() == [
        "Schedules of group group:",
        '  create   shop-shard-0          rate(1 minute) {"shard": 0}',
        "  update   shop-shard-10         expression: rate(5 minutes) -> rate(1 minute)",
        "                                 dead_letters: arn:queue -> none",
        "  delete   shop-shard-300        no queue of the app has it",
        "  keep     shop-shard-1 to 9",
        "  keep     shop-shard-11 to 19",
        "  keep     shop-shard-21 to 299",
        "  keep     shop-shard-20         DISABLED, and stays so",
        "  left     backup                not of this command",
        "1 to create, 1 to update, 1 to delete, 298 as they should be.",
    ]


def test_schedules_of_each_queue_are_summed_up_by_queue() -> None:
    """Numbers of different queues don't follow one another; a queue has its lines beside those of indexes."""
    own = [as_found(wanted_schedule(PREFIX, index, LIKE, queue)) for queue in ("a", "b") for index in range(3)]
    wanted = [wanted_schedule(PREFIX, index, LIKE, queue) for queue in ("a", "b") for index in range(4)]
    gone = as_found(wanted_schedule(PREFIX, 0, LIKE))
    names = tuple(schedule.name for schedule in (*own, gone))
    found = DeployedGroup("group", exists=True, names=names, own=(*own, gone))

    assert describe(make_plan(PREFIX, wanted, found, [])).splitlines()[1:] == [
        '  create   shop-shards.a-3       rate(1 minute) {"queue": "a", "shard": 3}',
        '  create   shop-shards.b-3       rate(1 minute) {"queue": "b", "shard": 3}',
        "  delete   shop-shard-0          no queue of the app has it",
        "  keep     shop-shards.a-0 to 2",
        "  keep     shop-shards.b-0 to 2",
        "2 to create, 0 to update, 1 to delete, 6 as they should be.",
    ]


def test_a_refused_plan_says_so_in_words() -> None:
    """The sentences stand below the table, and the last line says that nothing is changed."""
    found = DeployedGroup("group", exists=False)

    text = describe(make_plan(PREFIX, [wanted_schedule(PREFIX, 0, LIKE)], found, [Stranded("Old", (), "Old is left.")]))

    assert "REFUSED  Old is left." in text
    assert text.endswith("Nothing is changed.")


def test_what_others_have_in_the_group_does_not_hide_the_plan() -> None:
    """Of many foreign schedules some are named, and the rest counted."""
    found = DeployedGroup("group", exists=True, names=tuple(f"backup-{number:03}" for number in range(50)))

    lines = describe(make_plan(PREFIX, [wanted_schedule(PREFIX, 0, LIKE)], found, [])).splitlines()

    assert "  left     and 40 more" in lines
    assert 10 == sum("not of this command" in line for line in lines)


def test_what_was_not_deleted_says_why() -> None:
    """Without a look at Redis the surplus stays, and the plan tells of it."""
    own = tuple(as_found(wanted_schedule(PREFIX, index, LIKE)) for index in range(3))
    found = DeployedGroup("group", exists=True, names=tuple(schedule.name for schedule in own), own=own)

    text = describe(make_plan(PREFIX, [wanted_schedule(PREFIX, 0, LIKE)], found, None))

    assert "  withheld shop-shard-1 to 2  no queue of the app has it; not deleted, as Redis was not asked" in text
    assert text.endswith("Nothing to do: 1 schedules are as they should be.")

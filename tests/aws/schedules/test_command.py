"""The command as a user runs it: what it changes, what it refuses, and its exit codes."""

from typing import Any

import pytest

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.settings.loading import load_app
from tests.aws.schedules.command import AWAY, DONE, FAILED, MISUSED, NOT_APPLIED, Run, WriteApp, push
from tests.aws.schedules.front import Front
from tests.aws.schedules.outputs import make_function
from tests.aws.schedules.values import OTHER_FUNCTION, deployed, names
from tests.kit.servers import Server
from tests.kit.servers.cloud import LocalCloud
from tests.kit.typing_in import Terminal


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is typed at the next question."""

    def type_in(words: str) -> None:
        monkeypatch.setattr("sys.stdin", Terminal(words))

    return type_in


def test_the_schedules_follow_the_code(run: Run, write_app: WriteApp, scheduler: Any, group: str, prefix: str) -> None:
    """More shards bring more schedules, fewer bring fewer, the same bring nothing: a second run is a no-op."""
    for count in (3, 5, 2):
        app = write_app({"Orders": count, "Clicks": 1})

        first, second = run(app, "--yes"), run(app, "--yes")

        assert (DONE, DONE) == (first.code, second.code), first
        assert names(prefix, range(count)) == sorted(deployed(scheduler, group))
        assert f"Nothing to do: {count} schedules are as they should be." in second.out


def test_each_queue_has_schedules_of_its_own(
    run: Run, write_app: WriteApp, cloud: LocalCloud, scheduler: Any, prefix: str
) -> None:
    """They follow the shards of each queue of the function, take the place of those of all queues, and give it back."""
    app, more = (write_app({"Orders": 2, "Clicks": count, "Reports": 1}) for count in (1, 2))
    words = ["--yes", "--function", make_function(cloud.client("lambda"), f"{prefix}-drain", "-Reports")]
    group = f"{prefix}-schedules"
    run(app, *words)

    first, second, third = (run(one, "--each", "queue", *words) for one in (app, app, more))
    now = deployed(scheduler, group)
    back = run(more, *words)

    assert [DONE] * 4 == [one.code for one in (first, second, third, back)], first
    assert "3 to create, 0 to update, 2 to delete, 0 as they should be." in first.out
    assert "Nothing to do: 3 schedules are as they should be." in second.out
    assert "1 to create, 0 to update, 0 to delete, 3 as they should be." in third.out
    events = [f'{{"queue": "{queue}", "shard": {index}}}' for queue in ("Clicks", "Orders") for index in (0, 1)]
    assert events == [now[name]["Target"]["Input"] for name in sorted(now)]
    assert names(prefix, range(2)) == sorted(deployed(scheduler, group))


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["--expression", "every minute"], "--expression 'every minute' is refused"),
        (["--each", "queue", "--prefix", "p" * 42], "at most 40 letters"),
    ],
)
def test_what_aws_would_refuse_is_refused_before_it_is_asked(
    run: Run, write_app: WriteApp, aws: Front, words: list[str], refusal: str
) -> None:
    """An expression of another form, and a prefix that leaves no room for queues."""
    said = run(write_app({"Orders": 2}), "--yes", *words)

    assert (MISUSED, []) == (said.code, aws.requests)
    assert refusal in said.error


def test_a_dry_run_writes_nothing(run: Run, write_app: WriteApp, aws: Front, own_server: Server, answer: Any) -> None:
    """A dry run shows what would be done, and neither AWS nor Redis is any different afterwards."""
    answer("yes\n")

    said = run(write_app({"Orders": 3}), "--dry-run", "--yes")

    assert NOT_APPLIED == said.code
    assert "3 to create, 0 to update, 0 to delete" in said.out
    assert [] == aws.writes
    assert [] == own_server.admin.keys()


def test_a_dry_run_with_nothing_to_do_ends_well(run: Run, write_app: WriteApp) -> None:
    """A pipeline can tell by the exit code whether there is anything to do."""
    app = write_app({"Orders": 2})
    run(app, "--yes")

    assert DONE == run(app, "--dry-run").code


@pytest.mark.parametrize("words", ["", "\n", "no\n", "y\n", "YES\n"])
def test_nothing_is_done_without_a_yes(run: Run, write_app: WriteApp, aws: Front, answer: Any, words: str) -> None:
    """Whatever else is answered, and where nobody can answer, nothing is changed."""
    answer(words)

    said = run(write_app({"Orders": 3}))

    assert (NOT_APPLIED, []) == (said.code, aws.writes)
    assert said.out.endswith("Nothing was changed.\n")


def test_a_yes_carries_the_plan_out(run: Run, write_app: WriteApp, answer: Any, scheduler: Any, group: str) -> None:
    """After a yes each change is told as it is made."""
    answer("yes\n")

    said = run(write_app({"Orders": 2}))

    assert DONE == said.code
    assert said.out.splitlines()[-2].startswith("created ")
    assert 2 == len(deployed(scheduler, group))


def test_what_changed_while_somebody_thought_is_planned_again(
    run: Run, write_app: WriteApp, aws: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A yes is to the plan that was shown: jobs that came meanwhile refuse it."""
    run(write_app({"Orders": 3, "Old": 5}), "--yes")
    old, new = write_app({"Old": 5}), write_app({"Orders": 3})
    before = aws.writes

    class Slow(Terminal):
        def readline(self, _size: int = -1, /) -> str:  # type: ignore[override]  # as of a text
            push(old)
            return "yes\n"

    monkeypatch.setattr("sys.stdin", Slow())
    said = run(new)

    assert FAILED == said.code
    assert "Something has changed meanwhile" in said.error
    assert before == aws.writes
    assert "Queue 'Old' has no worker in the code" in run(new).out


@pytest.mark.parametrize("count", [2, 9])
def test_l_68_a_changed_shards_count_is_refused_and_leaves_everything(
    run: Run, write_app: WriteApp, scheduler: Any, group: str, count: int
) -> None:
    """L-68, E-93: what a deploy would strand is refused before it, also with --yes, and nothing is changed."""
    before_it = write_app({"Orders": 5})
    run(before_it, "--yes")
    push(before_it)
    before = deployed(scheduler, group)

    said = run(write_app({"Orders": count}), "--yes")

    assert FAILED == said.code
    assert "REFUSED  Queue 'Orders' was made with shards_count=5" in said.out
    assert "20 waiting" in said.out.replace("\n        ", "")
    assert said.out.endswith("Nothing is changed.\n")
    assert before == deployed(scheduler, group)


def test_a_removed_queue_is_refused_until_it_is_empty(
    run: Run, write_app: WriteApp, scheduler: Any, group: str, prefix: str
) -> None:
    """Its shards keep their schedules while they hold jobs; when they were drained, or deleted, the surplus goes."""
    both, one = write_app({"Orders": 2, "Old": 4}), write_app({"Orders": 2})
    run(both, "--yes")
    push(both)

    refused = run(one, "--yes")

    assert FAILED == refused.code
    assert f"would go: {prefix}-shard-2, {prefix}-shard-3." in " ".join(refused.out.split())
    assert 4 == len(deployed(scheduler, group))

    load_app(both, Lowkiq).drain()
    assert DONE == run(one, "--yes").code
    assert names(prefix, range(2)) == sorted(deployed(scheduler, group))


def test_a_refusal_without_a_change_is_a_refusal(run: Run, write_app: WriteApp) -> None:
    """A deploy that needs no other schedules is stopped, too, where it would strand jobs."""
    both = write_app({"Orders": 2, "Old": 2})
    run(both, "--yes")
    push(both)

    said = run(write_app({"Orders": 2}), "--dry-run")

    assert (FAILED, "") == (said.code, said.error)
    assert "Queue 'Old' has no worker in the code" in said.out


def test_queues_of_another_app_do_not_stand_in_the_way(run: Run, write_app: WriteApp) -> None:
    """An app on the same Redis is named, and then it is not this app's business."""
    push(write_app({"Billing.Fees": 9}))
    app = write_app({"Orders": 2})

    assert FAILED == run(app, "--yes").code
    assert DONE == run(app, "--yes", "--ignore-queue", "Billing.*").code


def test_without_redis_nothing_is_deleted(
    run: Run, write_app: WriteApp, scheduler: Any, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where Redis cannot be reached the rest is done on demand, and what is too much stays and is told."""
    run(write_app({"Orders": 4}), "--yes")
    monkeypatch.setenv("LOWKIQ_REDIS_URL", "redis://127.0.0.1:1/0")
    monkeypatch.setenv("LOWKIQ_REDIS_TIMEOUT", "0.1")
    app = write_app({"Orders": 2})

    failed, said = run(app, "--yes"), run(app, "--yes", "--unguarded", "--expression", "rate(2 minutes)")

    assert AWAY == failed.code
    assert "--unguarded goes without it" in failed.error
    assert DONE == said.code
    assert "withheld" in said.out
    assert 4 == len(deployed(scheduler, group))
    assert ["rate(2 minutes)", "rate(2 minutes)", "rate(1 minute)", "rate(1 minute)"] == [
        schedule["ScheduleExpression"] for _, schedule in sorted(deployed(scheduler, group).items())
    ]


def test_another_apps_schedules_are_not_taken_over(run: Run, write_app: WriteApp, scheduler: Any, group: str) -> None:
    """Two apps that forgot to choose prefixes do not overwrite each other; a function that moved is said to have."""
    app = write_app({"Orders": 2})
    run(app, "--yes")
    before = deployed(scheduler, group)

    refused = run(app, "--yes", "--function", OTHER_FUNCTION)

    assert FAILED == refused.code
    assert before == deployed(scheduler, group)
    assert DONE == run(app, "--yes", "--function", OTHER_FUNCTION, "--retarget").code
    assert {OTHER_FUNCTION} == {schedule["Target"]["Arn"] for schedule in deployed(scheduler, group).values()}


def test_a_group_may_be_shared(run: Run, write_app: WriteApp, scheduler: Any, group: str, prefix: str) -> None:
    """In a group that others use, such as the template's, only schedules of the name's form are touched."""
    run(write_app({"Orders": 1}), "--yes")
    there = deployed(scheduler, group)[f"{prefix}-shard-0"]
    scheduler.create_schedule(GroupName=group, **{**there, "Name": "shop-DrainShard0-1ABCDEF"})

    said = run(write_app({"Orders": 2}), "--yes", "--group", group, "--prefix", f"{prefix}-b")

    assert DONE == said.code
    assert {"shop-DrainShard0-1ABCDEF", f"{prefix}-shard-0", f"{prefix}-b-shard-0", f"{prefix}-b-shard-1"} == set(
        deployed(scheduler, group)
    )
    assert "left     shop-DrainShard0-1ABCDEF" in said.out


def test_disabled_schedules_are_enabled_on_demand(run: Run, write_app: WriteApp, scheduler: Any, group: str) -> None:
    """What was switched off stays so, and is told, until somebody says otherwise."""
    app = write_app({"Orders": 1})
    run(app, "--yes")
    (there,) = deployed(scheduler, group).values()
    scheduler.update_schedule(GroupName=group, **{**there, "State": "DISABLED"})

    kept, enabled = run(app, "--yes"), run(app, "--yes", "--state", "enabled")

    assert "DISABLED, and stays so" in kept.out
    assert "enabled: False -> True" in enabled.out
    assert {"ENABLED"} == {schedule["State"] for schedule in deployed(scheduler, group).values()}


def test_all_schedules_are_disabled_on_demand(run: Run, write_app: WriteApp, scheduler: Any, group: str) -> None:
    """Draining stops for all shards, new ones too, and a run that says nothing of it leaves it so."""
    run(write_app({"Orders": 1}), "--yes")
    app = write_app({"Orders": 3})

    assert DONE == run(app, "--yes", "--state", "disabled").code
    assert "Nothing to do" in run(app, "--yes").out

    assert ["DISABLED"] * 3 == [schedule["State"] for schedule in deployed(scheduler, group).values()]

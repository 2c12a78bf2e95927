"""`lowkiq requeue`, `run-now`, `kill`, `unblock`, `delete`, `pause` and `resume`: what they touch, ask and change."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from lowkiq_lambda import BackendUnavailable
from lowkiq_lambda.operate.acts.action_runner import ActionRunner
from lowkiq_lambda.operate.acts.bulk_actions import steps
from lowkiq_lambda.operate.acts.bulk_progress import BulkAction
from lowkiq_lambda.operate.inspect.activity import read_activity
from tests.cli.conftest import ShopOfCommands, Type
from tests.kit.handlers import Notes
from tests.kit.handlers import failing as failing_ids
from tests.kit.looks import ids_of
from tests.kit.workers import declare, jobs_of

ONE_IN_EACH_SHARD: Final = ("0", "2", "7")


def dead(shop: ShopOfCommands, *ids: str) -> None:
    """These ids, whose names begin with `bad`, are in the morgue."""
    shop.worker.push_many(jobs_of(ids))
    shop.app.drain()


def test_a_change_says_what_it_touches_and_does_it_after_a_yes(shop: ShopOfCommands, type_in: Type) -> None:
    """The number, the ids, the queue and the server stand in the question; anything but yes changes nothing."""
    dead(shop, "bad 1", "bad 2", "bad 3")
    type_in("y\n")
    refused = shop.run("requeue", shop.queue, "bad 1", "bad 2")
    type_in("yes\n")
    done = shop.run("requeue", shop.queue, "bad 1", "bad 2")

    url = shop.app.core.connections.url
    question = f"Requeue 2 jobs (bad 1, bad 2) in the morgue of {shop.queue} at {url}? Only 'yes' will do: "
    assert (1, f"{question}Nothing was changed.\n", "") == refused
    (action,) = shop.app.operate(shop.worker).undoable()
    assert (0, f"{question}requeued 2 jobs\n", f"for ten minutes it can be undone: lowkiq undo {action.id}\n") == done
    assert ["bad 3"] == [job.id for job in shop.app.operate(shop.worker).morgue.fetch(["bad 1", "bad 2", "bad 3"])]


def test_without_a_terminal_and_without_yes_nothing_is_changed(shop: ShopOfCommands) -> None:
    """A script that forgot --yes neither waits for ever nor deletes what nobody confirmed."""
    shop.worker.push_many(jobs_of("ab"))

    code, out, told = shop.run("delete", shop.queue, "--all")

    assert (2, "") == (code, out)
    assert f"error: Delete for good 2 jobs waiting in {shop.queue} at " in told
    assert "There is no terminal to ask at: give --yes." in told
    assert 2 == len(shop.app.operate(shop.worker).waiting.fetch([*"ab"]))


def test_what_runs_is_told_apart_from_what_is_not_there(shop: ShopOfCommands) -> None:
    """A long job cannot be deleted while it runs: the command says so, and what makes it stop."""
    name, ended = f"{shop.queue}-long", list[tuple[int, str, str]]()
    running = declare(shop.app, name, lambda _batch: ended.append(shop.run("delete", name, "a", "b", "--yes")))
    running.push_many(jobs_of("a"))
    shop.app.drain()

    ((code, out, told),) = ended
    assert (1, f"deleted 0 of 2 jobs: the others are not waiting in {name}\n") == (code, out)
    assert "1 of them runs now, and nothing changes what runs" in told
    assert f"stops at its next checkpoint after: lowkiq pause {name}" in told


def test_each_change_touches_its_jobs_alone(shop: ShopOfCommands) -> None:
    """--all is all that waits, all that waits for later, or all of the morgue; what is not there is said, by 1 too."""
    dead(shop, "bad 1", "bad 2", "bad 3")
    shop.worker.push_many([{"id": "now"}, {"id": "later", "delay": 600}])

    ended = [
        shop.run("delete", shop.queue, "--morgue", "bad 1", "--yes"),
        shop.run("delete", shop.queue, "--morgue", "bad 1", "bad 2", "--yes"),
        shop.run("requeue", shop.queue, "--all", "--yes"),
        shop.run("requeue", shop.queue, "--all", "--yes"),
        shop.run("run-now", shop.queue, "--all", "--yes"),
        shop.run("delete", shop.queue, "now", "--yes"),
        shop.run("delete", shop.queue, "--all", "--yes"),
    ]

    assert [
        (0, "deleted 1 job\n"),
        (1, f"deleted 1 of 2 jobs: the others are not in the morgue of {shop.queue}\n"),
        (0, "requeued 1 job\n"),
        (0, f"there are no jobs in the morgue of {shop.queue}\n"),
        (0, "made due 1 job\n"),
        (0, "deleted 1 job\n"),
        (0, "deleted 2 jobs\n"),
    ] == [(code, out) for code, out, _ in ended]


def test_more_than_a_hundred_jobs_need_a_reason(shop: ShopOfCommands, type_in: Type) -> None:
    """It is asked for behind the yes, and has to be there with --yes; an answer without words changes nothing."""
    ids = [f"bad {number}" for number in range(101)]
    dead(shop, *ids)
    words, task = ["requeue", shop.queue, "--all"], shop.app.task("wrong file")
    task.push_many(shop.worker, [{"id": number, "delay": 600} for number in range(101)])

    unasked = [
        shop.run(*each, "--yes")
        for each in (words, ["cancel", shop.queue, *ids], ["tasks", task.id, "--cancel"], [*words, "--reason", " "])
    ]
    type_in("yes\n \n")
    unsaid = shop.run(*words)
    type_in("yes\nticket 7\n")
    done = shop.run(*words)
    given = shop.run("delete", shop.queue, "--all", "--yes", "--reason", "ticket 8")

    missing = "An act on more than 100 ids needs a reason: this is on 101."
    assert [(2, True)] * 4 == [(code, f"{missing} Give --reason." in told) for code, _, told in unasked]
    assert (1, True) == (unsaid[0], unsaid[1].endswith(f"{missing} Why: Nothing was changed.\n"))
    assert (0, True) == (done[0], done[1].endswith(f"{missing} Why: requeued 101 jobs\n"))
    assert (0, "deleted 202 jobs\n") == given[:2]
    past = read_activity(shop.app.core.backend, 0.0, [shop.queue], 10)
    assert [("delete", 202, "ticket 8"), ("requeue", 101, "ticket 7")] == [
        (one.action, one.changed, one.reason) for one in past
    ]


def test_ids_that_are_paused_are_told_apart(shop: ShopOfCommands) -> None:
    """To people beside the number of those that changed, and to programs."""
    dead(shop, "bad 1", "bad 2", "bad 3")
    shop.app.operate(shop.worker).pause_jobs(["bad 1"])

    chosen = shop.run("requeue", shop.queue, "bad 1", "bad 2", "--yes")
    listed = shop.run("requeue", shop.queue, "--all", "--yes", "--json")

    assert (1, "requeued 1 of 2 jobs\n", "1 job is paused, and did not change\n") == chosen
    assert (0, 1, 1) == (listed[0], (view := json.loads(listed[1]))["changed"], view["paused"])


def test_failed_jobs_are_killed_and_blocked_ones_go_on(shop: ShopOfCommands) -> None:
    """Only jobs that have failed die; `--all` of unblock looks at blocked ids alone, `--skip` leaves heads out."""
    declared: dict[str, Any] = {"shards_count": 1, "dead_head": "block"}
    failing = Notes(failing_ids("a", "b"))
    retried = declare(
        shop.app, f"{shop.queue}-retried", failing, max_retry_count=3, retry_in=lambda _self, _count: 600.0
    )
    blocked = declare(shop.app, f"{shop.queue}-blocked", failing, max_retry_count=0, **declared)
    for worker in (retried, blocked):
        worker.push_many(jobs_of("abc"))
    shop.app.drain()
    retried.push_many([{"id": "fresh", "delay": 600}])
    blocked.push_many([{"id": "fresh", "delay": 600}])

    ended = [
        shop.run("kill", retried.queue_name, "a", "fresh", "--yes"),
        shop.run("kill", retried.queue_name, "--all", "--yes"),
        shop.run("unblock", blocked.queue_name, "a", "--skip", "--yes"),
        shop.run("unblock", blocked.queue_name, "--all", "--yes"),
        shop.run("unblock", blocked.queue_name, "--all", "--yes"),
    ]

    others = f"the others are not waiting after a failure in {retried.queue_name}"
    assert [
        (1, f"killed 1 of 2 jobs: {others}\n"),
        (0, "killed 1 job\n"),
        (0, "unblocked 1 job\n"),
        (0, "unblocked 1 job\n"),
        (0, f"there are no jobs waiting behind a dead head in {blocked.queue_name}\n"),
    ] == [(code, out) for code, out, _ in ended]
    assert ["a", "b"] == sorted(ids_of(shop.app.operate(retried).morgue.list()))
    assert ["a"] == ids_of(shop.app.operate(blocked).morgue.list())


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (KeyboardInterrupt(), 130, "deleted 1 job; the same command goes on\n"),
        (BackendUnavailable("It is away."), 3, "error: It is away. It has deleted 1 job; the same command goes on.\n"),
    ],
)
def test_what_broke_off_says_how_far_it_came(
    shop: ShopOfCommands, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, told: str
) -> None:
    """What is changed stays changed and is counted, and a second run does the rest."""
    shop.worker.push_many(jobs_of(ONE_IN_EACH_SHARD))

    def broken_off(runner: ActionRunner, action: BulkAction) -> Iterator[BulkAction]:
        for step in steps(runner, action):
            yield step
            if step.changed:
                raise error

    with monkeypatch.context() as patched:
        patched.setattr("lowkiq_lambda.operate.acts.bulk_actions.steps", broken_off)
        ended = shop.run("delete", shop.queue, *ONE_IN_EACH_SHARD, "--yes")

    assert (code, "", told) == ended
    assert 0 == shop.run("delete", shop.queue, "--all", "--yes")[0]
    assert [] == shop.app.operate(shop.worker).waiting.fetch(ONE_IN_EACH_SHARD)


def test_a_queue_is_paused_and_resumed(shop: ShopOfCommands, type_in: Type) -> None:
    """Both ask; a pause may have an end; while it lasts nothing is performed."""
    shop.worker.push_many(jobs_of("a"))
    type_in("no\n")
    refused = shop.run("pause", shop.queue)
    type_in("yes\n")
    paused = shop.run("pause", shop.queue)
    still = shop.run("drain")
    ended = [shop.run("pause", shop.queue, "--seconds", "600", "--yes"), shop.run("resume", shop.queue, "--yes")]

    url = shop.app.core.connections.url
    question = f"Pause all 3 shards of {shop.queue} at {url}, until it is resumed? Only 'yes' will do: "
    assert (1, f"{question}Nothing was changed.\n", "") == refused
    assert (0, f"{question}paused until it is resumed\n", "") == paused
    assert (0, f"nothing was performed: a queue is paused ({shop.queue})\n", "") == still
    assert [0, 0] == [code for code, *_ in ended]
    assert ended[0][1].startswith("paused for 10m, to ")
    assert "resumed\n" == ended[1][1]
    assert {"done": 1} == shop.app.drain()


def test_drains_forget_how_long_batches_took(shop: ShopOfCommands, type_in: Type) -> None:
    """It asks, and the activity has it with its reason."""
    shop.worker.push_many(jobs_of("a"))
    shop.app.drain()
    type_in("no\n")
    refused = shop.run("forget-timing", shop.queue)
    done = shop.run("forget-timing", shop.queue, "--yes", "--reason", "the ERP is back", "--json")

    key = shop.app.core.queues.agreed(shop.worker).shards[0].key("meta")
    (action,) = read_activity(shop.app.core.backend, 0.0, [shop.queue], 10)
    assert (1, True) == (refused[0], refused[1].endswith("Nothing was changed.\n"))
    assert (0, {"queue": shop.queue}) == (done[0], json.loads(done[1]))
    assert ("forget timing", 3, "the ERP is back") == (action.action, action.changed, action.reason)
    assert shop.app.core.backend.client.hexists(key, "timing_from")


def test_a_tenant_of_a_queue_without_tenants_is_refused(shop: ShopOfCommands) -> None:
    """The words of the library, and the exit code of misuse."""
    assert [2, 2] == [shop.run(order, shop.queue, "--tenant", "acme", "--yes")[0] for order in ("pause", "resume")]


def test_the_dashboard_tells_who_did_it(shop: ShopOfCommands) -> None:
    """What the command line changes stands in the activity, with the user of the process."""
    shop.worker.push_many(jobs_of("ab"))
    shop.run("delete", shop.queue, "a", "--yes")
    shop.run("pause", shop.queue, "--yes")

    past = read_activity(shop.app.core.backend, 0.0, [shop.queue], 10)

    assert [("pause", 3), ("delete", 1)] == [(action.action, action.changed) for action in past]
    assert "1 selected: 'a'" == past[-1].target
    assert [True, True] == [action.who.endswith(" (lowkiq)") for action in past]

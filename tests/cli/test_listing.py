"""`lowkiq errors`, `ls`, `tenants`, `limits`, `activity`: what people look at, and what programs read."""

import json
from typing import Any

import msgspec
import pytest

from lowkiq_lambda import Rate
from lowkiq_lambda.operate.presentation.errors import ErrorsView
from lowkiq_lambda.operate.presentation.jobs import DeadJobs, WaitingJob, WaitingJobs
from lowkiq_lambda.operate.presentation.limits import LimitsResponse, RateResponse
from lowkiq_lambda.operate.presentation.tenants import TenantsFound
from lowkiq_lambda.views.activity import ActivityView
from tests.cli.conftest import ShopOfCommands, handle
from tests.kit.handlers import Notes
from tests.kit.workers import declare, jobs_of


def dead(shop: ShopOfCommands, *ids: str) -> None:
    """These ids, whose names begin with `bad`, are in the morgue."""
    shop.worker.push_many(jobs_of(ids, payload={"state": "paid"}))
    shop.app.drain()


def test_errors_that_are_alike_are_one_line(shop: ShopOfCommands) -> None:
    """With the share, the number, the age, the queue and the text; the largest first."""
    dead(shop, "bad 1", "bad 2", "bad 3")

    code, out, remarks = shop.run("errors")
    head, row = out.splitlines()

    assert (0, "3 errors read, all that there are\n") == (code, remarks)
    assert ["FINGERPRINT", "SHARE", "JOBS", "DEAD", "FIRST", "LAST", "RELEASE", "QUEUE", "ERROR"] == head.split()
    assert ["100%", "3", "3"] == row.split()[1:4]
    assert row.endswith(f"{shop.queue}  ValueError: it is bad")


def test_an_error_of_several_queues_is_a_line_with_each_of_them_beneath(shop: ShopOfCommands) -> None:
    """The sums first, then the numbers of each queue, the one with most first."""
    other = declare(shop.app, f"{shop.queue}-other", handle, max_retry_count=0)
    dead(shop, "bad 1", "bad 2")
    other.push_many(jobs_of(["bad 3"]))
    shop.app.drain()

    _, whole, first, second = shop.run("errors")[1].splitlines()

    assert ["100%", "3", "3"] == whole.split()[1:4]
    assert ("2 queues", True) == (" ".join(whole.split()[-6:-4]), whole.endswith("  ValueError: it is bad"))
    assert (["2", "2"], ["1", "1"]) == (first.split()[:2], second.split()[:2])
    assert (shop.queue, other.queue_name) == (first.split()[-1], second.split()[-1])


def test_a_program_takes_the_fingerprint_of_a_group_to_its_jobs(shop: ShopOfCommands) -> None:
    """`ls` and `requeue` find exactly the jobs of the group; a group that has rested is left out by --since."""
    dead(shop, "bad 1", "bad 2")

    view = msgspec.json.decode(shop.run("errors", "SyncOrder", "--json")[1], type=ErrorsView)
    (group,) = view.groups
    words = ["--in", "morgue", "--filter", f"fingerprint={group.fingerprint}", "--json"]
    page = msgspec.json.decode(shop.run("ls", shop.queue, *words)[1], type=DeadJobs)

    assert (1.0, 2, None) == (group.share, group.dead, view.next)
    assert ["bad 1", "bad 2"] == sorted(job.id for job in page.jobs)
    assert 1 == len(msgspec.json.decode(shop.run("errors", "--since", "1h", "--json")[1], type=ErrorsView).groups)
    assert 1 == len(msgspec.json.decode(shop.run("errors", "--since", "1h ago", "--json")[1], type=ErrorsView).groups)
    assert [] == msgspec.json.decode(shop.run("errors", "--since", "0s", "--json")[1], type=ErrorsView).groups


def test_a_list_has_when_jobs_are_due_their_error_and_their_payload(shop: ShopOfCommands) -> None:
    """Waiting ones, then dead ones, and none in flight."""
    dead(shop, "bad 1")
    shop.worker.push_many([{"id": "later", "payload": {"state": "open"}, "delay": 600.5}])

    waiting, morgue = shop.run("ls", shop.queue), shop.run("ls", shop.queue, "--in", "morgue")
    in_flight = shop.run("ls", shop.queue, "--in", "in-flight")

    assert (0, "1 job\n") == (waiting[0], waiting[2])
    assert [["ID", "DUE", "RETRIES", "MORE", "ERROR", "PAYLOAD"], ["later", "in", "10m", "-", '{"state":"open"}']] == [
        line.split() for line in waiting[1].splitlines()
    ]
    title, row = morgue[1].splitlines()
    assert ["ID", "DIED", "MORE", "ERROR", "PAYLOAD"] == title.split()
    assert row.startswith("bad 1  ")
    assert row.endswith('ValueError: it is bad  {"state":"paid"}')
    assert (0, "", "0 jobs\n") == in_flight


def test_pages_go_on_and_all_of_them_are_lines(shop: ShopOfCommands) -> None:
    """`next` is the --after of the following page; --all --json has a line for each job."""
    shop.worker.push_many(jobs_of(["1", "2", "3"]))

    first = msgspec.json.decode(shop.run("ls", shop.queue, "--limit", "2", "--json")[1], type=WaitingJobs)
    words = ["--limit", "2", "--after", str(first.next), "--json"]
    second = msgspec.json.decode(shop.run("ls", shop.queue, *words)[1], type=WaitingJobs)
    lines = shop.run("ls", shop.queue, "--limit", "1", "--all", "--json")[1].splitlines()
    table = shop.run("ls", shop.queue, "--limit", "1", "--all")

    assert (2, 1, None) == (len(first.jobs), len(second.jobs), second.next)
    assert ["1", "2", "3"] == sorted(job.id for job in (*first.jobs, *second.jobs))
    assert ["1", "2", "3"] == sorted(msgspec.json.decode(line, type=WaitingJob).id for line in lines)
    assert (4, "3 jobs\n") == (len(table[1].splitlines()), table[2])
    assert "1 job; more: --after " in shop.run("ls", shop.queue, "--limit", "1")[2]


def test_a_list_hides_what_the_mask_hides(shop: ShopOfCommands, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `show` and the dashboard do."""
    monkeypatch.setattr(type(shop.app.config), "mask", property(lambda _self: lambda _queue, _id, _payload: "***"))
    shop.worker.push_many(jobs_of(["1"], payload={"card": "no 4711"}))

    for words in ([], ["--json"]):
        out = shop.run("ls", shop.queue, *words)[1]
        assert "***" in out
        assert "no 4711" not in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--after", "x"], "the `next`"),
        (["--filter", "colour=red"], "unknown field `colour`"),
        (["--in", "in-flight", "--filter", "least=1"], "A filter of ids in flight has"),
        (["--in", "in-flight", "--reverse"], "--reverse goes with the lists that are by time"),
        (["--in", "limbo"], "limbo"),
    ],
)
def test_a_list_that_cannot_be_is_refused(shop: ShopOfCommands, words: list[str], sentence: str) -> None:
    """Exit code 2, in a sentence."""
    code, out, error = shop.run("ls", shop.queue, *words)

    assert (2, "", True) == (code, out, sentence in error), error


def test_tenants_are_listed_and_a_paused_one_says_so(shop: ShopOfCommands) -> None:
    """Which `pause --tenant` has done; a queue without tenants is refused."""
    worker = declare(shop.app, f"{shop.queue}-tenants", Notes(), tenants="spread", shards_count=1)
    worker.push_many(jobs_of(["ann:1", "ann:2", "bob:1"]))
    assert 0 == shop.run("pause", worker.queue_name, "--tenant", "bob", "--yes")[0]

    code, out, remarks = shop.run("tenants", worker.queue_name, "--order", "waiting")
    found = msgspec.json.decode(shop.run("tenants", worker.queue_name, "--json")[1], type=TenantsFound)

    assert (0, "2 tenants\n") == (code, remarks)
    assert [["ann", "2"], ["bob", "1"]] == [line.split()[:2] for line in out.splitlines()[1:]]
    assert out.splitlines()[2].endswith("paused")
    assert {"ann": False, "bob": True} == {one.tenant: one.paused for one in found.tenants}
    assert (2, True) == (
        shop.run("tenants", shop.queue)[0],
        "declares no tenants" in shop.run("tenants", shop.queue)[2],
    )


def test_limits_are_set_shown_and_taken_back(shop: ShopOfCommands) -> None:
    """Each is in the activity, with its reason; the words of `--set` are those of people."""
    words = ["limits", shop.queue, "--set", "rate=20/10s", "--set", "max_running=2", "--reason", "slow ERP", "--yes"]
    shown = shop.run(*words)
    view = msgspec.json.decode(shop.run("limits", shop.queue, "--json")[1], type=LimitsResponse)
    reset = shop.run("limits", shop.queue, "--reset", "--yes")
    past = msgspec.json.decode(shop.run("activity", shop.queue, "--json")[1], type=ActivityView).activity

    assert 0 == shown[0]
    assert [
        f"{shop.queue}: limited, set by an operator",
        "  at most 2 shards visited at once: 0 are",
        "  at most 20 ids in 10 s: 20 may begin now",
    ] == shown[1].splitlines()
    assert (2, RateResponse(ids=20, per=10.0), True) == (view.max_running, view.rate, view.is_set)
    assert (0, f"{shop.queue}: no limit\n") == reset[:2]
    assert [
        ("reset limits", "all shards", 3, ""),
        ("set limits", "max_running 2, rate 20 in 10 s", 3, "slow ERP"),
    ] == [(one.action, one.target, one.changed, one.reason) for one in past]


def test_all_queues_tell_their_limits(shop: ShopOfCommands) -> None:
    """Those that code declares, too."""
    limited = declare(shop.app, f"{shop.queue}-limited", Notes(), rate=Rate(5, per=1))

    out = shop.run("limits")[1]
    queues = json.loads(shop.run("limits", "--json")[1])

    assert f"{shop.queue}: no limit\n" in out
    assert f"{limited.queue_name}: limited\n  at most 5 ids in 1.0 s: 5 may begin now\n" in out
    assert ({}, {shop.queue, limited.queue_name}) == (queues["skipped"], {one["queue"] for one in queues["queues"]})


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--set", "rate=often"], "write a number of ids in a time"),
        (["--set", "pace=3"], "write rate=100/s"),
        (["--set", "rate=1/s", "--set", "rate=2/s"], "each once"),
        (["--set", "max_running=0"], "max_running"),
        (["--set", "max_running=many"], "is refused"),
        (["--set", "rate=1/s", "--reset"], "two changes"),
        (["--set", "rate=1/s"], "There is no terminal to ask at: give --yes."),
    ],
)
def test_limits_that_cannot_be_are_refused(shop: ShopOfCommands, words: list[str], sentence: str) -> None:
    """Exit code 2, in a sentence; nothing is set."""
    code, _, error = shop.run("limits", shop.queue, *words, *([] if "no terminal" in sentence else ["--yes"]))

    assert (2, True) == (code, sentence in error), error
    assert not shop.app.operate(shop.worker).limits.explain().is_set


def test_the_activity_tells_who_what_where_and_why(shop: ShopOfCommands, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest first; by a moment, by a queue, and those of no queue."""
    monkeypatch.setenv("LOWKIQ_OPERATOR", "ann")
    monkeypatch.setattr("socket.gethostname", lambda: "web-1")
    monkeypatch.delenv("SSH_CLIENT", raising=False)
    shop.worker.push_many(jobs_of(["1"]))
    shop.run("delete", shop.queue, "1", "--yes", "--reason", "left by a test")
    shop.run("pause", shop.queue, "--yes")

    code, out, remarks = shop.run("activity", shop.queue)
    everything: dict[str, Any] = json.loads(shop.run("activity", "--json")[1])

    assert (0, "2 actions\n") == (code, remarks)
    lines = out.splitlines()
    assert f"  ann (lowkiq)  pause  {shop.queue}  all shards, until it is resumed  3 changed" in lines[0]
    assert lines[1].startswith("    from web-1, session process ")
    assert f"  ann (lowkiq)  delete  {shop.queue}  1 selected: '1'  1 changed" in lines[2]
    assert "    why: left by a test" == lines[4]
    assert ["pause", "delete"] == [one["action"] for one in everything["activity"] if one["queue"] == shop.queue]
    assert "0 actions\n" == shop.run("activity", "--since", "2100-01-01T00:00")[2]
    assert 2 == shop.run("activity", "--since", "whenever")[0]

"""`lowkiq requeue`: what it tells, and how it goes on."""

import sys
from collections.abc import Iterator
from itertools import pairwise
from types import ModuleType
from typing import Final

import pytest

from lowkiq_lambda import Batch, Config, Lowkiq, Worker
from lowkiq_lambda.base.fingerprint import fingerprint
from lowkiq_lambda.cli import main
from lowkiq_lambda.operate.acts.action_runner import ActionRunner
from lowkiq_lambda.operate.acts.bulk_actions import steps
from lowkiq_lambda.operate.acts.bulk_progress import BulkAction
from lowkiq_lambda.operate.inspect.activity import read_activity
from tests.kit.apps import closing_app
from tests.kit.servers import Server
from tests.kit.workers import jobs_of

SPEC: Final = "app_to_requeue:app"


@pytest.fixture
def worker(server: Server, queue_name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Worker]]:
    """A worker with three ids in the morgue, in the app that the command line finds."""
    module = ModuleType("app_to_requeue")

    def perform(_batch: Batch) -> None:
        raise ValueError("broken")

    with closing_app(Lowkiq(Config(redis_url=server.url))) as app:
        made = app.worker(queue_name=queue_name, max_retry_count=0, shards_count=2, batch_size=1)(perform)
        made.push_many(jobs_of("abc"))
        app.drain()
        vars(module)["app"] = app
        monkeypatch.setitem(sys.modules, module.__name__, module)
        yield made.worker


def test_e78_a_dry_run_tells_and_then_what_is_asked_for_waits(
    worker: type[Worker], capsys: pytest.CaptureFixture[str]
) -> None:
    """E-78: a dry run changes nothing and says so by its exit code; then the same words requeue what fits."""
    words = ["requeue", worker.queue_name, "--app", SPEC, "--rate", "2"]
    dry = main([*words, "a", "z", "--dry-run"])
    told = capsys.readouterr().out
    codes = [
        main([*words, "--filter", "error=broken", "--filter", "prefix=a", "--yes"]),
        main([*words, "--all", "--yes"]),
    ]
    done = capsys.readouterr().out

    assert (1, [0, 0]) == (dry, codes)
    assert "a: 1 payload would wait in shard " in told
    assert "z: is not in the morgue\n1 id would wait again, 1 would not; nothing was changed\n" in told
    assert ["requeued 1 job, of 3 that were examined", "requeued 2 jobs"] == [
        line.partition(", the last")[0] for line in done.splitlines()
    ]


def test_a_fingerprint_is_a_filter(worker: type[Worker], capsys: pytest.CaptureFixture[str]) -> None:
    """What the page of errors shows as one error is requeued as one; another fingerprint finds nothing."""
    words = ["requeue", worker.queue_name, "--app", SPEC, "--yes", "--filter"]
    digits = fingerprint("ValueError: broken").digits
    codes = [main([*words, f"fingerprint={value}"]) for value in ("0" * 16, digits, "broken")]
    told, refused = capsys.readouterr()

    assert [0, 0, 2] == codes
    assert f"there are no jobs in the morgue of {worker.queue_name}\nrequeued 3 jobs, of 3 that were examined\n" == told
    assert "'broken' is not the fingerprint of an error: it has 16 hex digits. It has " in refused


def test_ctrl_c_says_how_to_go_on(
    worker: type[Worker], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """E-78: interrupted after the first step, the command tells the start with which the rest keeps the rate."""

    def broken_off(runner: ActionRunner, action: BulkAction) -> Iterator[BulkAction]:
        for step in steps(runner, action):
            yield step
            if step.changed:
                raise KeyboardInterrupt

    monkeypatch.setattr("lowkiq_lambda.operate.acts.bulk_actions.steps", broken_off)
    words = [
        "requeue",
        worker.queue_name,
        "--app",
        SPEC,
        "--all",
        "--rate",
        "0.5",
        "--start",
        "2001-09-09T01:46:40Z",
        "--yes",
    ]

    code = main(words)

    told = capsys.readouterr().err
    assert 130 == code
    assert "; the same command with --start 100000000" in told
    assert told.startswith("requeued ")


def test_the_dashboard_tells_who_has_requeued_what(worker: type[Worker], capsys: pytest.CaptureFixture[str]) -> None:
    """A requeue stands in the activity, with what it was to find and its rate; a dry run does not."""
    words = ["requeue", worker.queue_name, "--app", SPEC, "--rate", "2", "--yes"]
    for more in (["--all", "--dry-run"], ["--filter", "prefix=a"], ["b"], ["--all"]):
        main([*words, *more])
    capsys.readouterr()

    past = read_activity(sys.modules["app_to_requeue"].app.core.backend, 0.0, [worker.queue_name], 10)

    assert [
        ("requeue", "all, 2 a second", 1),
        ("requeue", "1 selected: 'b', 2 a second", 1),
        ("requeue", "found by: prefix=a, 2 a second", 1),
    ] == [(action.action, action.target, action.changed) for action in past]


def test_nothing_has_to_run_while_a_rate_is_kept(worker: type[Worker], capsys: pytest.CaptureFixture[str]) -> None:
    """E-78: the command gives each id its time and ends; what is not due yet can be taken back."""
    assert 0 == main(["requeue", worker.queue_name, "--app", SPEC, "--all", "--rate", "0.01", "--yes"])
    capsys.readouterr()
    app = sys.modules["app_to_requeue"].app
    waiting = app.operate(worker).waiting.list()
    due_at = sorted(job.due_at for job in waiting)

    assert [100.0, 100.0] == [round(after - before) for before, after in pairwise(due_at)]
    assert {"failed": 1, "dead": 1} == {name: count for name, count in app.drain().items() if count}
    assert 2 == app.operate(worker).waiting.kill([job.id for job in waiting if job.due_at > due_at[0]], error="not now")
    assert 3 == app.operate.metrics()[worker.queue_name].morgue_length

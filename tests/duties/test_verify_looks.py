"""The findings of the verification by housekeeping, where people look: the doctor, the command line, the page."""

import json
import math
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Final

import pytest

from lowkiq_lambda import Config, Lowkiq, Worker
from lowkiq_lambda.cli import main
from lowkiq_lambda.dashboard import dashboard
from lowkiq_lambda.operate.doctor.checkup import check_up
from lowkiq_lambda.operate.verify.duty import VerifyDuty
from lowkiq_lambda.testing import ManualClock
from tests.kit.accounts import AUTH, OPERATOR
from tests.kit.apps import closing_app
from tests.kit.handlers import Notes
from tests.kit.servers import Server
from tests.kit.web import Browser
from tests.kit.workers import declare, jobs_of

SPEC: Final = "app_of_verified:app"
BROKEN: Final = "account: id 'a', shard 0 of 1, at the end: payload 1 is gone, and should be waiting"
ONE: Final = "1 violation"
NONE: Final = "no violation"
DELETED: Final = "1 journal deleted and not verified"


@pytest.fixture
def app(own_server: Server, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lowkiq]:
    """It has one queue, and is what the command line finds."""
    module = ModuleType("app_of_verified")
    with closing_app(Lowkiq(Config(redis_url=own_server.url, verify=1.0), clock=clock)) as made:
        vars(module)["app"] = made
        monkeypatch.setitem(sys.modules, module.__name__, module)
        yield made


@pytest.fixture
def worker(app: Lowkiq) -> type[Worker[Any]]:
    """With a queue of one shard."""
    return declare(app, "orders", Notes())


def found(app: Lowkiq, check: str) -> list[tuple[str, str]]:
    """Mark and sentence of each finding of the doctor of that name, with the queue that it is about."""
    findings = [finding for finding in check_up(app.operate).findings if finding.check == check]
    return [(finding.mark, f"{finding.about}: {finding.says}") for finding in findings]


def judge(app: Lowkiq, clock: ManualClock, happens: Callable[[], object]) -> None:
    """It happens while the shard is recorded, and the duty has judged it then, 40 seconds ago."""
    duty = VerifyDuty(app.core)
    while not duty.run(lambda: math.inf)["drawn"]:
        clock.advance(60.0)
    happens()
    clock.advance(60.0)
    duty.run(lambda: math.inf)
    clock.advance(40.0)


def go_well(app: Lowkiq, worker: type[Worker[Any]]) -> None:
    """Three jobs are done."""
    worker.push_many(jobs_of("abc"))
    app.drain()


def lose(app: Lowkiq, worker: type[Worker[Any]]) -> None:
    """A payload of two is gone, behind the engine's back."""
    worker.push_many(jobs_of("ab"))
    shard = app.operate(worker).reader.shards[0]
    app.core.backend.client.hdel(shard.key("jobs"), "a")
    app.core.backend.client.zrem(shard.key("due"), "a")


def delete_journal(app: Lowkiq, worker: type[Worker[Any]]) -> None:
    """The journal of a queue that works well is gone."""
    go_well(app, worker)
    app.core.backend.client.delete(app.operate(worker).reader.shards[0].key("journal"))


@pytest.mark.parametrize("minutes", [0, 40])
def test_the_doctor_says_what_was_verified(
    app: Lowkiq, worker: type[Worker[Any]], clock: ManualClock, minutes: int
) -> None:
    """Positively, and of the time since the first run; of a queue that was never judged the duty's finding says why."""
    clock.advance(60.0 * minutes)
    before = found(app, "verify")
    judge(app, clock, lambda: go_well(app, worker))

    ((mark, sentence),) = found(app, "verify")
    assert ([], "ok") == (before, mark)
    assert sentence.startswith("orders: ")
    assert sentence.endswith("% of the last 4 min, 3 payloads, no violation; last look 40 s ago")


def test_the_doctor_is_red_until_a_violation_is_acknowledged(
    app: Lowkiq, worker: type[Worker[Any]], clock: ManualClock
) -> None:
    """P1 to P4 are violated then, as far as anybody knows."""
    judge(app, clock, lambda: lose(app, worker))
    check, ((mark, sentence),) = check_up(app.operate), found(app, "verify")
    app.operate(worker).acknowledge_violations()

    assert ("broken", "broken") == (check.mark, mark)
    assert {1, 2, 3, 4} <= {promise.number for promise in check.promises if promise.mark == "broken"}
    assert sentence.endswith(f"the last violation: {BROKEN}")
    assert ["ok"] == [mark for mark, _ in found(app, "verify")]


def test_the_doctor_warns_of_a_deleted_journal(app: Lowkiq, worker: type[Worker[Any]], clock: ManualClock) -> None:
    """It is no violation."""
    judge(app, clock, lambda: delete_journal(app, worker))

    ((mark, sentence),) = found(app, "verify")
    assert "warning" == mark
    assert f"0 payloads, {NONE}, {DELETED}" in sentence


def test_the_doctor_says_nothing_if_nobody_asks_for_it(own_server: Server, clock: ManualClock) -> None:
    """As before."""
    with closing_app(Lowkiq(Config(redis_url=own_server.url), clock=clock)) as app:
        declare(app, "orders", Notes())
        assert [] == found(app, "verify")


@pytest.mark.parametrize(
    ("happens", "sentence", "code"), [(go_well, NONE, 0), (lose, ONE, 1), (delete_journal, DELETED, 0)]
)
def test_the_command_line_says_it(  # noqa: PLR0913, PLR0917 - fixtures and cases
    app: Lowkiq,
    worker: type[Worker[Any]],
    clock: ManualClock,
    capsys: pytest.CaptureFixture[str],
    happens: Callable[[Lowkiq, type[Worker[Any]]], None],
    sentence: str,
    code: int,
) -> None:
    """Behind the verdict on what the journals have now; and as JSON."""
    judge(app, clock, lambda: happens(app, worker))
    codes = [main(["verify", worker.queue_name, "--app", SPEC])]
    lines = capsys.readouterr().out.splitlines()
    codes.append(main(["verify", worker.queue_name, "--app", SPEC, "--json"]))
    report = json.loads(capsys.readouterr().out)

    (line,) = [line for line in lines if line.startswith("housekeeping has verified")]
    assert [code, code] == codes
    assert sentence in line
    assert line.endswith("last look 40 s ago")
    assert (ONE in line) == any(BROKEN in line for line in lines)
    assert report["verified"]["found"] == int(ONE in line)
    assert report["deleted"] == ([0] if happens is delete_journal else [])


def test_a_violation_is_acknowledged_by_a_command(
    app: Lowkiq, worker: type[Worker[Any]], clock: ManualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once."""
    judge(app, clock, lambda: lose(app, worker))
    words = ["verify", worker.queue_name, "--app", SPEC, "--acknowledge"]
    codes = [main(words), main([*words, "--json"])]

    assert [0, 0] == codes
    assert ["acknowledged: 1", '{"acknowledged":0}'] == capsys.readouterr().out.splitlines()


def page_of(app: Lowkiq, clock: ManualClock) -> str:
    """That of the queue, for an operator."""
    browser = Browser(dashboard(app, auth=AUTH, clock=clock))
    browser.come_in(AUTH, OPERATOR, clock.time())
    return browser.get("/queue?queue=orders").text


def test_the_page_of_the_queue_says_it(app: Lowkiq, worker: type[Worker[Any]], clock: ManualClock) -> None:
    """What was verified; and what was violated, in a place of its own, until it is acknowledged."""
    judge(app, clock, lambda: go_well(app, worker))
    well = page_of(app, clock)
    judge(app, clock, lambda: lose(app, worker))
    badly = page_of(app, clock)
    app.operate(worker).acknowledge_violations()

    assert "3 payloads, no violation; last look 40 s ago" in well
    assert "1 violated promise" not in well + page_of(app, clock)
    assert "1 violated promise: <code>lowkiq verify orders</code>" in badly

"""The same sentence on each face: the page, the API, the command line, the findings and the log."""

import json
import logging
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Final

import pytest

from lowkiq_lambda.cli import main
from lowkiq_lambda.dashboard import dashboard
from lowkiq_lambda.operate.doctor.checkup import look_for_needs
from lowkiq_lambda.testing import ManualClock
from tests.kit.accounts import AUTH, OPERATOR
from tests.kit.apps import MakeApp
from tests.kit.playing import Played
from tests.kit.web import Browser

if TYPE_CHECKING:
    from lowkiq_lambda.operate.doctor.findings import Need

MODULE: Final = "app_of_lateness"


@pytest.fixture
def played(make_app: MakeApp, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch) -> Played:
    """A queue that is late, as its slots are full of calls that wait; the command line finds its app."""
    played = Played(make_app(namespace=queue_name), clock, queue_name)
    played.push(range(900), waited=600.0)
    module = ModuleType(MODULE)
    vars(module)["app"] = played.app
    monkeypatch.setitem(sys.modules, MODULE, module)
    monkeypatch.setenv("LOWKIQ_APP", f"{MODULE}:app")
    return played


def test_the_page_and_the_api_have_the_sentence(played: Played) -> None:
    """And what helps, with the numbers; the page of a queue that is on time has none of it."""
    browser = Browser(dashboard(played.app, auth=AUTH))
    browser.come_in(AUTH, OPERATOR, played.app.core.clock.time())
    late = played.minutes()

    page = browser.get(f"/queue?queue={late.queue}").text
    answer = browser.get(f"/api/v1/why_late?queue={late.queue}").json
    patient = browser.get(f"/api/v1/why_late?queue={late.queue}&limit=100000").json

    assert "Why is it late?" in page
    assert "full of calls that wait" in page
    assert (late.cause, late.says, late.advice) == (answer["cause"], answer["says"], answer["advice"])
    assert (False, None) == (patient["is_late"], patient["cause"])
    played.app.operate(played.worker).waiting.delete(everything=True)
    assert "Why is it late?" not in browser.get(f"/queue?queue={late.queue}").text


def test_the_command_line_has_the_sentence(played: Played, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code tells whether it is late."""
    late = played.minutes()

    codes = [main(["why", late.queue])]
    lines = capsys.readouterr().out.splitlines()
    codes.append(main(["why", late.queue, "--json"]))
    answer = json.loads(capsys.readouterr().out)
    codes.append(main(["why", late.queue, "--late-from", "100000"]))
    on_time = capsys.readouterr().out
    codes.append(main(["why", late.queue, "17", "--late-from", "5"]))

    assert [1, 1, 0, 2] == codes
    assert [late.says, "Cause: slots, in 8 of the last 8 minutes."] == lines[:2]
    assert f"-> {late.advice}" == lines[-1]
    assert (late.cause, late.says) == (answer["cause"], answer["says"])
    assert on_time.startswith("It is not late: the oldest due id has waited ")


@pytest.mark.parametrize("lag", ["-5", "0", "nan", "inf", "soon"])
def test_a_lag_that_cannot_be_is_refused(played: Played, capsys: pytest.CaptureFixture[str], lag: str) -> None:
    """In one line that says what to give."""
    code = main(["why", played.worker.queue_name, f"--late-from={lag}"])
    printed = capsys.readouterr()

    assert (2, "") == (code, printed.out)
    assert "--late-from" in printed.err


def test_it_needs_somebody_and_is_logged_once(played: Played, caplog: pytest.LogCaptureFixture) -> None:
    """One line with the cause and what helps; none while the minutes are too few."""
    seen: list[Need] = []

    def look() -> None:
        seen[:] = [need for need in look_for_needs(played.app.operate) if need.check == "late"]

    with caplog.at_level(logging.WARNING):
        played.minutes(3)
        played.within.append(look)
        played.minute()
        too_early = [*seen]
        late = played.minutes(8)
    played.within.append(look)
    played.minute()
    (need,) = seen

    assert [] == too_early
    assert ("warning", late.queue, f"lowkiq why {late.queue}") == (need.mark, need.about, need.act.command)
    assert need.says.endswith("computing (slots)")
    assert late.advice == need.advice
    assert 1 == sum(record.message.startswith("a queue is late: ") for record in caplog.records)


def test_a_cause_that_another_line_tells_has_no_second_line(played: Played) -> None:
    """A queue that fails has its line, and so it is with limits and pauses."""
    played.failing = lambda job_id: not job_id.endswith("7")
    late = played.minutes()

    checks = {need.check for need in look_for_needs(played.app.operate) if need.about == late.queue}

    assert "failures" == late.cause
    assert "failing" in checks
    assert "late" not in checks

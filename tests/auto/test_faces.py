"""The same line on each face: the page, the API, the command line and the findings; and what people answer there."""

import json
import sys
from http import HTTPStatus
from types import ModuleType
from typing import Final

import pytest

from lowkiq_lambda import Auto, Lowkiq
from lowkiq_lambda.cli import main
from lowkiq_lambda.dashboard import dashboard
from lowkiq_lambda.engine import visit
from lowkiq_lambda.operate.auto.duty import AutoDuty
from lowkiq_lambda.operate.doctor.checkup import check_up
from lowkiq_lambda.reshard.group import GroupMove, Postponed
from lowkiq_lambda.testing import ManualClock
from tests.auto.sizing import ONE, Sized
from tests.kit.accounts import AUTH, OPERATOR
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.playing import MINUTE
from tests.kit.web import Browser
from tests.kit.workers import declare

MODULE: Final = "app_of_auto"
LINE: Final = "1 → 4 shards: for 7 of 7 min late shards were full, 1 of 1 in the last"


@pytest.fixture
def sized(make_app: MakeApp, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch) -> Sized:
    """A queue that needs shards, with a proposal that waits for a yes; the command line finds its app."""
    monkeypatch.setattr(visit, "thread_time", lambda: clock.monotonic() / 2)
    sized = Sized(make_app, clock, queue_name, mode="propose")
    sized.arrive_late()
    sized.sized(8)
    module = ModuleType(MODULE)
    vars(module)["app"] = sized.app
    monkeypatch.setitem(sys.modules, MODULE, module)
    monkeypatch.setenv("LOWKIQ_APP", f"{MODULE}:app")
    return sized


def test_the_page_and_the_api_have_the_line(sized: Sized) -> None:
    """They show the last decision, and decide nothing; a queue whose code declares a number has none."""
    other = declare(sized.app, f"{sized.worker.queue_name}-fixed", Notes(), shards_count=2)
    other.push_many([{"id": 1}])
    browser = Browser(dashboard(sized.app, auth=AUTH))
    browser.come_in(AUTH, OPERATOR, sized.app.core.clock.time())
    page = browser.get(f"/queue?queue={sized.worker.queue_name}").text
    answer = browser.get(f"/api/v1/auto?queue={sized.worker.queue_name}").json

    assert "How many shards?" in page
    assert LINE in page
    assert answer["decision"]["says"].startswith(LINE)
    assert "How many shards?" not in browser.get(f"/queue?queue={other.queue_name}").text
    assert HTTPStatus.NOT_FOUND == browser.get(f"/api/v1/auto?queue={other.queue_name}").status


def test_why_it_is_late_goes_by_its_own_target(sized: Sized) -> None:
    """What `lowkiq auto` calls late is late to `lowkiq why` and the page, too."""
    late = sized.app.operate(sized.worker).why_late()

    assert late.lag > 5.0
    assert late.is_late


def test_the_command_tells_and_does(sized: Sized, capsys: pytest.CaptureFixture[str]) -> None:
    """It tells the evidence and the costs before it asks, and then the move is made."""
    name = sized.worker.queue_name
    assert 1 == main(["auto"])
    assert f"{name}: {LINE}" in capsys.readouterr().out

    assert 1 == main(["auto", name])
    text = capsys.readouterr().out
    assert f"{name}: {LINE}" in text
    assert "Cause: shards, in 7 of the last 7 minutes." in text
    assert "ids, each waits for some 2.0 s." in text
    assert "Bounds: 1 to 80 shards, lag up to 5 s; auto is 'propose'." in text
    assert f"-> carry it out: lowkiq auto {name} --do" in text

    # Without a terminal nobody can say yes.
    assert [2, 2, 2] == [main(["auto", name, *order]) for order in (["--do"], ["--hold", "7d"], ["--release"])]
    assert (1, None) == (sized.shards, sized.state.held_until)
    capsys.readouterr()

    assert 0 == main(["auto", name, "--do", "--yes"])
    assert f"{name} has 4 shards" in capsys.readouterr().out
    assert 4 == sized.shards
    assert 1 == main(["auto", name, "--do", "--yes"])


def test_a_queue_that_was_made_otherwise_is_left_out(
    sized: Sized, make_app: MakeApp, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named, with the reason, and hides no other; alone it is nothing that is proposed."""
    name = sized.worker.queue_name
    other = declare(make_app(namespace=name), f"{name}-other", Notes(), shards_count=ONE, merge="latest")
    other.push_many([{"id": 1, "score": 1}])
    declare(sized.app, other.queue_name, Notes(), shards_count=ONE)

    assert 1 == main(["auto"])
    printed = capsys.readouterr()
    assert f"{name}: {LINE}" in printed.out
    assert printed.err.startswith(
        f"{other.queue_name} is left out: Queue {other.queue_name!r} is declared with merge='min'"
    )

    sized.app.operate(sized.worker).auto.hold()
    sized.look()
    assert 0 == main(["auto", "--json"])
    assert [other.queue_name] == [*json.loads(capsys.readouterr().out)["skipped"]]


def test_a_move_that_is_turned_round_meanwhile_is_told(
    sized: Sized, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the duty does where a batch holds a shard for long: the command says how many shards there are."""
    name, queue = sized.worker.queue_name, sized.app.operate(sized.worker)

    def turning(*_: object) -> Postponed:
        monkeypatch.setattr(GroupMove, "run", run)
        queue.resharding().abort(lambda *_: None)
        return Postponed(0.1, "its shards are held by batches that run long")

    run = GroupMove.run
    monkeypatch.setattr(GroupMove, "run", turning)

    assert 1 == main(["auto", name, "--do", "--yes"])
    assert f"{name} has 1 shards: its move to 4 was turned round" in capsys.readouterr().out
    assert 1 == sized.shards


def test_the_command_holds_and_releases(sized: Sized, capsys: pytest.CaptureFixture[str]) -> None:
    """The hold is told with who gave it; a bad time changes nothing."""
    name = sized.worker.queue_name
    assert 2 == main(["auto", name, "--hold", "soon", "--yes"])
    assert 2 == main(["auto", name, "--hold", "99999999999d", "--yes"])
    assert "99999999999d is too long: give 11574d at most." in capsys.readouterr().err
    assert 0 == main(["auto", name, "--hold", "7d", "--yes"])
    capsys.readouterr()

    assert 0 == main(["auto", name, "--json"])
    held = json.loads(capsys.readouterr().out)
    assert "stays at 1: somebody has stopped it here" in str(held["decision"])
    assert 0 == main(["auto", name, "--release", "--yes"])

    assert None is sized.state.held_until


def test_other_bounds_of_another_app_are_a_finding(sized: Sized, make_app: MakeApp) -> None:
    """The narrower ones hold, for both."""
    name = sized.worker.queue_name
    other: Lowkiq = make_app(namespace=name)
    declare(other, name, Notes(), shards_count=Auto(least=1, most=2, lag=9.0))
    AutoDuty(other.core).run(lambda: MINUTE)

    findings = [finding for finding in check_up(sized.app.operate).findings if finding.check == "shards"]

    (finding,) = findings
    bounds = f"another app declares it with other bounds than {ONE.least} to {ONE.most} shards"
    assert f"{bounds}: the narrower hold, 1 to 2, lag up to 9 s" == finding.says
    assert "2 at most" in sized.sized(1).says

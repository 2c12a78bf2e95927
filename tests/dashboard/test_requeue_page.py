"""The confirmation of a requeue: how fast ids come back, in which order, and what would become of them."""

import logging
import re
from hashlib import sha512
from typing import Any
from urllib.parse import quote

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.dashboard.pages import actions
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import READER
from tests.kit.desk import Desk
from tests.kit.handlers import FailingHandler
from tests.kit.servers import Server
from tests.kit.web import Answer, Browser


@pytest.fixture
def desk(app: Lowkiq, clock: ManualClock, worker: Any, handler: FailingHandler, server: Server) -> Desk:
    """What is known of the queue from below."""
    return Desk(app, clock, worker, handler, server.admin)


def ask(browser: Browser, desk: Desk, *ids: str) -> Answer:
    """The question, about these ids or about all."""
    fields = {"queue": desk.worker.queue_name, "do": "picked:requeue" if ids else "found:requeue"}
    return browser.follow(browser.send("/actions/ask", {**fields, "ids": [quote(one) for one in ids]}))


def press(browser: Browser, asked: Answer, path: str, **typed: str) -> Answer:
    """A button of the form, without scripts."""
    (state,) = re.findall(r'name="action_state" value="(.*?)"', asked.text)
    return browser.send(path, {"action_state": state, **typed})


def due(desk: Desk) -> list[float]:
    """When the waiting ids are due, the first first."""
    return sorted(job.due_at for job in desk.queue.waiting.search(limit=1_000))


def test_ids_come_back_so_many_in_a_second(browser: Browser, desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """They are due half a second apart from the moment of the answer, and the log has the reason."""
    desk.kill([{"id": name} for name in "abc"])
    asked = ask(browser, desk)
    desk.clock.advance(30.0)
    caplog.set_level(logging.INFO, "lowkiq_lambda.activity")
    done = press(browser, asked, "/actions/step", rate="2", order="score", reason="the shop is slow")

    assert "3 ids were changed" in browser.follow(done).words
    now = desk.clock.time()
    assert [now, now + 0.5, now + 1.0] == pytest.approx(due(desk))
    (line,) = caplog.records
    assert ("olga", "the shop is slow") == (line.who, line.reason)  # type: ignore[attr-defined]  # the log sets it
    assert line.address  # type: ignore[attr-defined]  # the log sets it
    assert line.session  # type: ignore[attr-defined]  # the log sets it


def test_a_payload_stays_where_a_newer_one_waits(browser: Browser, desk: Desk) -> None:
    """The order is what the action does."""
    desk.kill([{"id": "a", "score": 1}, {"id": "b", "score": 1}])
    desk.push([{"id": "a", "score": 2}])

    press(browser, ask(browser, desk), "/actions/step", rate="", order="unless_newer")
    assert ["a"] == [*desk.state()["morgue"]]


def test_a_dry_run_tells_what_would_become_of_them(browser: Browser, desk: Desk) -> None:
    """It says it on the same page, keeps what was typed, and changes nothing."""
    desk.kill([{"id": "a", "score": 1}, {"id": "b", "score": 1}])
    desk.push([{"id": "a", "score": 2}])
    before = desk.state()
    typed = {"rate": "0.5", "order": "unless_newer", "reason": "to see"}
    answer = press(browser, ask(browser, desk, "a", "b"), "/actions/dry-run", **typed)
    assert answer.status == 303

    page = browser.follow(answer)
    assert before == desk.state()
    assert "a : stays: a newer payload waits or runs" in page.words
    assert "b : 1 payload would wait in shard 0 until " in page.words
    assert "1 id would wait again, 1 would not; nothing was changed." in page.words
    assert 'name="rate" value="0.5"' in page.text
    assert '<option value="unless_newer" selected>' in page.text
    assert 'name="reason" value="to see"' in page.text
    press(browser, page, "/actions/step", **typed)
    assert ["a"] == [*desk.state()["morgue"]]


def test_a_dry_run_tells_of_the_first_twenty(browser: Browser, desk: Desk) -> None:
    """A page of thousands would help nobody; and a long selection has no address, but its dry run all the same."""
    names = [sha512(str(number).encode()).hexdigest() for number in range(90)]
    desk.kill([{"id": name} for name in names])
    page = press(browser, ask(browser, desk), "/actions/dry-run", rate="", order="score")
    assert "20 ids would wait again, 0 would not" in browser.follow(page).words

    fields = {"queue": desk.worker.queue_name, "do": "picked:requeue", "ids": names}
    asked = browser.send("/actions/ask", fields)
    assert 200 == asked.status
    page = press(browser, asked, "/actions/dry-run", rate="", order="score")
    assert "20 ids would wait again, 0 would not" in page.words
    assert 90 == len(desk.state()["morgue"])


@pytest.mark.parametrize("path", ["/actions/dry-run", "/actions/step"])
@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ({"rate": "fast", "order": "score"}, "Give a number of ids a second"),
        ({"rate": "0", "order": "score"}, "Give a number of ids a second"),
        ({"rate": "nan", "order": "score"}, "Give a number of ids a second"),
        ({"rate": "1", "order": "first"}, "knows no such order"),
        ({"rate": "0.000000000001", "order": "score"}, "beyond the year 9999"),
    ],
)
def test_terms_that_cannot_work_are_refused(
    browser: Browser, desk: Desk, path: str, typed: dict[str, str], sentence: str
) -> None:
    """Nothing is changed."""
    desk.kill([{"id": "a"}, {"id": "b"}])
    answer = press(browser, ask(browser, desk), path, **typed)
    answer = browser.follow(answer) if answer.status == 303 else answer
    assert (400, True) == (answer.status, sentence in answer.words)
    assert {"a", "b"} == {*desk.state()["morgue"]}


def test_the_rest_comes_after_those_before(browser: Browser, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted action goes on at its rate: no id of the rest is due before the last of its first part."""
    monkeypatch.setattr(actions, "IDS_IN_A_STEP", 500)
    desk.kill([{"id": number} for number in range(800)])
    half = press(browser, ask(browser, desk), "/actions/step", rate="10", order="score", reason="a test")
    rest = browser.follow(half)
    assert "has changed 500 ids" in rest.words
    assert 'name="rate" value="10"' in rest.text
    press(browser, rest, "/actions/step", rate="10", order="score")

    begun = due(desk)[0]
    assert [begun + number / 10 for number in range(800)] == pytest.approx(due(desk), abs=0.01)


def test_a_reader_has_no_dry_run(make_browser: MakeBrowser, browser: Browser, desk: Desk) -> None:
    """It belongs to the action, which only an operator has; other actions have no terms."""
    desk.kill([{"id": "a"}])
    asked = ask(browser, desk)
    reader = make_browser(READER)
    assert 403 == press(reader, asked, "/actions/dry-run", rate="", order="score").status

    fields = {"queue": desk.worker.queue_name, "do": "found:delete_dead"}
    assert "Dry run" not in browser.follow(browser.send("/actions/ask", fields)).words


def test_what_waits_for_a_later_time_comes_at_a_rate(browser: Browser, desk: Desk) -> None:
    """The same form has a rate and a dry run, and no order; the result says by when the last is due."""
    desk.push([{"id": name, "delay": 600} for name in "abc"])
    fields = {"queue": desk.worker.queue_name, "do": "found:run_now"}
    asked = browser.follow(browser.send("/actions/ask", fields))
    now, before = desk.clock.time(), desk.state()

    planned = browser.follow(press(browser, asked, "/actions/dry-run", rate="2"))
    assert before == desk.state()
    assert "3 ids would be due one after the other, the last by " in planned.words
    assert ('name="rate" value="2"' in planned.text, 'name="order"' in planned.text) == (True, False)
    done = browser.follow(press(browser, planned, "/actions/step", rate="2"))

    assert "3 ids were changed. The last is due by " in done.words
    assert [now + 0.5, now + 1.0, now + 1.5] == pytest.approx(due(desk))


def test_the_rest_of_a_paced_run_now_has_the_next_turns(
    browser: Browser, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without scripts each step asks again: ids that have a time of the first step take no turn of the second."""
    monkeypatch.setattr(actions, "IDS_IN_A_STEP", 500)
    desk.push([{"id": f"{number:04}", "delay": 7_200} for number in range(900)])
    fields = {"queue": desk.worker.queue_name, "do": "found:run_now"}
    page, now = browser.follow(browser.send("/actions/ask", fields)), desk.clock.time()
    page = browser.follow(press(browser, page, "/actions/step", rate="10", reason="a test"))
    assert "has changed 500 ids" in page.words
    desk.clock.advance(1.0)
    page = browser.follow(press(browser, page, "/actions/step", rate="10", reason="a test"))

    assert "900 ids were changed" in page.words
    assert [now + number / 10 for number in range(1, 901)] == pytest.approx(due(desk), abs=0.01)

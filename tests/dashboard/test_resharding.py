"""A queue gets another number of shards by click: the page begins the move, and housekeeping goes on with it."""

import json
import math
import re
from typing import Any

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.dashboard import dashboard
from lowkiq_lambda.operate.doctor.checkup import look_for_needs
from lowkiq_lambda.operate.inspect.activity import read_activity
from lowkiq_lambda.reshard.duty import ReshardDuty
from lowkiq_lambda.testing import ManualClock
from tests.kit.accounts import AUTH, READER
from tests.kit.handlers import FailingHandler
from tests.kit.web import Answer, Browser
from tests.kit.workers import declare, jobs_of

IDS = [str(number) for number in range(40)]


@pytest.fixture
def moved(app: Lowkiq, queue_name: str, handler: FailingHandler) -> Any:
    """A worker with 12 shards and 40 waiting ids."""
    worker = declare(app, queue_name, handler, shards_count=12)
    worker.push_many(jobs_of(IDS))
    return worker


@pytest.fixture
def begin_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request has no time to carry."""
    monkeypatch.setattr("lowkiq_lambda.dashboard.moving.CARRIES_FOR", 0.0)


def sent(browser: Browser, worker: Any, do: str, **fields: str) -> Answer:
    """The answer to a confirmed step."""
    return browser.send("/actions/reshard", {"queue": worker.queue_name, "do": do, **fields})


def shards_page(browser: Browser, worker: Any) -> Answer:
    """The page of the shards."""
    return browser.get(f"/shards?queue={worker.queue_name}")


def rows_of(page: Answer) -> list[list[str]]:
    """The numbers of the shards in each table."""
    return [re.findall(r'<th scope="row">(\d+)</th>', table) for table in page.text.split("<tbody>")[1:]]


def move_one_group(app: Lowkiq, worker: Any) -> None:
    """As a mover that dies after its first group."""
    resharding = app.operate(worker).resharding()
    groups = resharding.layout.left[:-1]
    resharding.go_on(lambda *_: None, lambda: 1.0 if len(resharding.layout.left) > len(groups) else 0.0)


@pytest.mark.usefixtures("begin_only")
def test_a_move_that_the_page_has_begun_is_carried_by_housekeeping(
    app: Lowkiq, moved: Any, browser: Browser, clock: ManualClock
) -> None:
    """The page shows old and new shards by their own numbers, and then the new ones alone."""
    asked = browser.get(f"/actions/reshard?queue={moved.queue_name}&count=8&do=begin")
    answer = sent(browser, moved, "begin", count="8", reason="fewer will do")
    page = browser.follow(answer)

    assert "From 12 to 8 shards : 40 ids move" in asked.words
    assert "On its way from 12 to 8 shards 0 of 4 groups have moved. 40 ids are still in the old shards." in page.words
    assert ("12 old shards", "8 new shards") == tuple(re.findall(r"\d+ (?:old|new) shards(?=</h2>)", page.text))
    assert [[str(one) for one in range(12)], [str(one) for one in range(8)]] == rows_of(page)
    (past,) = read_activity(app.core.backend, 0.0, [moved.queue_name], 10)
    assert ("reshard", "from 12 to 8 shards", "fewer will do") == (past.action, past.target, past.reason)

    clock.advance(60.0)
    assert {moved.queue_name: "moved"} == ReshardDuty(app.core).run(lambda: math.inf)
    page = shards_page(browser, moved)
    assert ([[str(one) for one in range(8)]], False) == (rows_of(page), "On its way" in page.words)
    assert {"done": 40} == app.drain()


def test_a_short_move_is_done_in_the_request(app: Lowkiq, moved: Any, browser: Browser) -> None:
    """What fits into it needs no housekeeping."""
    page = browser.follow(sent(browser, moved, "begin", count="24"))

    assert [[str(one) for one in range(24)]] == rows_of(page)
    assert {"done": 40} == app.drain()


@pytest.mark.usefixtures("begin_only")
def test_a_move_is_turned_round_in_its_middle(
    app: Lowkiq, moved: Any, browser: Browser, monkeypatch: pytest.MonkeyPatch, clock: ManualClock
) -> None:
    """The group that has moved walks back; a second turn has nothing to do, and "Go on" brings it to its end."""
    sent(browser, moved, "begin", count="8")
    move_one_group(app, moved)
    clock.advance(5.0)
    assert "1 of 4 groups have moved" in shards_page(browser, moved).words

    page = browser.follow(sent(browser, moved, "turn round", reason="too few"))

    assert "On its way back from 8 to 12 shards 3 of 4 groups have moved." in page.words
    assert "turn-round" not in page.text
    again = browser.get(f"/actions/reshard?queue={moved.queue_name}&do=turn+round")
    assert "Nothing to do: the move was turned round already." in again.words
    clock.advance(180.0)
    monkeypatch.setattr("lowkiq_lambda.dashboard.moving.CARRIES_FOR", 3.0)
    page = browser.follow(sent(browser, moved, "go on"))
    assert [[str(one) for one in range(12)]] == rows_of(page)
    told = [past.target for past in read_activity(app.core.backend, 0.0, [moved.queue_name], 10)]
    assert {"turned round, from 8 to 12 shards", "goes on from 8 to 12 shards"} < {*told}
    assert {"done": 40} == app.drain()


@pytest.mark.usefixtures("begin_only")
def test_a_move_that_stands_still_needs_somebody_and_leads_to_the_page(
    app: Lowkiq, moved: Any, browser: Browser, clock: ManualClock
) -> None:
    """Its act is there."""
    sent(browser, moved, "begin", count="8")
    clock.advance(61.0)

    (need,) = (need for need in look_for_needs(app.operate) if need.check == "moves")

    assert ("shards", {"queue": moved.queue_name}, True) == (need.act.page, need.act.query, need.act.is_there)


@pytest.mark.usefixtures("begin_only")
def test_a_number_that_cannot_be_and_a_second_move_are_refused_in_a_sentence(moved: Any, browser: Browser) -> None:
    """On the confirmation and where the form is sent by hand; nothing changes."""
    here = f"/actions/reshard?queue={moved.queue_name}&do=begin&count="
    for typed in ("0", "-1", "1.5", "many", "9" * 30, ""):
        answers = [browser.get(here + typed), sent(browser, moved, "begin", count=typed)]
        assert [400, 400] == [answer.status for answer in answers], typed
        assert all("The number of shards is a whole number from 1 to" in answer.words for answer in answers)
    assert "Nothing to do: the queue has 12 shards." in browser.get(f"{here}12").words
    assert "Nothing to do" in browser.get(f"/actions/reshard?queue={moved.queue_name}&do=go+on").words

    sent(browser, moved, "begin", count="8")

    answers = [browser.get(f"{here}6"), sent(browser, moved, "begin", count="6")]
    assert [409, 409] == [answer.status for answer in answers]
    assert all("on its way from 12 to 8 shards" in answer.words for answer in answers)


def test_readers_move_nothing(app: Lowkiq, moved: Any) -> None:
    """They see the page without its form, and are refused."""
    reader = Browser(dashboard(app, auth=AUTH))
    reader.sign_in(READER)

    assert "actions/reshard" not in shards_page(reader, moved).text
    assert 403 == reader.get(f"/actions/reshard?queue={moved.queue_name}&do=begin&count=8").status
    assert 403 == reader.post("/actions/reshard", {"queue": moved.queue_name, "do": "begin", "count": "8"}).status
    assert not app.operate(moved).resharding().layout.is_moving


@pytest.mark.usefixtures("begin_only")
def test_the_api_begins_a_move_and_tells_of_it(app: Lowkiq, moved: Any, browser: Browser, clock: ManualClock) -> None:
    """With the same numbers as the page; another move meanwhile is a conflict."""

    def post(path: str, **fields: Any) -> Answer:
        headers = {"content-type": "application/json", "x-csrf-token": browser.proof()}
        body = {"queue": moved.queue_name, "reason": "by a program", **fields}
        return browser.ask("POST", f"/api/v1/queue/{path}", headers, json.dumps(body).encode())

    begun, second = (post("reshard", shards_count=count) for count in (8, 6))
    told = browser.get(f"/api/v1/reshard?queue={moved.queue_name}").json

    assert (200, 409, "shards_changed") == (begun.status, second.status, second.json["code"])
    assert (12, 8) == (told["shards_count"], told["moves_to"])
    assert (4, 0, 40) == (told["groups"], told["moved"], told["ids_left"])
    clock.advance(60.0)
    ReshardDuty(app.core).run(lambda: math.inf)
    told = browser.get(f"/api/v1/reshard?queue={moved.queue_name}").json
    assert (8, None) == (told["shards_count"], told["moves_to"])
    post("reshard", shards_count=12)
    turned = post("turn_round").json
    assert (8, 12, True) == (turned["moves_to"], turned["shards_count"], turned["is_returning"])

"""What became of an id, on the page of the job."""

import json
import re
from typing import Any

from lowkiq_lambda import Lowkiq, discard_on, kill_on, retry_on
from lowkiq_lambda.operate.inspect.activity import record_action
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.activity import ActivityEntry
from tests.kit.handlers import FailingHandler, raising
from tests.kit.web import Browser
from tests.kit.workers import declare


def test_a_job_that_is_done_has_a_past(app: Lowkiq, worker: Any, browser: Browser) -> None:
    """SK-21: also an id that is gone: its pushes, claims and outcomes, newest first, where the journal has all."""
    page = f"/job?queue={worker.queue_name}&id=7"
    assert "The journal of the shard does not mention this id" in browser.get(page).words
    app.operate(worker).journal("all", seconds=600.0)
    worker.push_many([{"id": "7"}])
    app.drain()

    words = browser.get(page).words

    done, claimed, pushed = (
        words.index(text) for text in ("It was done", "A drain claimed it", "A payload was pushed")
    )
    assert done < claimed < pushed
    assert "Pushes, claims and outcomes are complete since" in words
    assert "A drain claimed it" not in browser.part(page).words


def test_the_journal_of_trouble_has_deaths(app: Lowkiq, worker: Any, handler: FailingHandler, browser: Browser) -> None:
    """Without the level of all: what went wrong and what operators did."""
    handler.failing = {"7"}
    worker.push_many([{"id": "7"}])
    app.drain()
    app.operate(worker).waiting.kill(["7"])

    words = browser.get(f"/job?queue={worker.queue_name}&id=7").words

    assert "An operator killed it" in words
    assert "has pushes, claims and outcomes, too, while" in words


def test_an_expiry_is_on_the_page_and_in_the_api(app: Lowkiq, worker: Any, browser: Browser) -> None:
    """Until when the oldest payload may run; and, of what was killed for it, that its time was over."""
    worker.expired = "kill"
    worker.push_many([{"id": "7", "delay": 100, "expires_in": 60}, {"id": "8", "expires_at": 1_500_000_000}])
    app.drain()

    waits, past = (browser.get(f"/job?queue={worker.queue_name}&id={id_}").words for id_ in "78")
    answers = [json.loads(browser.get(f"/api/v1/job?queue={worker.queue_name}&id={id_}").text) for id_ in "78"]

    assert "Its oldest payload expires in 2m" in waits
    assert "The time of a payload was over." in past
    assert "it expired at 2017-07-14T02:40:00Z before it ran" in past
    assert [60, None] == [one["expires_at"] and round(one["expires_at"] - one["waiting"]["due_at"]) for one in answers]


def test_rules_that_decided_are_named(app: Lowkiq, worker: Any, browser: Browser) -> None:
    """SK-5: on the page of a dead job, in the API, and in the past of one that was discarded."""
    worker.on_error = (discard_on(KeyError), kill_on(ValueError))
    errors = {"7": KeyError("gone"), "8": ValueError("no schema")}
    worker.perform = lambda _self, batch: [batch.fail(job_id, errors[job_id]) for job_id in batch] and None
    worker.push_many([{"id": "7"}, {"id": "8"}])
    app.drain()

    words = browser.get(f"/job?queue={worker.queue_name}&id=8").words
    answer = json.loads(browser.get(f"/api/v1/job?queue={worker.queue_name}&id=8").text)

    assert "kill_on(ValueError) decided" in words
    assert ["kill_on(ValueError)"] == [failure["rule"] for failure in answer["failures"]]
    past = browser.get(f"/job?queue={worker.queue_name}&id=7").words
    assert "A payload was discarded by discard_on(KeyError)." in past


def test_the_answer_for_a_job_that_is_gone_names_the_rule(app: Lowkiq, worker: Any, browser: Browser) -> None:
    """SK-5: nothing else is left of it; of others the journal has nothing, and the answer is as ever."""
    worker.on_error = (discard_on(KeyError),)
    worker.perform = lambda _self, batch: batch.fail("7", KeyError("gone"))
    worker.push_many([{"id": "7"}, {"id": "8", "expires_at": 1_500_000_000}])
    app.drain()

    answers = [browser.get(f"/api/v1/job?queue={worker.queue_name}&id={id_}") for id_ in "789"]

    assert [(404, "unknown_job")] * 3 == [(one.status, json.loads(one.text)["code"]) for one in answers]
    discarded, expired, unknown = (json.loads(one.text)["detail"] for one in answers)
    assert f"{unknown} discard_on(KeyError) dropped a payload of it at " in discarded
    assert "; the error has the fingerprint " in discarded
    assert f"{unknown} A payload of it expired, which was found at " in expired


def test_the_answer_for_a_job_that_is_gone_has_its_last_kept_run(app: Lowkiq, worker: Any, browser: Browser) -> None:
    """Also of one that is done, which leaves nothing in a journal."""
    worker.keep_runs = 100
    worker.push_many([{"id": "7"}])
    app.drain()

    detail = json.loads(browser.get(f"/api/v1/job?queue={worker.queue_name}&id=7").text)["detail"]

    assert "Its last kept run began at " in detail
    assert detail.endswith(" UTC: done.")


def test_the_timeline_says_who_did_it_and_why(
    app: Lowkiq, worker: Any, handler: FailingHandler, browser: Browser
) -> None:
    """The line of the activity and the event of the journal are one; what only the activity has stands by itself."""
    handler.failing = {"7"}
    worker.push_many([{"id": "7"}])
    app.drain()
    app.operate(worker).waiting.kill(["7"])
    for action, target in (("kill", "2 selected: '7', '8'"), ("pause", "1 selected: '70'"), ("edit", "payload 1 of 7")):
        act = ActivityEntry(
            at=app.core.clock.time(), who="olga", action=action, queue=worker.queue_name, target=target, reason="poison"
        )
        record_action(app.core.backend, act)

    words = browser.get(f"/job?queue={worker.queue_name}&id=7").words

    assert "olga killed it. shard 0 · “poison”" in words
    assert "olga: edit. “poison”" in words
    assert 1 == words.count("killed it")
    assert "olga: pause" not in words


def test_a_job_has_a_strip_of_its_stages(
    app: Lowkiq, worker: Any, handler: FailingHandler, browser: Browser, clock: ManualClock
) -> None:
    """Its last failures, what it does now, and the next try."""
    page = f"/job?queue={worker.queue_name}&id=7"
    assert "Its stages" not in browser.get(page).text
    handler.failing = {"7"}
    worker.push_many([{"id": "7"}])
    assert "Waits due for 0 s Try 1 of " in browser.get(page).words
    app.drain()
    clock.advance(10.0)
    assert re.search(r"Try 1 failed 2027-\S+ \S+ UTC Waits for 50 s more Try 2 of \d+ 2027-", browser.get(page).words)
    assert "Try 2 is planned." in browser.get(page).words
    app.operate(worker).waiting.kill(["7"])
    assert "UTC Dead 2027-" in browser.get(page).words


def test_the_tries_of_a_rule_are_on_the_strip(app: Lowkiq, queue_name: str, browser: Browser) -> None:
    """Once an error has failed by a rule with a smaller number, that one counts."""
    worker = declare(app, queue_name, raising(ValueError("no")), on_error=(retry_on(ValueError, most=4),))
    worker.push_many([{"id": "7"}])
    app.drain()

    words = browser.get(f"/job?queue={queue_name}&id=7").words

    assert "retry 1 of 4." in words
    assert "more Try 2 of 5 2027-" in words
    assert "Failures 1 of 5" in words

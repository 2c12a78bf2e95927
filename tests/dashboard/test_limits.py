"""Limits of a queue on the dashboard and in its API."""

import json
import logging
from typing import Any
from urllib.parse import urlencode

import pytest

from lowkiq_lambda import Lowkiq, Rate
from lowkiq_lambda.dashboard import Auth, Token, dashboard
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import READER
from tests.kit.handlers import FailingHandler
from tests.kit.permits import come
from tests.kit.web import Answer, Browser
from tests.kit.workers import declare, shard_of

ACTIVITY = "lowkiq_lambda.activity"
SECRET = "o" * 20


@pytest.fixture
def limited(app: Lowkiq, queue_name: str, handler: FailingHandler) -> Any:
    """A worker of four shards, two at once, ten ids a minute."""
    return declare(app, queue_name, handler, shards_count=4, max_running=2, rate=Rate(10, per=60))


@pytest.fixture
def follower(app: Lowkiq, queue_name: str, limited: Any, handler: FailingHandler) -> Any:
    """A worker that waits for the limited one."""
    return declare(app, f"{queue_name}-follower", handler, waits_for=(limited.queue_name,))


@pytest.fixture
def robot(app: Lowkiq, clock: ManualClock) -> Browser:
    """An operator's program."""
    served = dashboard(app, auth=Auth(tokens=[Token("robot", SECRET, "operator")]), clock=clock)
    return Browser(served, headers={"authorization": f"Bearer {SECRET}"})


def shown(browser: Browser, worker: Any) -> str:
    """The words of the page."""
    return browser.get(f"/limits?{urlencode({'queue': worker.queue_name})}").words


def order(browser: Browser, worker: Any, do: str, **fields: str) -> Answer:
    """What the form sends."""
    return browser.send("/actions/limits", {"queue": worker.queue_name, "do": do, **fields})


def act(robot: Browser, path: str, **body: Any) -> Answer:
    """Have a program do something."""
    return robot.ask("POST", f"/api/v1/{path}", {"content-type": "application/json"}, json.dumps(body).encode())


def why(browser: Browser, worker: Any, job_id: str) -> str:
    """The page of a job."""
    return browser.get(f"/job?{urlencode({'queue': worker.queue_name, 'id': job_id})}").words


def test_x35_the_page_tells_who_has_the_permits(app: Lowkiq, limited: Any, follower: Any, browser: Browser) -> None:
    """X-35: the limits that count, the holders and until when, the wait list, ids left, who waits for the queue."""
    assert "0 of 2" in shown(browser, limited)
    come(app, limited, 0, 1, 2, want=4)

    page = shown(browser, limited)

    assert "2 of 2 full" in page
    assert "10 ids in 1m" in page
    assert "Ids left 2" in page
    assert "0 has a permit in 30 s" in page
    assert "2 number 1 on the wait list" in page
    assert "this queue waits for" in shown(browser, follower)
    assert "2 shards are visited" in shown(browser, follower)


def test_a_queue_without_limits_says_so(worker: Any, browser: Browser) -> None:
    """The page tells what limits are, and an operator may set some."""
    assert "No limits" in shown(browser, worker)
    assert 404 == browser.get("/limits?queue=unknown").status


def test_x30_an_operator_changes_limits(
    app: Lowkiq, limited: Any, browser: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    """X-30: the form shows what counts; what is sent counts from then on, until it is reset; and it is noted."""
    caplog.set_level(logging.INFO, ACTIVITY)
    form = browser.get(f"/actions/limits?{urlencode({'queue': limited.queue_name, 'do': 'set'})}").text
    assert all(f'value="{value}"' in form for value in ("2", "10", "60 s"))

    page = browser.follow(order(browser, limited, "set", permits="1", ids="", per="")).words

    assert "0 of 1" in page
    assert "set at run time" in page
    view = app.operate(limited).limits.explain()
    assert (1, None, True) == (view.max_running, view.rate, view.is_set)
    asked = browser.get(f"/actions/limits?{urlencode({'queue': limited.queue_name, 'do': 'reset'})}").words
    assert "at most 2 shards at once, at most 10 ids in 1m" in asked
    assert "0 of 2" in browser.follow(order(browser, limited, "reset")).words
    noted = [(record.__dict__["action"], record.__dict__["target"]) for record in caplog.records]
    assert [("set limits", "max_running 1, rate none"), ("reset limits", "all shards")] == noted


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"permits": "0"},
            "The number of shards must not be 0, which would let nothing run: pause the queue for that.",
        ),
        ({"permits": "two"}, "The number of shards must be a whole number from 1 to 100,000, not 'two'."),
        ({"ids": "10"}, "is not a duration"),
        ({"per": "60 s"}, "The number of ids must be a whole number, not ''."),
        ({"ids": "0", "per": "60 s"}, "would let nothing begin: pause the queue for that."),
        ({"ids": "1", "per": "until resumed"}, "A rate needs a duration, such as 60 s."),
    ],
)
def test_a_limit_that_cannot_work_is_shown_again(
    app: Lowkiq, limited: Any, browser: Browser, fields: dict[str, str], sentence: str
) -> None:
    """With the sentence that says why, and what was typed."""
    page = browser.follow(order(browser, limited, "set", **fields))

    assert sentence in page.words
    assert all(f'value="{value}"' in page.text for value in fields.values())
    assert not app.operate(limited).limits.explain().is_set


def test_what_the_dashboard_does_not_know_is_refused(limited: Any, browser: Browser, make_browser: MakeBrowser) -> None:
    """Another action, another queue, another role."""
    answers = [
        order(browser, limited, "explode"),
        browser.send("/actions/limits", {"queue": "unknown", "do": "reset"}),
        browser.get("/actions/limits?queue=unknown&do=set"),
        browser.get(f"/actions/limits?{urlencode({'queue': limited.queue_name, 'do': 'explode'})}"),
        browser.get(f"/actions/limits?{urlencode({'queue': limited.queue_name, 'do': 'set', 'permits': '-1'})}"),
        order(make_browser(READER), limited, "reset"),
    ]

    assert [400, 404, 404, 400, 200, 403] == [answer.status for answer in answers]
    assert "Change…" not in make_browser(READER).get(f"/limits?queue={limited.queue_name}").text


def test_the_api_tells_and_sets_limits(app: Lowkiq, robot: Browser, limited: Any, follower: Any) -> None:
    """X-30: what is absent stays as it was; null is no limit."""
    come(app, limited, 0, want=4)
    name = limited.queue_name
    told = robot.get(f"/api/v1/limits?queue={name}").json
    assert (2, {"ids": 10, "per": 60.0}, 6, False) == tuple(
        told[field] for field in ("max_running", "rate", "ids_left", "is_set")
    )
    assert [0] == [permit["shard"] for permit in told["permits"]]
    assert [{"queue": name, "running": 1}] == robot.get(f"/api/v1/limits?queue={follower.queue_name}").json["waits_for"]

    first = act(robot, "limits/set", queue=name, max_running=None, rate={"ids": 5, "per": 1}).json
    second = act(robot, "limits/set", queue=name, max_running=7).json
    unchanged = act(robot, "limits/set", queue=name).json
    last = act(robot, "limits/reset", queue=name).json

    limits = [(one["max_running"], one["rate"] and one["rate"]["ids"]) for one in (first, second, unchanged, last)]
    assert [(None, 5), (7, 5), (7, 5), (2, 10)] == limits
    assert 400 == act(robot, "limits/set", queue=name, max_running=0).status


def test_why_a_job_waits_for_a_permit(app: Lowkiq, clock: ManualClock, limited: Any, browser: Browser) -> None:
    """X-35: who has the permits, where the job's shard is on the wait list, when the next ids may begin."""
    limited.push_many([{"id": "a"}])
    own = shard_of(app, limited, "a").index
    others = [index for index in range(4) if index != own]
    come(app, limited, *others[:2], want=5)

    assert "at most 2 shards of its queue may be visited at once, and others have a permit" in why(
        browser, limited, "a"
    )
    assert "Its shard is not on the wait list" in why(browser, limited, "a")
    come(app, limited, others[2], own)
    assert "Its shard is on the wait list, behind 1 shard." in why(browser, limited, "a")
    assert "Limits of the queue" in why(browser, limited, "a")
    clock.advance(31.0)
    page = why(browser, limited, "a")
    assert "at most 10 ids in 1m of its queue may begin, and so many have begun" in page
    assert "Next:" in page
    clock.advance(60.0)
    assert "its shard found no permit when it was its turn. Its shard is on the wait list" in why(browser, limited, "a")
    come(app, limited, others[0])
    assert "a permit of its queue has only just been offered to its shard" in why(browser, limited, "a")


def test_why_a_job_waits_for_another_queue(app: Lowkiq, limited: Any, follower: Any, browser: Browser) -> None:
    """X-32: the queue that it waits for is named; once nobody visits that one, other reasons count."""
    follower.push_many([{"id": "a"}])
    assert "its queue waits for" not in why(browser, follower, "a")
    come(app, limited, 3)

    assert f"its queue waits for {limited.queue_name}, of which 1 shard is visited now" in why(browser, follower, "a")


def test_why_a_job_waits_for_limits_that_were_set(app: Lowkiq, worker: Any, browser: Browser, robot: Browser) -> None:
    """X-30: of a worker without limits in its code the answer knows them too, on the page and in the API."""
    worker.push_many([{"id": "a"}])
    app.operate(worker).limits.set(rate=Rate(1, per=10))
    come(app, worker, 0)

    sentence = "at most 1 id in 10 s of its queue may begin, and so many have begun."
    assert sentence in why(browser, worker, "a")
    told = robot.get(f"/api/v1/job?{urlencode({'queue': worker.queue_name, 'id': 'a'})}").json
    assert sentence in told["why"]
    assert told["next_at"] > told["waiting"]["due_at"]

"""Keys of jobs are forgotten by the pages and by the API, and each act is noted."""

import json
import logging
from collections.abc import Callable
from typing import Any, TypeAlias
from urllib.parse import urlencode

import pytest

from lowkiq_lambda import Lowkiq, Worker
from lowkiq_lambda.dashboard import Auth, Token, dashboard
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import READER
from tests.kit.handlers import Notes
from tests.kit.web import Answer, Browser
from tests.kit.workers import declare

ACTIVITY = "lowkiq_lambda.activity"
SECRET = "o" * 20

Act: TypeAlias = Callable[..., Answer]


@pytest.fixture
def act(app: Lowkiq, clock: ManualClock) -> Act:
    """An act of an operator's program, by its path and its body."""
    served = dashboard(app, auth=Auth(tokens=[Token("robot", SECRET, "operator")]), clock=clock)
    browser = Browser(served, headers={"authorization": f"Bearer {SECRET}"})

    def send(path: str, **body: Any) -> Answer:
        return browser.ask("POST", f"/api/v1/{path}", {"content-type": "application/json"}, json.dumps(body).encode())

    return send


@pytest.fixture
def worker(app: Lowkiq, queue_name: str) -> type[Worker]:
    """One with three jobs that were pushed with two keys."""
    made = declare(app, queue_name, Notes())
    made.push_many([{"id": id_, "payload": key, "key": key} for id_ in "abc" for key in ("k", "l")])
    return made


def known(worker: type[Worker], *ids: str) -> list[bool]:
    """Whether the first key of these ids is remembered."""
    return [worker.push(id_, "k", key="k").repeated for id_ in ids]


def test_the_keys_of_a_job_are_forgotten_by_its_page(
    make_browser: MakeBrowser, worker: type[Worker], caplog: pytest.LogCaptureFixture
) -> None:
    """Asked first; a reader has no button, and is refused."""
    caplog.set_level(logging.INFO, ACTIVITY)
    browser, queue = make_browser(), worker.queue_name
    form = {"queue": queue, "id": "a", "do": "forget_keys", "reason": "again"}

    assert "Forget its keys…" in browser.get(f"/job?{urlencode({'queue': queue, 'id': 'a'})}").text
    assert "Forget its keys…" not in make_browser(READER).get(f"/job?{urlencode({'queue': queue, 'id': 'a'})}").text
    assert 403 == make_browser(READER).post("/actions/job", form).status
    assert "can be pushed again" in browser.get(f"/actions/job?{urlencode(form)}").text
    assert 303 == browser.send("/actions/job", form).status

    assert [False, True] == known(worker, "a", "b")
    (line,) = [vars(record) for record in caplog.records if vars(record).get("changed")]
    assert ("forget keys", 2, "again") == tuple(line[name] for name in ("action", "changed", "reason"))


def test_all_keys_are_forgotten_by_the_page_of_the_queue(
    make_browser: MakeBrowser, worker: type[Worker], caplog: pytest.LogCaptureFixture
) -> None:
    """Asked first, and noted."""
    caplog.set_level(logging.INFO, ACTIVITY)
    browser, queue = make_browser(), worker.queue_name

    assert "Forget all keys of jobs…" in browser.get(f"/queue?{urlencode({'queue': queue})}").text
    form = {"queue": queue, "do": "forget_keys"}
    assert "can be pushed again" in browser.get(f"/actions/queue?{urlencode(form)}").text
    browser.send("/actions/queue", form)

    assert [False, False] == known(worker, "a", "c")
    assert [("forget keys", 6)] == [(vars(record)["action"], vars(record)["changed"]) for record in caplog.records]


@pytest.mark.parametrize("forgets", [False, True])
def test_a_cancel_by_the_page_may_forget_them(
    make_browser: MakeBrowser, worker: type[Worker], *, forgets: bool
) -> None:
    """If the box is ticked."""
    form = {"queue": worker.queue_name, "id": "a", "do": "cancel", **({"forget_keys": "1"} if forgets else {})}
    make_browser().send("/actions/job", form)

    assert [not forgets, True] == known(worker, "a", "b")


@pytest.mark.parametrize(
    ("path", "body", "end"),
    [
        ("queue/forget_keys", {"ids": ["a", "b"]}, (4, [False, False, True])),
        ("queue/forget_keys", {"ids": ["a"], "key": "k"}, (1, [False, True, True])),
        ("queue/forget_all_keys", {}, (6, [False, False, False])),
    ],
)
def test_a_program_forgets_keys(
    act: Act, worker: type[Worker], path: str, body: dict[str, Any], end: tuple[int, list[bool]]
) -> None:
    """Of ids, one of an id, or all."""
    queue = worker.queue_name

    answer = act(path, queue=queue, **body).json

    assert {"queue": queue, "forgotten": end[0]} == answer
    assert end[1] == known(worker, "a", "b", "c")


@pytest.mark.parametrize("body", [{}, {"key": "k"}, {"ids": []}, {"ids": ["a"], "key": ""}])
def test_a_program_says_whose_keys(act: Act, worker: type[Worker], body: dict[str, Any]) -> None:
    """Anything else is refused, and changes nothing."""
    assert 400 == act("queue/forget_keys", queue=worker.queue_name, **body).status
    assert [True] == known(worker, "a")


@pytest.mark.parametrize("path", ["waiting/delete", "jobs/cancel"])
def test_a_program_deletes_jobs_with_their_keys(act: Act, worker: type[Worker], path: str) -> None:
    """If it says so."""
    act(path, queue=worker.queue_name, ids=["a"], forget_keys=True)
    act(path, queue=worker.queue_name, ids=["b"])

    assert [False, True] == known(worker, "a", "b")

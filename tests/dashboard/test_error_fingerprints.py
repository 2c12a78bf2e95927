"""Errors that differ by a value only are one error: on the page, in the API, in filters and actions."""

import csv
import json
import re
from itertools import count
from typing import Any, Final

import pytest

from lowkiq_lambda import Batch, Config, Lowkiq
from lowkiq_lambda.dashboard import Auth, Token, dashboard
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.errors import ErrorGroup
from tests.kit.apps import closing_app
from tests.kit.handlers import Notes
from tests.kit.web import Browser
from tests.kit.workers import declare

THROTTLED: Final = 1_200
"""Two fifths of the failures, each with another address."""
TYPES: Final = 120
"""More errors of one line than a page has groups."""
WORDS: Final = "HTTPError: 429 Too Many Requests for url https://api.x.com/#"


def fail_each(batch: Batch) -> None:
    """Ids fail by what they are called."""
    for job_id in batch:
        kind, _, number = job_id.partition("-")
        address = f"https://api.x.com/v1/labels/{number}"
        batch.fail(
            job_id,
            {
                "throttled": f"HTTPError: 429 Too Many Requests for url {address}\n  File shop.py, line {number}",
                "down": f"HTTPError: 503 Service Unavailable for url {address}",
                "other": f"shop.Other{'abcdefghij'[int(number) % 10]}x{int(number) % TYPES}: no stock",
                # It names the status of another error.
                "named": f"ValueError: gave up after HTTPError: 429 Too Many Requests, order {number}",
            }[kind],
        )


def ids_of(kind: str, number: int) -> list[str]:
    """So many ids that fail alike."""
    return [f"{kind}-{each}" for each in range(number)]


@pytest.fixture
def worker(app: Lowkiq, queue_name: str) -> Any:
    """Of 3,000 failures 40 in a hundred are one error whose line is another each time; half of it is in the morgue."""
    worker: Any = declare(app, queue_name, Notes(fail_each), shards_count=3, batch_size=500)
    ids = [*ids_of("throttled", THROTTLED), *ids_of("down", 300), *ids_of("other", 1_494), *ids_of("named", 6)]
    worker.push_many([{"id": job_id} for job_id in ids])
    app.drain()
    app.operate(worker).waiting.kill([f"throttled-{each}" for each in range(0, THROTTLED, 2)])
    return worker


@pytest.fixture
def throttled(app: Lowkiq, worker: Any) -> ErrorGroup:
    """The group of it."""
    return app.operate.errors(worker).groups[0]


def step_through(browser: Browser, asked: str) -> None:
    """Do what a confirmation asks for, to its end."""
    state = re.findall(r'name="action_state" value="(.*?)"', asked)
    while state:
        step = browser.send("/actions/step", {"action_state": state[0], "reason": "a test"})
        state = re.findall(r'name="action_state" value="(.*?)"', step.text)


def test_the_most_frequent_error_is_the_first_with_its_whole_count(
    app: Lowkiq, worker: Any, throttled: ErrorGroup, browser: Browser
) -> None:
    """Forty failures in a hundred are the first row of page and API, as often as they are, with an example of them."""
    half = THROTTLED // 2
    assert (WORDS, "HTTPError", half, half) == (throttled.line, throttled.type, throttled.waiting, throttled.dead)
    assert re.fullmatch(
        "HTTPError: 429 Too Many Requests for url https://api.x.com/v1/labels/[0-9]+", throttled.example
    )
    shown = browser.get(f"/api/v1/errors?queue={worker.queue_name}").json["groups"]
    assert (WORDS, throttled.fingerprint, half, half) == tuple(
        shown[0][name] for name in ("line", "fingerprint", "waiting", "dead")
    )
    row = browser.get(f"/errors?queue={worker.queue_name}").text.partition('id="group-0"')[2].partition("</tr>")[0]
    assert WORDS in row.replace("<wbr>", "")
    assert f"morgue?queue={worker.queue_name}&amp;fingerprint={throttled.fingerprint}" in row
    assert 3_000 == sum(group.count for group in app.operate.errors(worker, limit=1_000).groups)
    assert ("HTTPError: 503 Service Unavailable for url https://api.x.com/#", 300) in {
        (group.line, group.count) for group in app.operate.errors(worker).groups
    }


@pytest.mark.parametrize("by", ["line", "type"])
def test_other_groups_have_no_fingerprint(app: Lowkiq, worker: Any, by: Any) -> None:
    """Errors of one type are several, and one line is less than all that are alike."""
    assert {None} == {group.fingerprint for group in app.operate.errors(worker, by=by).groups}


def test_an_action_on_a_group_changes_exactly_its_ids(
    app: Lowkiq, worker: Any, throttled: ErrorGroup, browser: Browser
) -> None:
    """Neither the same type with another status, nor an error that names it, is dead with it."""
    page = browser.get(f"/errors?queue={worker.queue_name}")
    row = page.text.partition('id="group-0"')[2]
    fields = dict(re.findall(r'name="(queue|search)" value="(.*?)"', row)[:2])

    asked = browser.follow(browser.send("/actions/ask", {**fields, "do": "found:kill"}))
    assert f"{THROTTLED // 2} ids" in asked.words
    assert f"last error is like {WORDS}" in asked.words
    step_through(browser, asked.text)

    assert {f"throttled-{each}" for each in range(THROTTLED)} == {
        job.id for job in app.operate(worker).morgue.list("id", limit=10_000)
    }
    again = app.operate.errors(worker).groups[0]
    assert (0, THROTTLED, throttled.fingerprint) == (again.waiting, again.dead, again.fingerprint)
    assert 1_800 == app.operate.stats()["total"]["length"]


def test_a_filter_by_fingerprint_is_exact_wherever_filters_are(
    app: Lowkiq, worker: Any, throttled: ErrorGroup, browser: Browser
) -> None:
    """Search, list, export, count and requeue find the ids of the group, all of them and no other."""
    wanted, half = throttled.fingerprint or "", THROTTLED // 2
    waiting = {f"throttled-{each}" for each in range(1, THROTTLED, 2)}
    where = f"queue={worker.queue_name}&fingerprint={wanted}"

    assert waiting == {job.id for job in app.operate(worker).waiting.search(limit=10_000, fingerprint=wanted)}
    assert [] == [*app.operate(worker).waiting.search(text="gave up", fingerprint=wanted)]
    assert waiting == set(pages_of(browser, f"/api/v1/waiting/search?limit=500&{where}"))
    assert half == len(pages_of(browser, f"/api/v1/morgue/search?limit=500&{where}"))
    assert {"count": half, "is_all": True} == browser.get(f"/api/v1/waiting/count?{where}").json
    lines = csv.DictReader(browser.get(f"/export?list=waiting&format=csv&{where}").text.lstrip("\ufeff").splitlines())
    assert waiting == {line["id"] for line in lines if line["error"]}
    assert 100 == browser.get(f"/waiting?{where}").text.count('data-name="Last error"')
    assert half == app.operate(worker).morgue.requeue(filter={"fingerprint": wanted}, rate=None)
    assert 0 == app.operate(worker).morgue.requeue(filter={"fingerprint": wanted}, rate=None)


def pages_of(browser: Browser, path: str) -> list[str]:
    """The ids of all pages."""
    found, cursor = list[str](), ""
    for _ in count():
        page = browser.get(path + cursor).json
        found += [job["id"] for job in page["jobs"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    return found


def test_the_api_acts_on_a_group(app: Lowkiq, worker: Any, throttled: ErrorGroup, clock: ManualClock) -> None:
    """A filter of an operation takes the fingerprint."""
    served = dashboard(app, auth=Auth(tokens=[Token("robot", "o" * 20, "operator")]), clock=clock)
    headers = {"authorization": f"Bearer {'o' * 20}", "content-type": "application/json"}
    body = {"queue": worker.queue_name, "filter": {"fingerprint": throttled.fingerprint}, "reason": "a test"}

    done = Browser(served).ask("POST", "/api/v1/morgue/delete_all", headers, json.dumps(body).encode()).json

    assert (THROTTLED // 2, None) == (done["changed"], done["next"])
    assert 0 == app.operate.stats()["total"]["morgue_length"]


@pytest.mark.parametrize("bad", ["x", "0" * 15, "0" * 17, "G" * 16])
def test_what_is_no_fingerprint_is_refused(app: Lowkiq, worker: Any, browser: Browser, bad: str) -> None:
    """It lists nothing, and nothing can be done with it."""
    where = f"queue={worker.queue_name}&fingerprint={bad}"
    page = browser.get(f"/morgue?{where}")

    assert (400, 400) == (page.status, browser.get(f"/api/v1/morgue/search?{where}").status)
    assert "is not the fingerprint of an error" in page.words
    assert "Requeue" not in page.words
    with pytest.raises(ValueError, match="is not the fingerprint of an error"):
        app.operate(worker).morgue.requeue(filter={"fingerprint": bad})


def test_errors_of_an_own_codec_have_fingerprints(server_url: str, queue_name: str, clock: ManualClock) -> None:
    """Only the codec can tell what it stored: all of it is read, and the group and its filter agree."""

    def reverse(text: str) -> bytes:
        return text[::-1].encode()

    config = Config(redis_url=server_url, dump_error=reverse, load_error=lambda stored: stored.decode()[::-1])
    with closing_app(Lowkiq(config, clock=clock)) as app:
        worker: Any = declare(app, queue_name, Notes(fail_each))
        worker.push_many([{"id": job_id} for job_id in [*ids_of("throttled", 3), *ids_of("down", 2)]])
        app.drain()

        group = app.operate.errors(worker).groups[0]
        found = app.operate(worker).waiting.search(fingerprint=group.fingerprint or "")

    assert (WORDS, 3) == (group.line, group.count)
    assert {"throttled-0", "throttled-1", "throttled-2"} == {job.id for job in found}

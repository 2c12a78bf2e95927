"""Search in payloads: lists, actions, pages and API find the same ids."""

import logging
import re
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.operate.inspect import filtered_list
from lowkiq_lambda.operate.inspect.activity import read_activity
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import FailingHandler
from tests.kit.job_pages import ids_on, link, next_of
from tests.kit.web import Browser
from tests.kit.workers import declare


def push_orders(worker: Any, *, most: int = 6) -> None:
    """Orders of two customers, each fifth of them paid."""
    worker.push_many(
        {
            "id": f"order-{n}",
            "payload": {"customer": {"id": n % 2}, "state": "new" if n % 5 else "paid"},
            "delay": n + 1,
        }
        for n in range(most)
    )


def test_lists_and_actions_find_ids_by_their_payloads(
    app: Lowkiq, worker: Any, handler: FailingHandler, clock: ManualClock
) -> None:
    """Those that wait, run and are dead; any of an id's payloads may meet the search, and one has to meet all of it."""
    push_orders(worker)
    worker.push("order-1", {"customer": {"id": 9}, "state": "paid"})
    waiting = app.operate(worker).waiting

    def found(text: str) -> list[str]:
        return [job.id for job in waiting.list(filter={"payload": text})]

    assert found("customer.id:1") == ["order-1", "order-3", "order-5"]
    assert found("state:paid") == ["order-0", "order-1", "order-5"]
    assert found("customer.id:1 state:paid") == ["order-5"]
    assert found("nothing") == []
    assert waiting.count({"payload": "PAID"}) == 3
    assert waiting.delete(filter={"payload": "customer.id:0", "prefix": "order-4"}) == 1
    assert waiting.count() == 5
    seen = list[str]()

    def look(*_: object) -> None:
        listed = app.operate(worker).in_flight.list(filter={"payload": "customer.id:9"})
        seen.extend(job.id for job in listed)

    handler.meanwhile = look
    clock.advance(2)
    app.drain()
    assert seen == ["order-1"]


def test_a_page_reads_so_many_ids_and_tells(worker: Any, browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on from there, and the confirmation of an action has the same condition."""
    monkeypatch.setattr(filtered_list, "READ_AT_ONCE", 4)
    monkeypatch.setattr(filtered_list, "IDS_AT_ONCE", 4)
    push_orders(worker, most=12)
    page = browser.get(link("waiting", worker, payload="customer.id:1"))
    assert ids_on(page) == ["order-1", "order-3"]
    assert "This page has read 4 of 12 ids." in page.text
    following = next_of(page)
    assert following is not None
    assert ids_on(browser.get(following)) == ["order-5", "order-7"]

    fields = {"queue": worker.queue_name, "do": "found:delete", "search": urlencode({"payload": "state:paid"})}
    confirmation = browser.follow(browser.send("/actions/ask", fields))
    assert "a payload has" in confirmation.text
    assert "state:paid" in confirmation.text

    refused = browser.get(link("waiting", worker, payload="total>many"))
    assert refused.status == 400
    assert "compares numbers" in refused.text


def test_the_api_searches_and_acts(worker: Any, browser: Browser) -> None:
    """A search that cannot be read is the caller's error, with its place."""
    push_orders(worker)
    where = f"queue={quote(worker.queue_name)}&payload="
    answer = browser.get(f"/api/v1/waiting/search?{where}{quote('customer.id:1')}")
    assert [job["id"] for job in answer.json["jobs"]] == ["order-1", "order-3", "order-5"]
    assert browser.get(f"/api/v1/waiting/count?{where}{quote('state:paid')}").json["count"] == 2
    refused = browser.get(f"/api/v1/waiting/search?{where}{quote('a..b:1')}")
    assert (refused.status, refused.json["detail"]) == (400, "The path at character 1 has an empty step: 'a..b'.")


def test_a_search_finds_nothing_that_the_mask_hides(make_app: MakeApp, handler: FailingHandler) -> None:
    """It looks at the payload as people see it: by its paths, by a text, and by its contrary."""
    masked = make_app(mask=lambda _queue, _id, payload: {**payload, "card": "hidden"})
    worker = declare(masked, "Masked", handler)
    worker.push("a", {"card": "4711", "state": "paid"})
    waiting = masked.operate(worker).waiting
    assert [waiting.count({"payload": text}) for text in ("card:4711", "4711", "-card:4712", "state:paid")] == [
        0,
        0,
        1,
        1,
    ]
    assert waiting.count({"payload": "card:hidden"}) == 1


@pytest.mark.parametrize("noted", ["card:… -total>…", "card:4711 AND -total>100"])
def test_with_a_mask_the_activity_has_the_paths_of_a_search_alone(
    app: Lowkiq, worker: Any, browser: Browser, caplog: pytest.LogCaptureFixture, noted: str
) -> None:
    """P10: in the log, and on the page that everybody reads; of an act, and of an export."""
    if "…" in noted:
        app.core.configure(mask=lambda _queue, _id, payload: payload)
    worker.push("a", {"card": "4711", "total": 7})
    search = {"payload": "card:4711 AND -total>100"}

    with caplog.at_level(logging.INFO, "lowkiq_lambda.activity"):
        assert browser.get(link("export", worker, list="waiting", format="csv", **search)).status == 200
        fields = {"queue": worker.queue_name, "do": "found:delete", "search": urlencode(search)}
        asked = browser.follow(browser.send("/actions/ask", fields))
        (state,) = re.findall(r'name="action_state" value="(.*?)"', asked.text)
        browser.send("/actions/step", {"action_state": state}, hx_request="true")

    exported, deleted = (record.__dict__["target"] for record in caplog.records)
    assert (f"waiting as csv, payload {noted!r}", f"found by: a payload has {noted!r}") == (exported, deleted)
    (entry,) = read_activity(app.core.backend, 0.0, [worker.queue_name], 10)
    assert (deleted, 1) == (entry.target, entry.changed)

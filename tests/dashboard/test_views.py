"""Saved views: pages with their filters, by names, for all visitors."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.dashboard import Auth, Token, dashboard
from lowkiq_lambda.operate.inspect.saved_views import MOST
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import READER
from tests.kit.apps import closing_app
from tests.kit.handlers import FailingHandler
from tests.kit.sends import counted_sends
from tests.kit.web import Answer, Browser
from tests.kit.workers import declare

SECRET = "v" * 20


@pytest.fixture
def namespace(queue_name: str) -> str:
    """One for each test, as apps of a namespace share their views."""
    return f"v-{queue_name[-20:]}"


@pytest.fixture
def key(app: Lowkiq) -> str:
    """Of the hash."""
    return f"{app.core.backend.prefix}:dashboard:views"


def save(browser: Browser, name: str, address: str) -> Answer:
    """Save it by the form."""
    return browser.send("/actions/save-view", {"name": name, "address": address})


def listed(browser: Browser) -> dict[str, str | None]:
    """The addresses of the API, by name."""
    return {view["name"]: view["address"] for view in browser.get("/api/v1/views").json["views"]}


def kept(app: Lowkiq, key: str) -> dict[Any, Any]:
    """What Redis has."""
    return app.core.backend.client.hgetall(key)


def test_a_view_is_saved_opened_replaced_and_deleted(
    app: Lowkiq, worker: Any, browser: Browser, make_browser: MakeBrowser, key: str
) -> None:
    """By the form of the page itself; each visitor opens it, and its list begins with the first page."""
    name = worker.queue_name
    page = browser.get(f"/morgue?{urlencode({'queue': name, 'text': 'Zeit & Ä', 'find': ''})}")
    assert "Save this view" in page.words
    assert f'name="address" value="morgue?queue={name}&amp;text=Zeit+%26+%C3%84&amp;find="' in page.text

    saved = save(browser, "  stuck <b>orders</b> ", f"morgue?queue={name}&text=Zeit+%26+%C3%84&find=&after=x")
    address = f"morgue?queue={name}&text=Zeit+%26+%C3%84"

    assert (303, "http://127.0.0.1:8000/search") == (saved.status, saved.location.replace("/actions/../", "/"))
    assert {b"stuck <b>orders</b>": address.encode()} == kept(app, key)
    reader = make_browser(READER)
    shown = reader.get("/search").text.replace("<wbr>", "")
    link = f"./{address.replace('&', '&amp;')}"
    assert f'<a href="{link}">stuck &lt;b&gt;orders&lt;/b&gt;</a> <span class="dim">Morgue of {name}</span>' in shown
    assert 200 == reader.get(f"/{address}").status
    kind = '<span class="dim">saved view</span>'
    assert [True, False] == [kind in reader.get(f"/search?q={typed}").text for typed in ("STUCK", "stucco")]

    save(browser, "stuck <b>orders</b>", "errors")
    assert {"stuck <b>orders</b>": "errors"} == listed(browser)

    browser.send("/actions/delete-view", {"name": "stuck <b>orders</b>"})
    assert {} == kept(app, key)
    assert "Saved views" not in browser.get("/search").words


def test_each_act_leaves_a_line_in_the_activity(browser: Browser, worker: Any, clock: ManualClock) -> None:
    """With its person and the address; a view of no queue too."""
    save(browser, "late", f"waiting?queue={worker.queue_name}&by=due_at")
    clock.advance(1.0)
    save(browser, "all", "errors?by=line")
    clock.advance(1.0)
    browser.send("/actions/delete-view", {"name": "late"})

    lines = browser.get("/api/v1/activity").json["activity"]

    assert [
        ("delete view", "", "'late'"),
        ("save view", "", "'all' errors?by=line"),
        ("save view", worker.queue_name, f"'late' waiting?queue={worker.queue_name}&by=due_at"),
    ] == [(line["action"], line["queue"], line["target"]) for line in lines]
    assert {"olga"} == {line["who"] for line in lines}


def test_only_a_visitor_who_may_act_saves_and_deletes(
    app: Lowkiq, worker: Any, browser: Browser, make_browser: MakeBrowser, key: str
) -> None:
    """A reader has no form and is refused, and so is a form without its token."""
    reader = make_browser(READER)
    assert "Save this view" not in reader.get(f"/morgue?queue={worker.queue_name}").words
    save(browser, "mine", "errors")

    assert "Delete" not in reader.get("/search").words
    acts: dict[str, dict[str, str]] = {"save": {"name": "x", "address": "errors"}, "delete": {"name": "mine"}}
    for act, fields in acts.items():
        path = f"/actions/{act}-view"
        assert 403 == reader.send(path, fields).status
        assert 403 == browser.post(path, fields).status
        assert 403 == browser.send(path, fields, sec_fetch_site="cross-site").status

    assert {b"mine": b"errors"} == kept(app, key)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "//evil.example",
        "\\evil.example",
        "/\\evil.example",
        "https://evil.example/errors",
        "javascript:alert(1)",
        "%2f%2fevil.example",
        "errors/../../evil",
        "/errors",
        "errors\r\nlocation: //evil.example",
        "sign-out",
        "actions/ask?q=x",
        "export?queue=QUEUE",
        "errors#javascript:alert(1)",
        "errors?next=//evil.example",
        "errors?by=line&by=type",
        "waiting",
        "waiting?queue=none",
        "errors?queue=none",
        f"search?q={'x' * 2_000}",
        f"search?q={'%C3%84' * 400}",
    ],
    ids=range(21),
)
def test_an_address_that_is_no_view_is_neither_saved_nor_opened(
    app: Lowkiq, worker: Any, browser: Browser, key: str, address: str
) -> None:
    """Whoever writes to Redis leads nobody elsewhere: the name has no link, and can be deleted."""
    address = address.replace("QUEUE", worker.queue_name)
    assert 400 == save(browser, "trap", address).status
    assert {} == kept(app, key)

    app.core.backend.client.hset(key, "trap", address)
    page = browser.get("/search")

    assert "trap cannot be opened in this dashboard" in page.words
    assert "evil" not in page.text
    assert {"trap": None} == listed(browser)
    browser.send("/actions/delete-view", {"name": "trap"})
    assert {} == kept(app, key)


def test_a_hostile_value_stays_a_value(browser: Browser) -> None:
    """Of a field that the page knows: encoded in the link."""
    assert 303 == save(browser, "odd", "search?q=%22%3E%3Cscript%3E%0D%0Ax: y//evil").status

    page = browser.get("/search")

    assert 'href="./search?q=%22%3E%3Cscript%3E%0D%0Ax%3A+y%2F%2Fevil"' in page.text
    assert "<script>\r" not in page.text


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "a\0b", "a\u202eb"])
@pytest.mark.usefixtures("worker")
def test_a_name_has_some_characters_that_are_seen(browser: Browser, name: str) -> None:
    """One to sixty of them."""
    refused = save(browser, name, "errors")

    assert 400 == refused.status
    assert "The name of a view has 1 to 60 characters" in refused.words
    assert 303 == save(browser, "x" * 60, "errors").status


def test_no_more_than_so_many_are_kept(app: Lowkiq, browser: Browser, key: str) -> None:
    """One more is refused, and one of them may be replaced."""
    app.core.backend.client.hset(key, mapping={str(number): "errors" for number in range(MOST)})

    refused = save(browser, "one more", "errors")

    assert 400 == refused.status
    assert f"There are {MOST} saved views" in refused.words
    assert 303 == save(browser, "7", "activity").status
    assert "activity" == listed(browser)["7"]
    assert MOST == len(listed(browser))


def test_with_a_mask_no_view_searches_payloads(worker: Any, browser: Browser, make_browser: MakeBrowser) -> None:
    """Redis would keep the searched value: it is refused, and one from before the mask is not shown."""
    secret = f"waiting?queue={worker.queue_name}&payload=card%3Ano-4711"
    save(browser, "before", secret)
    masked = make_browser(mask=lambda *_: "***")

    refused = save(masked, "after", secret)

    assert 400 == refused.status
    assert "Save the view without the search in payloads" in refused.words
    assert {"before": None} == listed(masked)
    assert "no-4711" not in masked.get("/search").text
    assert 303 == save(masked, "without", f"waiting?queue={worker.queue_name}").status
    assert {"before": secret} == {name: at for name, at in listed(browser).items() if name == "before"}


def test_a_view_of_another_apps_queue_is_not_opened(
    app: Lowkiq, worker: Any, browser: Browser, make_browser: MakeBrowser, server_url: str
) -> None:
    """Apps of a namespace share their views; another namespace has its own."""
    save(browser, "theirs", f"waiting?queue={worker.queue_name}")
    for namespace, expected in ((app.config.namespace, {"theirs": None}), (None, {})):
        with closing_app(Lowkiq(Config(redis_url=server_url, namespace=namespace))) as other:
            declare(other, f"{worker.queue_name}-other", FailingHandler())
            views = listed(make_browser(app=other))
        assert expected == {name: address for name, address in views.items() if name == "theirs"}


def test_programs_save_list_and_delete(app: Lowkiq, worker: Any, clock: ManualClock, key: str) -> None:
    """The API has the same checks, and says what the pages say."""
    auth = Auth(tokens=[Token("robot", SECRET, "operator"), Token("eye", "w" * 20, "reader")])
    shown = dashboard(app, auth=auth, clock=clock)

    def call(path: str, secret: str = SECRET, **body: str) -> Answer:
        browser = Browser(shown, headers={"authorization": f"Bearer {secret}"})
        headers = {"content-type": "application/json"}
        return browser.ask("POST", f"/api/v1/views/{path}", headers, json.dumps(body).encode())

    address = f"runs?queue={worker.queue_name}&outcome=dead"
    saved = call("save", name=" dead ", address=address, reason="for the night shift")

    assert {"name": "dead", "address": address, "page": "Runs", "queue": worker.queue_name} == saved.json
    assert {b"dead": address.encode()} == kept(app, key)
    assert (400, "bad_request") == (
        call("save", name="x", address="//evil").status,
        call("save", name="x", address="y").json["code"],
    )
    assert 403 == call("delete", "w" * 20, name="dead").status
    assert [True, False] == [call("delete", name="dead").json["removed"] for _ in range(2)]
    assert {} == kept(app, key)


def test_pages_without_views_ask_nothing(
    worker: Any, browser: Browser, monkeypatch: pytest.MonkeyPatch, app: Lowkiq, key: str
) -> None:
    """Only the search reads them, beside what it reads anyway; nothing is stored for looking."""
    for page in ("waiting", "morgue", "errors", "activity"):
        assert "Save this view" in browser.get(f"/{page}?queue={worker.queue_name}").words
    browser.get("/search?q=1")
    sends = counted_sends(monkeypatch)
    browser.get("/search")

    assert 1 == len(sends)
    assert not app.core.backend.client.exists(key)

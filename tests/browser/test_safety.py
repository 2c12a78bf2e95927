"""Who may not, cannot: readers, other sites' pages, and what lies in jobs."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from lowkiq_lambda import Lowkiq
from tests.browser.conftest import Visit
from tests.kit.accounts import READER
from tests.kit.examples import mostly_nightly
from tests.kit.handlers import FailingHandler
from tests.kit.serving import Served
from tests.kit.steering import confirm, expect_done

POST = """async ([path, fields]) => {
    const answer = await fetch(path, { method: "POST", body: new URLSearchParams(fields) });
    return [answer.status, await answer.text()];
}"""
HOSTILE_IDS = [
    "</script><script>window.hit = 1</script>",
    '"><img src=x onerror="window.hit = 1">',
    "{{ 7 * 7 }}{% include 'base.html' %}",
    "../../sign-out?a=b&c#d",
    "a/b%2Fc%00d%",
    "nul\0inside",
    "line\r\nbreak\ttab",
    " blank ",
    "\u202egnirts\u2066",
    "ü€😀",
    "x" * 5_000,
]


@pytest.fixture
def elsewhere(site: str, worker: Any) -> Iterator[str]:
    """The address of another site, whose page pauses the queue in the name of whoever presses its button."""

    def page(_request: Request) -> HTMLResponse:
        fields = {"queue": worker.queue_name, "do": "pause"}
        inputs = "".join(f'<input type="hidden" name="{name}" value="{value}">' for name, value in fields.items())
        return HTMLResponse(
            f'<form method="post" action="{site}actions/queue">{inputs}<button>You have won</button></form>'
        )

    with Served(Starlette(routes=[Route("/", page)])) as served:
        yield served.origin


def is_paused(app: Lowkiq, worker: Any) -> bool:
    """Whether any shard is."""
    return any(shard.is_paused for shard in app.operate(worker).shards())


def test_a_reader_is_shown_no_actions_and_refused_them(  # noqa: PLR0913, PLR0917 - what is looked at, and by whom
    app: Lowkiq, worker: Any, handler: FailingHandler, site: str, visit: Visit, complaints: list[str]
) -> None:
    """Who may only look sees the same pages without buttons, and sends requests by hand in vain."""
    handler.failing = {"1"}
    worker.push_many([{"id": 1}])
    app.drain()
    page = visit(password=READER)
    for path in ("waiting?", "processing?", "morgue?", "shards?", "job?id=1&"):
        page.goto(f"{site}{path}queue={worker.queue_name}")
        expect(page.get_by_text("read only")).to_be_visible()
        assert [] == page.locator("form[method=post] button").filter(has_not_text="Sign out").all()
        assert [] == page.get_by_role("checkbox").all()

        proof = page.locator("input[name=csrf]").first.input_value()
        fields = {"csrf": proof, "queue": worker.queue_name, "do": "pause"}
        status, text = page.evaluate(POST, ["actions/queue", fields])
        assert (403, True) == (status, "This account can view pages, but cannot change anything." in text)

    assert not is_paused(app, worker)
    assert all("403" in complaint for complaint in complaints), complaints
    complaints.clear()


@pytest.mark.parametrize("host", mostly_nightly(["127.0.0.1", "localhost"], "localhost"))
def test_another_sites_page_cannot_act(  # noqa: PLR0913, PLR0917 - what the two sites are made of
    app: Lowkiq, worker: Any, visit: Visit, elsewhere: str, complaints: list[str], host: str
) -> None:
    """A form of another site is refused, of one on our own host too, where the browser sends our cookie along."""
    page = visit()
    page.goto(elsewhere.replace("127.0.0.1", host))
    page.get_by_role("button", name="You have won").click()

    expect(page).to_have_url(re.compile("/actions/queue$"))
    expect(page.get_by_role("heading", name="Not allowed")).to_be_visible()
    assert not is_paused(app, worker)
    complaints.clear()


def test_a_form_without_its_proof_is_refused(app: Lowkiq, worker: Any, visit: Visit, complaints: list[str]) -> None:
    """A request of our own origin without the token of a form of ours changes nothing."""
    page = visit()

    status, _ = page.evaluate(POST, ["actions/queue", {"queue": worker.queue_name, "do": "pause"}])

    assert 403 == status
    assert not is_paused(app, worker)
    assert ["403" in complaint for complaint in complaints] == [True]
    complaints.clear()


def test_hostile_ids_payloads_and_errors_break_no_page(
    app: Lowkiq, worker: Any, handler: FailingHandler, visit: Visit
) -> None:
    """Whatever an id, a payload or an error holds is text: it is shown, linked to and acted on as it is, never run."""
    handler.failing = set(HOSTILE_IDS)
    jobs = [{"id": name, "payload": {"text": name, "more": [name] * 3}} for name in HOSTILE_IDS]
    worker.push_many([*jobs, {"id": "large", "payload": "x" * 5_000_000}])
    handler.failing.add("large")
    app.drain()
    names = {*HOSTILE_IDS, "large"}
    page = visit(f"morgue?queue={worker.queue_name}")
    links = [str(link.get_attribute("href")) for link in page.locator("tbody th a").all()]
    morgue = page.url
    assert len(names) == len(links)

    for link in links:
        page.goto(morgue.rpartition("/")[0] + "/" + link.removeprefix("./"))
        expect(page.get_by_text("in the morgue for")).to_be_visible()
        assert page.evaluate("window.hit") is None

    page.goto(morgue)
    page.get_by_label("Select all on this page").check()
    page.get_by_role("button", name="Requeue", exact=True).click()
    confirm(page, "Requeue")
    expect_done(page, f"{len(names)} ids were")
    handler.batches.clear()
    app.drain()

    assert names == {name for batch in handler.batches for name in batch}
    assert page.evaluate("window.hit") is None

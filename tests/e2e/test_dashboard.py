"""The dashboard at the address that API Gateway gives it: who comes in, what he sees there, and what he can do."""

import gzip
import re
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPMessage
from typing import NamedTuple
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from tests.e2e.stack import BY_HAND, OLGAS, PASSWORD, QUEUE, Stack
from tests.kit.servers.ports import HOST
from tests.kit.serving import Served
from tests.kit.steering import confirm, expect_done
from tests.kit.waiting import eventually
from tests.kit.windows import PATIENCE, OpenWindow, try_wrong_password

pytestmark = pytest.mark.timeout(400)  # the first has the packages built and the stack deployed

PAUSE = urlencode({"queue": QUEUE, "do": "pause"})


class Reply(NamedTuple):
    """An answer, read."""

    status: int
    headers: HTTPMessage
    body: bytes


def ask(stack: Stack, method: str, path: str, fields: str = "", **headers: str) -> Reply:
    """One request of a program, which has to look up no name of this cloud's."""
    host = stack.deployment.dashboard_url.split("/")[2]
    sent = {"Host": host, "Content-Type": "application/x-www-form-urlencoded", **headers}
    with closing(HTTPConnection(HOST, stack.cloud.port, timeout=PATIENCE / 1_000)) as connection:
        connection.request(method, path, fields or None, sent)
        answer = connection.getresponse()
        return Reply(answer.status, answer.headers, answer.read())


def sign_in(page: Page, stack: Stack) -> None:
    """Open the dashboard and give the password."""
    page.goto(stack.deployment.dashboard_url)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("link", name=QUEUE, exact=True)).to_be_visible()


def test_numbers_are_for_those_who_have_the_password(stack: Stack) -> None:
    """Neither a page nor the API tells a stranger anything; the cookie of one who signed in opens both."""
    unknown, wrong, right = (
        ask(stack, "GET", "/api/v1/stats"),
        ask(stack, "POST", "/sign-in", urlencode({"password": "wrong"})),
        ask(stack, "POST", "/sign-in", urlencode({"password": PASSWORD})),
    )
    cookie = str(right.headers["set-cookie"]).partition(";")[0]
    page, stats = (ask(stack, "GET", path, Cookie=cookie) for path in ("/", "/api/v1/stats"))

    assert [401, 401, 303, 200, 200] == [said.status for said in (unknown, wrong, right, page, stats)]
    assert QUEUE.encode() in page.body
    assert QUEUE.encode() in stats.body


def test_a_person_comes_in_by_their_own_password(stack: Stack) -> None:
    """The account of a parameter of the stack: the page calls her by her name."""
    right = ask(stack, "POST", "/sign-in", urlencode({"password": OLGAS}))
    page = ask(stack, "GET", "/", Cookie=str(right.headers["set-cookie"]).partition(";")[0])

    assert (303, 200) == (right.status, page.status)
    assert b"olga" in page.body


def test_files_are_fetched_once(stack: Stack) -> None:
    """Style and scripts come packed, whole, and with the word that a browser may keep them for a year."""
    page = ask(stack, "GET", "/sign-in").body.decode()
    style = re.search(r'href="\./(static/[^"]+\.css)"', page)
    assert style is not None, page

    plain, packed = (ask(stack, "GET", f"/{style[1]}", **{"Accept-Encoding": form}) for form in ("identity", "gzip"))

    assert "gzip" == packed.headers["content-encoding"]
    assert plain.body == gzip.decompress(packed.body)
    assert "max-age=31536000" in packed.headers["cache-control"]


@pytest.mark.nightly("a failed job is looked for after signing in, and strangers are refused, in each check")
def test_one_signs_in_looks_around_and_signs_out(stack: Stack, open_window: OpenWindow, complaints: list[str]) -> None:
    """A wrong password is told, the right one leads to the numbers of the queue, and signing out ends it."""
    page = open_window()
    page.goto(stack.deployment.dashboard_url)
    try_wrong_password(page, complaints)

    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    enqueued = page.get_by_role("row", name=QUEUE).locator("td[data-name=Waiting]")
    expect(page.locator("#live")).to_have_text("live")
    # Schedules drain their shards meanwhile, so the number may fall.
    eventually(lambda: int(enqueued.inner_text()) == stack.metrics.length, PATIENCE / 1_000, "the number that waits")
    enqueued.get_by_role("link").click()
    expect(page.get_by_role("heading", name="Waiting")).to_contain_text("shown of")
    page.get_by_role("link", name="lowkiq", exact=True).click()
    assert stack.deployment.dashboard_url == page.url

    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_title("Sign in · lowkiq")
    page.goto(stack.deployment.dashboard_url)
    expect(page).to_have_title("Sign in · lowkiq")
    assert [] == page.context.cookies()


@pytest.fixture
def elsewhere(stack: Stack) -> Iterator[str]:
    """The address of another site, whose page pauses the queue in the name of whoever presses its button."""

    def page(_request: Request) -> HTMLResponse:
        fields = "".join(
            f'<input name="{name}" value="{value}">' for name, value in (pair.split("=") for pair in PAUSE.split("&"))
        )
        action = f"{stack.deployment.dashboard_url}actions/queue"
        form = f'<form method="post" action="{action}">{fields}<button>You have won</button></form>'
        return HTMLResponse(f'<link rel="icon" href="data:,">{form}')

    with Served(Starlette(routes=[Route("/", page)])) as served:
        yield served.origin


@pytest.mark.nightly("tests/browser forges them at a dashboard of this machine in each check")
def test_forged_requests_are_refused(stack: Stack, open_window: OpenWindow, elsewhere: str) -> None:
    """What another site's page sends changes nothing, nor does a request of our own page without the form's token."""
    page = open_window()
    sign_in(page, stack)
    (cookie,) = page.context.cookies()
    token = page.locator("input[name=csrf]").first.input_value()
    mine = {"Cookie": f"{cookie.get('name')}={cookie.get('value')}"}
    whole = f"{PAUSE}&{urlencode({'csrf': token})}"

    foreign = ask(stack, "POST", "/actions/queue", whole, **mine, **{"Sec-Fetch-Site": "cross-site"})
    bare = ask(stack, "POST", "/actions/queue", PAUSE, **mine)
    page.goto(elsewhere)
    with page.expect_response("**/actions/queue") as answer:
        page.get_by_role("button", name="You have won").click()
    # The browser keeps the cookie back, so nobody is known to have sent it.
    sent_to = str(answer.value.headers.get("location"))

    assert [403, 403] == [foreign.status, bare.status]
    assert (303, True) == (answer.value.status, "sign-in" in sent_to)
    assert not any(shard.is_paused for shard in stack.shards)


def test_a_failed_job_is_found_requeued_and_seen_done(stack: Stack, open_window: OpenWindow) -> None:
    """Its error is read in the morgue; when the cause is gone it is put back, drained, and counted as done."""
    path = stack.push(BY_HAND)
    stack.set_newest(path, 2)
    stack.invoke("Drain", {"queue": QUEUE, "shard": BY_HAND})
    # Narrow windows have no room for the column of retries.
    page = open_window(viewport={"width": 1440, "height": 900})
    sign_in(page, stack)
    row = page.get_by_role("row", name=QUEUE)

    row.locator("td[data-name=Retries] a").click()
    page.get_by_label(f"Select {path}").check()
    page.get_by_role("button", name="Kill", exact=True).click()
    confirm(page, "Kill")
    expect_done(page, "1 id was")
    page.goto(stack.deployment.dashboard_url)
    row.locator("td[data-name=Morgue] a").click()
    page.get_by_label("Error contains").fill("comes after 2")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("link", name=path, exact=True).click()
    expect(page.get_by_role("region", name="Last error")).to_contain_text(f"ValueError: {path}: change 1 comes after 2")

    stack.set_newest(path, 0)
    page.get_by_role("group", name="in the morgue").get_by_role("button", name="Requeue").click()
    confirm(page, "Requeue")
    expect_done(page, "1 id was")
    page.goto(stack.deployment.dashboard_url)
    processed = stack.metrics.done
    stack.invoke("Drain", {"queue": QUEUE, "shard": BY_HAND})

    # The page is open all the time, and asks for itself. Schedules may drain other shards too, so it can be more.
    def counted() -> bool:
        return processed < int(row.locator("td[data-name=Done]").inner_text()) == stack.metrics.done

    eventually(counted, PATIENCE / 1_000, "the job to be counted")
    expect(row.locator("td[data-name=Morgue]")).to_have_text("0")
    assert 1 == stack.newest(path)

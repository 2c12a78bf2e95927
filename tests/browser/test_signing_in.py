"""Who gets in, by which door, and what he may do there."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.dashboard import Account, Auth, dashboard
from tests.kit.accounts import AUTH, OPERATOR, READER
from tests.kit.examples import mostly_nightly
from tests.kit.serving import Served
from tests.kit.windows import OpenWindow, try_wrong_password

OTHERS = "of the other one"
MOUNTED = [True, pytest.param(False, marks=pytest.mark.nightly("mounted in each check"))]
BESIDE = Auth([Account("olga", OTHERS, "operator")])


def test_nobody_sees_a_page_before_he_has_signed_in(
    worker: Any, site: str, open_window: OpenWindow, complaints: list[str]
) -> None:
    """A wrong password is told; the right one leads to the page that was asked for; signing out ends it."""
    page = open_window()
    page.goto(f"{site}?span=1h")
    try_wrong_password(page, complaints)

    page.get_by_label("Password").fill(OPERATOR)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("link", name=worker.queue_name, exact=True)).to_be_visible()

    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_title("Sign in · lowkiq")
    page.goto(site)
    expect(page).to_have_title("Sign in · lowkiq")
    assert [] == page.context.cookies()


def test_signing_in_needs_no_pointer(worker: Any, site: str, open_window: OpenWindow) -> None:
    """The password's field has the focus, Enter sends it, and the first Tab after that skips to the content."""
    page = open_window()
    page.goto(site)
    expect(page.get_by_label("Password")).to_be_focused()

    page.keyboard.type(OPERATOR)
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name=worker.queue_name, exact=True)).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_the_cookie_is_out_of_reach_of_scripts(site: str, open_window: OpenWindow) -> None:
    """No script of the page, however it came there, can read who is signed in."""
    page = open_window()
    page.goto(site)
    page.get_by_label("Password").fill(READER)
    page.get_by_label("Password").press("Enter")
    expect(page.get_by_text("read only")).to_be_visible()

    (cookie,) = page.context.cookies()

    assert (True, "Lax") == (cookie["httpOnly"], cookie["sameSite"])
    assert page.evaluate("document.cookie") == ""


def cut(path: str, app: ASGIApp) -> ASGIApp:
    """The app as it is behind a proxy that takes the path off and tells nobody."""

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "path": str(scope["path"]).removeprefix(path), "root_path": ""}, receive, send)

    return served


def come_in(page: Page, address: str, password: str) -> None:
    """By the form, to the overview."""
    page.goto(address)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Queues")).to_be_visible()


def expect_both_until_signed_out(page: Page, first: str, second: str) -> None:
    """See that both are open, in turns, until the second is left, which leaves the first."""
    for address in (first, second, first, second):
        page.goto(address)
        expect(page.get_by_role("heading", name="Queues")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_title("Sign in · lowkiq")
    page.goto(second)
    expect(page).to_have_title("Sign in · lowkiq")
    page.goto(first)
    expect(page.get_by_role("heading", name="Queues")).to_be_visible()


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("auth", mostly_nightly([AUTH, BESIDE], BESIDE), ids=["one password", "two passwords"])
def test_two_ports_of_a_host_sign_nobody_out(app: Lowkiq, open_window: OpenWindow, auth: Auth) -> None:
    """Who is signed in to both stays so, and who leaves one has left that one alone."""
    page = open_window()
    with Served(dashboard(app, auth=AUTH)) as first, Served(dashboard(app, auth=auth)) as second:
        addresses = f"{first.origin}/", f"{second.origin}/"
        come_in(page, addresses[0], OPERATOR)
        come_in(page, addresses[1], OPERATOR if auth is AUTH else OTHERS)

        expect_both_until_signed_out(page, *addresses)


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("is_told", MOUNTED, ids=["mounted", "behind a proxy"])
def test_two_folders_of_a_host_sign_nobody_out(app: Lowkiq, open_window: OpenWindow, is_told: bool) -> None:  # noqa: FBT001 - a case
    """The inner one is sent the outer one's cookie, too, and opens all the same."""
    page, path = open_window(), "/ops/jobs"
    inner = dashboard(app, auth=BESIDE)
    routes = [Mount(path, inner if is_told else cut(path, inner)), Mount("/", dashboard(app, auth=AUTH))]
    with Served(Starlette(routes=routes)) as served:
        addresses = f"{served.origin}/", f"{served.origin}{path}/"
        come_in(page, addresses[0], OPERATOR)
        come_in(page, addresses[1], OTHERS)

        expect_both_until_signed_out(page, *addresses)

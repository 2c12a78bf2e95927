"""The same pages wherever they are mounted: behind a path of another app, and at a port of the daemon."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from starlette.applications import Starlette
from starlette.routing import Mount

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.dashboard import dashboard
from tests.kit.accounts import AUTH, OPERATOR
from tests.kit.dashboard_daemon import dashboard_daemon, port_of
from tests.kit.handlers import FailingHandler
from tests.kit.serving import Served
from tests.kit.steering import confirm, expect_done
from tests.kit.windows import OpenWindow
from tests.kit.workers import declare


def walk(page: Page, address: str, queue_name: str) -> None:
    """Sign in on the way to a page, act there, follow links, and sign out; never leave the mount."""
    page.goto(f"{address}waiting?queue={queue_name}")
    page.get_by_label("Password").fill(OPERATOR)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="later", exact=True).click()
    expect(page.get_by_text("It is not due yet")).to_be_visible()
    page.get_by_role("button", name="Delete").click()
    confirm(page, "Delete")
    expect_done(page, "1 id was")
    page.get_by_role("link", name="Back to the list").click()
    expect(page.get_by_text("No job waits")).to_be_visible()
    tabs = page.get_by_role("navigation", name="Pages of the queue")
    for name in ("In flight", "Morgue", "Shards"):
        tabs.get_by_role("link", name=name).click()
        expect(tabs.get_by_role("link", name=name)).to_have_attribute("aria-current", "page")
        assert page.url.startswith(address)
    page.get_by_role("link", name="lowkiq", exact=True).click()
    expect(page.get_by_role("link", name=queue_name, exact=True)).to_be_visible()
    assert address == page.url
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_title("Sign in · lowkiq")
    assert page.url.startswith(address)


@pytest.fixture
def mounted(app: Lowkiq) -> Iterator[str]:
    """The address of a dashboard that is one of the pages of another app."""
    host = Starlette(routes=[Mount("/ops/jobs", dashboard(app, auth=AUTH))])
    with Served(host) as served:
        yield f"{served.origin}/ops/jobs/"


@pytest.mark.nightly("the port of a daemon is part of each check")
def test_behind_a_path_of_another_app(worker: Any, mounted: str, open_window: OpenWindow) -> None:
    """Every link, form, style and script stays below the path; so does the cookie."""
    worker.push_many([{"id": "later", "due_at": 4e9}])
    page = open_window()

    walk(page, mounted, worker.queue_name)

    page.goto(mounted)
    page.get_by_label("Password").fill(OPERATOR)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Queues")).to_be_visible()
    assert ["/ops/jobs"] == [cookie["path"].rstrip("/") for cookie in page.context.cookies()]


def test_at_a_port_of_the_daemon(
    server_url: str, app: Lowkiq, queue_name: str, open_window: OpenWindow, tmp_path: Path
) -> None:
    """Whoever runs the daemon sees its queues in the browser, and acts on them, while it drains."""
    worker: Any = declare(app, queue_name, FailingHandler(), shards_count=2)
    environment = {"LOWKIQ_REDIS_URL": server_url, "LOWKIQ_DASHBOARD_PASSWORD": OPERATOR}
    with dashboard_daemon(tmp_path, queue_name, "0", environment) as process:
        worker.push_many([{"id": "later", "due_at": 4e9}])
        walk(open_window(), f"http://127.0.0.1:{port_of(process)}/", queue_name)
        process.send(signal.SIGTERM)

        assert 0 == process.exit_code()

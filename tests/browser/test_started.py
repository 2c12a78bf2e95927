"""A job with a cursor, followed on its pages while it comes further."""

import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from lowkiq_lambda import BatchJob, Config, Later, Lowkiq, Worker
from tests.browser.conftest import Visit
from tests.browser.pictures import picture
from tests.kit.apps import close_app
from tests.kit.handlers import Notes
from tests.kit.workers import declare


@pytest.fixture
def app(server_url: str) -> Iterator[Lowkiq]:
    """An app that saves the cursor after each item."""
    app = Lowkiq(Config(redis_url=server_url, redis_timeout=5.0, settle_interval=0))
    yield app
    close_app(app)


def test_a_job_with_a_cursor_is_followed_until_it_is_done(app: Lowkiq, queue_name: str, visit: Visit) -> None:
    """Its progress grows on an open page while it runs; between its runs the page says why it waits."""
    go_on, is_halfway = threading.Event(), threading.Event()

    def perform_job(_self: Worker, job: BatchJob) -> Iterator[Any]:
        job.expect(100)
        for item in range(job.cursor["row"] if job.cursor else 0, 100):
            if item == 60 and not go_on.is_set():
                is_halfway.set()
                go_on.wait()
                raise Later(600, "the database is behind")
            yield {"row": item + 1, "note": "<b>"}

    worker = declare(app, queue_name, Notes(), perform_job=perform_job)
    worker.push_many([{"id": "prices", "payload": {"file": "prices.csv"}}])
    drain = threading.Thread(target=app.drain, daemon=True)
    drain.start()
    is_halfway.wait()
    page = visit(f"job?queue={queue_name}&id=prices")
    bar = page.get_by_role("progressbar", name="Items, in flight")

    expect(bar).to_have_attribute("value", "60")
    expect(page.get_by_role("region", name="Cursor, in flight")).to_have_text('{"note":"<b>","row":60}')
    picture(page, "started-in-flight")
    go_on.set()
    drain.join()
    expect(
        page.get_by_text(re.compile(r"It is started, and goes on in \w+( \w+)?: the database is behind\."))
    ).to_be_visible()
    expect(page.get_by_role("progressbar", name="Items, waiting")).to_have_attribute("value", "60")
    expect(page.get_by_text("60 of 100 items, 1 interruption (the database is behind)")).to_be_visible()
    picture(page, "started-waiting")

    page.goto(page.url.replace("/job?", "/waiting?").removesuffix("&id=prices"))
    expect(page.get_by_role("row", name="prices")).to_contain_text("started 60 of 100 items")
    picture(page, "started-row")
    page.goto(page.url.partition("/waiting?")[0] + "/")
    expect(page.get_by_role("row", name=queue_name)).to_contain_text("1 started")
    picture(page, "started-overview")
    page.go_back()
    app.operate(worker).waiting.run_now(["prices"])
    app.drain()
    page.reload()
    expect(page.get_by_text("No job waits")).to_be_visible()

"""The tenants of a queue by day, by night and on a phone, and an operator who pauses one."""

import time
from uuid import uuid4

import pytest
from playwright.sync_api import expect

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.jobs.rate import Rate
from tests.browser.conftest import Visit
from tests.browser.looks import look_around
from tests.kit.handlers import FailingHandler
from tests.kit.workers import declare, jobs_of


@pytest.fixture
def queue(app: Lowkiq) -> str:
    """A queue whose tenants wait for others, rest, are paused, or have nothing to do before an hour."""
    name = f"SyncShop-{uuid4().hex[:8]}"
    worker = declare(app, name, FailingHandler(), tenants="home", tenant_rate=Rate(2, per=3_600), shards_count=2)
    worker.push_many(jobs_of([f"globex:order {number}" for number in range(5)]))
    app.drain()
    worker.push_many(jobs_of(["acme:1", "acme:2", f"{'long-name-of-a-shop-' * 6}:1", "plain"]))
    worker.push_many([{"id": "hooli:1", "due_at": time.time() + 3_600}, {"id": "initech:1"}])
    app.operate(worker).pause(900, tenant="initech")
    return name


def test_b2_an_operator_pauses_a_tenant(queue: str, visit: Visit, complaints: list[str]) -> None:
    """B-2: the page suits everybody, says what each tenant waits for, and its button asks before it pauses one."""
    page = visit(f"tenants?queue={queue}")
    rows = page.locator("tbody tr")
    expect(rows.filter(has_text="globex")).to_contain_text("rate used up")
    expect(rows.filter(has_text="initech")).to_contain_text("paused")
    expect(rows.filter(has_text="hooli")).to_contain_text("not due")
    assert [] == look_around(page, "tenants")

    page.get_by_role("button", name="Pause… acme").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Pause the tenant?")
    assert [] == look_around(page, "ask-pause-tenant")
    page.locator("main").get_by_role("button", name="Pause", exact=True).click()

    expect(page.locator("tbody tr").filter(has_text="acme")).to_contain_text("paused")
    assert [] == complaints

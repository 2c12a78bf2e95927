"""Jobs that fail for good."""

from typing import Any
from playwright.sync_api import expect
from lowkiq_lambda import Batch, Lowkiq
from tests.browser.conftest import Visit
from tests.browser.pictures import picture
from tests.kit.steering import confirm, expect_done, tab_to
from tests.kit.handlers import FailingHandler


def bury(app: Lowkiq, worker: Any, handler: FailingHandler, jobs: list[dict[str, Any]]) -> None:
    """Let jobs fail for good."""
    handler.failing = {job["id"] for job in jobs}
    worker.perform_async(jobs)
    app.drain()
    handler.failing = set()

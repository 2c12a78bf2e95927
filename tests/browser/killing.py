"""Jobs that fail for good."""

from typing import Any

from lowkiq_lambda import Lowkiq
from tests.kit.handlers import FailingHandler


def kill(app: Lowkiq, worker: Any, handler: FailingHandler, jobs: list[dict[str, Any]]) -> None:
    """Let jobs fail for good."""
    handler.failing = {job["id"] for job in jobs}
    worker.push_many(jobs)
    app.drain()
    handler.failing = set()

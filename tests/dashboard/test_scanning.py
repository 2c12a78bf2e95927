"""Requests that read whole lists take turns."""

from threading import Event, Thread
from typing import Any

import pytest

from lowkiq_lambda.dashboard import scanning
from lowkiq_lambda.dashboard.scanning import AT_ONCE
from tests.kit.web import Browser


def test_few_requests_read_whole_lists_at_once(worker: Any, browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more waits for a while and is told to come again; others are served meanwhile, and all when there is room."""
    monkeypatch.setattr(scanning, "PATIENCE", 0.05)
    name = worker.queue_name
    worker.push_many([{"id": "a"}])
    searches = [
        f"/api/v1/waiting/range_by_id?queue={name}",
        f"/api/v1/waiting/search?queue={name}&prefix=a",
        f"/api/v1/waiting/count?queue={name}&prefix=a",
        f"/waiting?queue={name}&find=a",
        f"/waiting?queue={name}&by=id&range=asc",
    ]
    others = [f"/api/v1/waiting/range_by_due_at?queue={name}", f"/waiting?queue={name}", "/api/v1/stats"]
    ended, begun = Event(), [Event() for _ in range(AT_ONCE)]

    def scan(here: Event) -> None:
        with scanning.scanning():
            here.set()
            ended.wait(20)

    threads = [Thread(target=scan, args=[here]) for here in begun]
    for thread, here in zip(threads, begun, strict=True):
        thread.start()
        assert here.wait(20)
    busy = [browser.get(path).status for path in searches]
    served = [browser.get(path).status for path in others]
    ended.set()
    for thread in threads:
        thread.join()

    assert [503] * len(searches) == busy
    assert [200] * len(others) == served
    assert [200] * len(searches) == [browser.get(path).status for path in searches]

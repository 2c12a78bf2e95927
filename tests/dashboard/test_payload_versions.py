"""Payloads of one id on its page: each tells in what it differs from the one before."""

from typing import Any
from urllib.parse import quote

from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser


def test_a_payload_tells_what_changed(worker: Any, make_browser: MakeBrowser) -> None:
    """By leaves, of what the mask leaves; the first has nothing before it."""

    def mask(_queue: str, _id: str, payload: Any) -> Any:
        return {**payload, "card": "***"}

    worker.push(id="a", score=1, payload={"card": "no 4711", "lines": [1, 2], "state": "new"})
    worker.push(id="a", score=2, payload={"card": "no 0815", "lines": [1], "state": "paid"})
    worker.push(id="a", score=3, payload={"card": "no 0815", "lines": [1], "state": "paid", "note": "<b>"})
    page = make_browser(mask=mask).get(f"/job?queue={quote(worker.queue_name)}&id=a")

    assert 'What changed from payload 1 to 2, waiting removed lines[1]: 2 changed state: "new" → "paid"' in page.words
    assert 'What changed from payload 2 to 3, waiting added note: "<b>"' in page.words
    assert "<b>&#34;" not in page.text
    assert 2 == page.text.count("What changed")
    assert "no 4711" not in page.text
    assert "no 0815" not in page.text


def test_one_payload_has_no_difference(worker: Any, make_browser: MakeBrowser, clock: ManualClock) -> None:
    """Nor is there one between texts that are no JSON."""
    worker.push(id="a", due_at=clock.time(), payload=1)
    page = make_browser().get(f"/job?queue={quote(worker.queue_name)}&id=a")
    assert (200, False) == (page.status, "What changed" in page.text)

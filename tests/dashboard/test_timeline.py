"""What became of an id, on the page of the job."""

from typing import Any

from lowkiq_lambda import Lowkiq
from tests.kit.handlers import FailingHandler
from tests.kit.web import Browser


def test_a_job_that_is_done_has_a_past(app: Lowkiq, worker: Any, browser: Browser) -> None:
    """SK-21: also an id that is gone: its pushes, claims and outcomes, newest first, where the journal has all."""
    page = f"/job?queue={worker.queue_name}&id=7"
    assert "The journal of the shard does not mention this id" in browser.get(page).words
    app.operate(worker).journal("all", seconds=600.0)
    worker.push_many([{"id": "7"}])
    app.drain()

    words = browser.get(page).words

    done, claimed, pushed = (
        words.index(text) for text in ("It was done", "A drain claimed it", "A payload was pushed")
    )
    assert done < claimed < pushed
    assert "Pushes, claims and outcomes are complete since" in words
    assert "A drain claimed it" not in browser.part(page).words


def test_the_journal_of_trouble_has_deaths(app: Lowkiq, worker: Any, handler: FailingHandler, browser: Browser) -> None:
    """Without the level of all: what went wrong and what operators did."""
    handler.failing = {"7"}
    worker.push_many([{"id": "7"}])
    app.drain()
    app.operate(worker).waiting.kill(["7"])

    words = browser.get(f"/job?queue={worker.queue_name}&id=7").words

    assert "An operator killed it" in words
    assert "has pushes, claims and outcomes, too, while" in words

"""Parameters in the addresses of pages: what a page does not know is not left out without a word."""

from typing import Any

import pytest
from starlette.routing import Route

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.dashboard.app import _pages
from tests.kit.web import Browser
from tests.kit.workers import jobs_of

PAGES = sorted(
    route.path
    for route in _pages(None)  # type: ignore[arg-type]  # the routes alone
    if isinstance(route, Route) and "GET" in (route.methods or ()) and "{" not in route.path
)


@pytest.fixture
def dead(app: Lowkiq, worker: Any) -> Any:
    """The worker, with two jobs in its morgue."""
    worker.push_many(jobs_of("ab"))
    app.drain()
    app.operate(worker).waiting.kill(["a", "b"])
    return worker


def test_a_bookmark_with_another_word_lists_nothing(dead: Any, browser: Browser) -> None:
    """`error` is a parameter of the API: the page offers no action on all of the morgue, and names its own."""
    page = browser.get(f"/morgue?queue={dead.queue_name}&error=429")

    assert 400 == page.status
    assert "This page does not know “error”." in page.words
    assert "text : a text in the last error" in page.words
    assert "Requeue" not in page.words
    assert f'href="./morgue?queue={dead.queue_name}"' in page.text
    assert 200 == browser.get(f"/morgue?queue={dead.queue_name}&text=429").status


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.usefixtures("worker")
def test_every_page_refuses_what_it_does_not_know(browser: Browser, path: str) -> None:
    """Whole, and as the part of a page that refreshes itself."""
    whole, part = browser.get(f"{path}?nonsense=1"), browser.part(f"{path}?nonsense=1")

    assert (400, 400) == (whole.status, part.status)
    assert "This page does not know “nonsense”." in whole.words
    assert "This page does not know “nonsense”." in part.text


def test_a_parameter_that_is_there_twice_is_refused(worker: Any, browser: Browser) -> None:
    """Nobody can say which of them was meant."""
    page = browser.get(f"/waiting?queue={worker.queue_name}&text=a&text=b")

    assert 400 == page.status
    assert "“text” is there twice." in page.words


@pytest.mark.parametrize(
    "query",
    [
        "morgue?by=error",
        "morgue?range=gt",
        "waiting?range=all",
        "errors?by=message",
        "export?list=morgue&format=csv&by=error",
        "queue?span=4h",
        "shards?sort=length&way=down",
        "tenants?order=size",
    ],
)
def test_a_value_that_is_none_is_refused(worker: Any, browser: Browser, query: str) -> None:
    """A range that is not understood is not the whole list."""
    assert 400 == browser.get(f"/{query}&queue={worker.queue_name}").status


def test_a_value_that_is_none_is_named_with_those_that_are(browser: Browser) -> None:
    """A chart of another span is not what a bookmark asks for; the way out keeps what is right."""
    page = browser.get("/?span=4h&sort=lag&way=desc")

    assert 400 == page.status
    assert "“4h” is not a value of “span”: it is one of 10m, 1h, 6h, 72h, 30d." in page.words
    assert 'href="./?sort=lag&amp;way=desc"' in page.text
    assert 200 == browser.get("/?span=&sort=lag").status

"""The search of the built site, in a browser: the first hit for what a reader types answers it."""

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Final

import pytest
from playwright.sync_api import Page

from docs_build.searching import INDEX
from tests.kit.windows import running_browser

QUESTIONS: Final = {
    "retry": "retries.html",
    "backoff": "retries.html",
    "dead letter": "retries.html#dead-jobs",
    "run at a time": "push.html#run-it-later",
    "cron": "schedules.html",
    "rate limit": "limits.html",
    "priority": "limits.html",
    "test": "testing.html",
    "deploy": "deploy.html",
    "quickstart": "tutorial.html",
    "chord": "tasks.html",
    "why does a job wait": "faq.html#why-does-my-job-not-run",
    "idempotency": "repeats.html#once-for-each-event-key",
    "kubernetes": "scaling.html#kubernetes",
}
pytestmark = pytest.mark.xdist_group("docs_site")

_FIRST_HIT: Final = """(typed) => {
    const links = root => [...root.querySelectorAll('*')].flatMap(
        each => [...(each.shadowRoot ? links(each.shadowRoot) : []), ...(each.matches('a[href*="?h="]') ? [each] : [])])
    const hits = links(document).map(link => new URL(link.href))
    const first = hits.find(hit => typed === undefined || hit.searchParams.get('h') === typed)
    return first ? first.pathname.slice(1) + first.hash : null
}"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def searched(site: Path) -> Iterator[Page]:
    """The first page of the site, served and open in a browser."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=site)) as server, running_browser() as browser:
        Thread(target=server.serve_forever, daemon=True).start()
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/index.html")
        page.get_by_role("button", name="Search").first.click()
        yield page
        page.close()
        server.shutdown()


@pytest.mark.parametrize("typed", QUESTIONS)
def test_the_first_hit_answers(searched: Page, typed: str) -> None:
    """A reader who knows another library types its words."""
    searched.locator("input:focus").fill("")
    searched.wait_for_function(f"!({_FIRST_HIT})()")
    searched.locator("input:focus").fill(typed)
    hit = searched.wait_for_function(_FIRST_HIT, arg=typed, timeout=30_000)

    assert QUESTIONS[typed] == hit.json_value()


def test_each_word_of_the_index_leads_to_a_part_that_is_there(site: Path) -> None:
    """A page or a heading that was renamed is found here."""
    for place in INDEX:
        page, _, part = place.partition("#")
        assert f'id="{part}"' in (site / page).read_text() if part else (site / page).is_file(), place

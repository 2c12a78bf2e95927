"""The first page of an app with a thousand queues: small, soon there, and in the order of trouble."""

import re
import time
from typing import Final

from lowkiq_lambda.dashboard import dashboard
from lowkiq_lambda.dashboard.pages.overview import MOST_ROWS
from lowkiq_lambda.testing import ManualClock
from tests.kit.accounts import AUTH, OPERATOR
from tests.kit.apps import MakeApp
from tests.kit.handlers import FailingHandler
from tests.kit.job_pages import next_of
from tests.kit.web import Answer, Browser
from tests.kit.workers import declare

QUEUES: Final = 1_000
MOST_BYTES: Final = 200_000
MOST_SECONDS: Final = 0.3
"""Of processor time for a look of a process that was asked before."""


def rows_of(page: Answer) -> list[int]:
    """The numbers of the queues on the page, in the order of their declaration."""
    return [int(number) for number in re.findall(r'<th scope="row"><a id="queue-(\d+)"', page.text)]


def test_a_thousand_queues_are_a_short_page_with_those_in_trouble_first(
    make_app: MakeApp, queue_name: str, clock: ManualClock
) -> None:
    """The late queue comes first although it was declared last; a part of a name finds any; the others follow."""
    app = make_app()
    workers = [declare(app, f"{queue_name}-{number:03}", FailingHandler()) for number in range(QUEUES)]
    workers[700].push("a", delay=60)
    workers[-1].push("b")
    clock.advance(30)
    browser = Browser(dashboard(app, auth=AUTH, clock=clock))
    browser.come_in(AUTH, OPERATOR, clock.time())

    page, seconds = browser.get("/"), list[float]()
    for _ in range(5):
        began_at = time.process_time()
        page = browser.get("/")
        seconds.append(time.process_time() - began_at)
    assert min(seconds) < MOST_SECONDS
    assert len(page.text.encode()) < MOST_BYTES

    assert rows_of(page)[:3] == [QUEUES - 1, 700, 0]
    assert len(rows_of(page)) == MOST_ROWS
    assert f"1 to {MOST_ROWS} of 1,000, those in trouble first" in page.text
    following = browser.get(next_of(page))
    assert rows_of(following)[0] == MOST_ROWS - 2
    assert len({*rows_of(page), *rows_of(following)}) == 2 * MOST_ROWS
    by_name = browser.get(next_of(browser.get("/?sort=name&way=desc")))
    assert rows_of(by_name)[0] == QUEUES - 1 - MOST_ROWS

    assert rows_of(browser.get(f"/?find={queue_name}-70"))[:2] == [700, 701]
    assert rows_of(browser.get("/?find=nowhere")) == []
    assert "No such queue" in browser.get("/?find=nowhere").text
    assert rows_of(browser.get("/?begin=999999")) == []

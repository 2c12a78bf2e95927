"""Back, Forward and Reload, around what operators do: nothing is sent again, and nothing is done twice."""

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Request, expect

from lowkiq_lambda import Lowkiq
from tests.browser.conftest import Visit
from tests.kit.accounts import OPERATOR
from tests.kit.examples import mostly_nightly
from tests.kit.handlers import FailingHandler
from tests.kit.steering import ask, confirm, expect_done

SCRIPTS = [True, pytest.param(False, marks=pytest.mark.nightly("with scripts in each check"))]
SOON = 20_000
"""Milliseconds in which a page refreshes itself at least once."""


@contextmanager
def nothing_sent(page: Page) -> Iterator[None]:
    """Inside the block the page asks for pages, and sends no form."""
    sent: list[str] = []

    def note(request: Request) -> None:
        if request.method != "GET":
            sent.append(f"{request.method} {request.url}")

    page.on("request", note)
    yield
    page.remove_listener("request", note)
    assert [] == sent


def walk_back_and_forth(page: Page, first: Locator, last: Locator) -> None:
    """Load the last page again, go back to where the first thing shows, forward again, and once more."""
    with nothing_sent(page):
        page.reload()
        expect(last).to_be_visible()
        for _ in range(2):
            page.go_back()
            expect(first).to_be_visible()
            page.go_forward()
            expect(last).to_be_visible()


def kill(app: Lowkiq, worker: Any, handler: FailingHandler, ids: list[str]) -> None:
    """Let jobs fail for good."""
    handler.failing = set(ids)
    worker.push_many([{"id": one} for one in ids])
    app.drain()
    handler.failing = set()


def lengths(app: Lowkiq, worker: Any) -> tuple[int, int]:
    """How many wait, and how many are in the morgue."""
    queue = app.operate.metrics()[worker.queue_name]
    return queue.length, queue.morgue_length


def test_what_was_confirmed_is_not_sent_again(app: Lowkiq, worker: Any, visit: Visit) -> None:
    """The page that says what was done stays where it is; what came under the id since is left alone."""
    worker.push_many([{"id": "a", "due_at": 4e9}, {"id": "b", "due_at": 4e9}])
    page = visit(f"waiting?queue={worker.queue_name}")
    page.get_by_label("Select a", exact=True).check()
    page.get_by_role("button", name="Delete", exact=True).click()
    confirm(page, "Delete")
    expect_done(page, "1 id was")
    worker.push_many([{"id": "a", "due_at": 4e9}])

    walk_back_and_forth(page, page.get_by_label("Select b"), page.get_by_text("1 id was changed"))

    assert (2, 0) == lengths(app, worker)


@pytest.mark.parametrize("scripts", SCRIPTS, ids=["scripts", "no scripts"])
def test_a_question_may_be_loaded_again(app: Lowkiq, worker: Any, visit: Visit, scripts: bool) -> None:  # noqa: FBT001 - a case
    """It is asked anew, of what is there now; with scripts or without, each way leads back to the list."""
    worker.push_many([{"id": "a", "due_at": 4e9}])
    page = visit(f"waiting?queue={worker.queue_name}", java_script_enabled=scripts)
    page.get_by_role("button", name="Run all now").click()
    question = page.get_by_text("1 id of the queue")
    expect(question).to_be_visible()
    walk_back_and_forth(page, page.get_by_role("link", name="a", exact=True), question)
    worker.push_many([{"id": "b", "due_at": 4e9}])

    page.reload()
    expect(page.get_by_text("2 ids of the queue")).to_be_visible()
    confirm(page, "Run now")
    expect_done(page, "2 ids were")
    with nothing_sent(page):
        for _ in range(2 if scripts else 1):
            page.go_back()
            page.go_forward()
            expect(page.get_by_text("2 ids were changed")).to_be_visible()

    assert (2, 0) == lengths(app, worker)


def test_an_action_of_many_steps_is_asked_for_again_half_way(  # noqa: PLR0913, PLR0917 - what it is made of
    app: Lowkiq,
    worker: Any,
    handler: FailingHandler,
    visit: Visit,
    complaints: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Loaded again, left and come back to, it goes on only when it is told to; each id is put back once."""
    monkeypatch.setattr("lowkiq_lambda.dashboard.pages.actions.IDS_IN_A_STEP", 1)
    kill(app, worker, handler, [f"dead-{number}" for number in range(60)])
    page = visit(f"morgue?queue={worker.queue_name}")
    ask(page, "Requeue all")
    steps = iter(["confirmed"])
    page.route("**/actions/step", lambda route: route.continue_() if next(steps, None) else route.abort())
    confirm(page, "Requeue")
    expect(page.locator("#notice")).to_contain_text("continues it")
    complaints.clear()
    done = lengths(app, worker)[0]
    assert 0 < done < 60

    page.unroute("**/actions/step")
    listed = page.get_by_role("heading", name="In the morgue")
    walk_back_and_forth(page, listed, page.get_by_text(f"has changed {done} ids so far"))
    assert (done, 60 - done) == lengths(app, worker)
    confirm(page, "Requeue")
    expect_done(page, "60 ids were")
    walk_back_and_forth(page, page.get_by_text("The morgue is empty"), page.get_by_text("60 ids were changed"))

    assert (60, 0) == lengths(app, worker)


def test_a_selection_that_no_address_can_keep_is_not_sent_again(
    app: Lowkiq, worker: Any, handler: FailingHandler, visit: Visit
) -> None:
    """Loaded again before it was confirmed it has to be made again; afterwards it says what was done."""
    random = Random(1)
    ids = ["".join(random.choices("0123456789abcdef", k=100)) for _ in range(100)]
    kill(app, worker, handler, ids)
    page = visit(f"morgue?queue={worker.queue_name}")
    for _ in range(2):
        page.get_by_label("Select all on this page").check()
        page.get_by_role("button", name="Requeue", exact=True).click()
        expect(page.get_by_text("100 ids that you selected")).to_be_visible()
        page.wait_for_function("location.search !== ''")
        with nothing_sent(page):
            page.reload()
            page.get_by_role("link", name="Back to the list").click()
            expect(page.get_by_label("Select all on this page")).to_be_visible()
    assert (0, 100) == lengths(app, worker)

    page.get_by_label("Select all on this page").check()
    page.get_by_role("button", name="Requeue", exact=True).click()
    confirm(page, "Requeue")
    expect_done(page, "100 ids were")
    walk_back_and_forth(page, page.get_by_text("The morgue is empty"), page.get_by_text("100 ids were changed"))
    assert (100, 0) == lengths(app, worker)


@pytest.mark.nightly("another action is not sent again in each check")
def test_a_pause_is_not_sent_again(app: Lowkiq, worker: Any, visit: Visit) -> None:
    """Who goes back after pausing is asked again, and nothing more: a queue that was resumed since stays so."""
    page = visit(f"shards?queue={worker.queue_name}")
    page.get_by_role("button", name="Pause").click()
    confirm(page, "Pause")
    paused = page.get_by_text("no drain claims any")
    expect(paused).to_be_visible()

    walk_back_and_forth(page, page.get_by_role("heading", name="Pause the queue?"), paused)
    app.operate(worker).resume()
    with nothing_sent(page):
        page.go_back()
        page.reload()
        page.go_back()
        expect(page.get_by_role("button", name="Pause")).to_be_visible()
        page.go_forward()
        page.go_forward()
        expect(page.get_by_role("heading", name="Shards")).to_be_attached()

    assert not any(shard.is_paused for shard in app.operate(worker).shards())


@pytest.mark.parametrize(
    "path",
    mostly_nightly(["job?queue={}&id=a", "waiting?queue={}&by=id", "processing?queue={}", "?span=1h"], "?span=1h"),
)
def test_a_session_that_ends_on_a_page_leads_back_to_it(worker: Any, visit: Visit, path: str) -> None:
    """A page that refreshes itself goes to the form; whoever signs in again sees the page, not a part of it."""
    worker.push_many([{"id": "a", "due_at": 4e9}])
    page = visit(path.format(worker.queue_name))
    page.clock.install()
    page.reload()
    address = page.url
    page.context.clear_cookies()
    if page.locator("[data-refresh]").count():
        page.clock.run_for(SOON)
    else:
        page.reload()
    expect(page).to_have_title("Sign in · lowkiq")

    page.get_by_label("Password").fill(OPERATOR)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("olga")).to_be_visible()
    assert address == page.url


def test_a_session_that_ends_before_an_action_leads_back_to_the_question(
    app: Lowkiq, worker: Any, visit: Visit
) -> None:
    """What was not confirmed is asked again after signing in, and nothing was done; what was is done once."""
    worker.push_many([{"id": "a", "due_at": 4e9}])
    page = visit(f"waiting?queue={worker.queue_name}")
    page.get_by_role("button", name="Run all now").click()
    for _ in range(2):
        expect(page.get_by_text("1 id of the queue")).to_be_visible()
        page.context.clear_cookies()
        confirm(page, "Run now")
        page.get_by_label("Password").fill(OPERATOR)
        page.get_by_role("button", name="Sign in").click()

    confirm(page, "Run now")
    expect_done(page, "1 id was")
    assert (1, 0) == lengths(app, worker)

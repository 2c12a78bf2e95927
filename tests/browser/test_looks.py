"""Every page, by day, by night and on a phone: readable for everybody, and nothing sticks out."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.engine.heartbeat import Heartbeat
from lowkiq_lambda.jobs.progress import JobProgress
from lowkiq_lambda.operate.inspect.activity import record_action
from lowkiq_lambda.views.activity import ActivityEntry
from tests.browser.accessibility import overhang
from tests.browser.conftest import Visit
from tests.browser.looks import PHONE, look_around
from tests.kit.accounts import READER
from tests.kit.examples import mostly_nightly
from tests.kit.handlers import FailingHandler
from tests.kit.started import Starter
from tests.kit.steering import send
from tests.kit.windows import OpenWindow
from tests.kit.workers import declare

# The longest tests with a browser: another process may have the others.
pytestmark = pytest.mark.xdist_group("looks")

Look: TypeAlias = Callable[..., Page]
Field: TypeAlias = tuple[str, str]

LONG_ID = "order/2024-11-03/" + "0123456789abcdef" * 12
PAGES = {
    "overview": "",
    "overview-hour": "?span=1h",
    "queue": "queue?queue={queue}&span=1h",
    "queue-paused": "queue?queue={paused}",
    "search-everywhere": "search?q=dead-1",
    "search-everywhere-nothing": "search?q=no-such-thing",
    "waiting": "waiting?queue={queue}",
    "waiting-by-id": "waiting?queue={queue}&by=id&range=gte&value=w",
    "retries": "waiting?queue={retried}&by=retry_count&range=gte&value=0",
    "search": "waiting?queue={retried}&find=dead&text=warehouse",
    "search-nothing": "waiting?queue={queue}&find=no-such-id",
    "range-nothing": "waiting?queue={queue}&by=retry_count&range=gte&value=7",
    "range-unreadable": "waiting?queue={queue}&by=due_at&range=gte&value=soon",
    "processing": "processing?queue={queue}",
    "morgue": "morgue?queue={queue}",
    "morgue-search-nothing": "morgue?queue={queue}&text=no+such+error",
    "errors": "errors",
    "errors-of-queue": "errors?queue={retried}&by=type",
    "processes": "processes",
    "activity": "activity",
    "shards": "shards?queue={queue}",
    "shards-paused": "shards?queue={paused}",
    "job-waiting": "job?queue={queue}&id=waits-1",
    "job-running": "job?queue={queue}&id=runs-1",
    "job-failed": "job?queue={retried}&id=dead-1",
    "job-dead": "job?queue={queue}&id=dead-1",
    "job-paused": "job?queue={paused}&id=held-back",
    "job-as-shown": "job?queue={queue}&id=a%5Cu0000b",
    "job-unknown": "job?queue={queue}&id=never-seen",
    "job-ask": "job?queue={queue}",
    "job-started": "job?queue={started}&id=import-1",
    "waiting-started": "waiting?queue={started}",
    "morgue-started": "morgue?queue={started}",
    "shards-started": "shards?queue={started}",
    "empty-waiting": "waiting?queue={idle}",
    "empty-processing": "processing?queue={idle}",
    "empty-morgue": "morgue?queue={idle}",
    "no-such-page": "no-such-page",
    "no-such-queue": "waiting?queue=NoSuchQueue",
}
SEEN_EACH_TIME = ("overview", "queue", "waiting", "processing", "morgue", "shards", "job-failed", "no-such-queue")
"""One page of each kind; at night all others are looked at, too."""
ROWS = {
    "": 60,
    "waiting?queue={retried}": 54,
    "morgue?queue={queue}": 54,
    "processing?queue={queue}": 54,
    "shards?queue={queue}": 120,
    "search?q=dead": 60,
    "errors?queue={retried}": 140,
}
"""Pages with a row for each queue, job or error, and the most pixels that one may take of a phone's height."""
STATUSES = {"range-unreadable": ["400"], "no-such-page": ["404"], "no-such-queue": ["404"]}
QUESTIONS: dict[str, tuple[Any, ...]] = {
    "searched": ("found:requeue", "queue", ("search", "find=dead&text=met+a+closed")),
    "ranged": ("found:delete", "retried", ("search", "by=due_at&range=gte&value=2025-01-15+08:00")),
    "run_now": ("found:run_now", "retried"),
    "kill": ("found:kill", "retried"),
    "delete-failed": ("found:delete_failed", "retried"),
    "requeue": ("found:requeue", "queue"),
    "delete-dead": ("found:delete_dead", "queue"),
    "nothing-to-do": ("found:requeue", "idle"),
    "nothing-selected": ("picked:delete", "queue"),
}
OF_QUEUES: dict[str, tuple[Any, ...]] = {
    "pause": ("pause", "queue"),
    "pause-for-another-time": ("pause", "queue", ("seconds", "other"), ("length", "a while")),
    "resume": ("resume", "paused"),
    "evict": ("evict:0:{token}", "queue"),
}


@pytest.fixture
def queues(app: Lowkiq) -> Iterator[dict[str, str]]:
    """Names of queues: with jobs that wait, run and are dead; with failed ones; without any; paused."""
    suffix = uuid4().hex[:8]
    names = {"queue": "SyncOrder", "idle": "MailDigest", "retried": "CountClicks", "paused": "RebuildIndex"}
    names |= {"started": "ImportPrices"}
    names = {role: f"{name}-{suffix}" for role, name in names.items()}
    handler, looked, began = FailingHandler(), threading.Event(), threading.Event()
    busy = declare(app, names["queue"], handler, shards_count=1, max_retry_count=0)
    declare(app, names["idle"], handler, shards_count=2)
    retried = declare(app, names["retried"], handler, shards_count=2)
    paused = declare(app, names["paused"], handler, shards_count=2)

    handler.failing, handler.words = {f"dead-{number}" for number in range(4)} | {LONG_ID}, "met a closed warehouse"
    for worker in (busy, retried):
        worker.push_many([{"id": name, "payload": {"to": name}} for name in sorted(handler.failing)])
    app.drain()
    app.operate(paused).pause(3_600)
    paused.push_many([{"id": "held-back"}])

    leave_started(app, declare(app, names["started"], handler, shards_count=1))

    def perform() -> None:
        began.set()
        looked.wait()

    handler.meanwhile, handler.failing = perform, set()
    busy.push_many([{"id": f"runs-{number}", "payload": [number]} for number in range(3)])
    drain = threading.Thread(target=app.drain)
    drain.start()
    began.wait()
    busy.push_many([{"id": f"waits-{number}", "payload": {"n": number}, "score": number} for number in range(6)])
    busy.push_many([{"id": "a\0b"}])
    busy.push_many([{"id": f"{LONG_ID}{number}", "payload": {"text": LONG_ID * 9}} for number in range(3)])
    heartbeat = Heartbeat(app.core.drains.drainer, "daemon", 4, print)
    heartbeat.sender.send(heartbeat.told())
    target = "found by: last error contains 'met a closed warehouse'"
    done = ActivityEntry(
        at=time.time() - 90, who="olga", action="kill", queue=names["queue"], target=target, changed=41
    )
    record_action(app.core.backend, done)
    yield names
    heartbeat.sender.end()
    looked.set()
    drain.join()


def leave_started(app: Lowkiq, worker: Any) -> None:
    """Jobs with a cursor: one that waits, one that has failed, one in the morgue."""
    progress = JobProgress(
        cursor=b'["eu",61204]',
        items=61_204,
        interruptions=3,
        seconds=212.0,
        started_at=time.time() - 900,
        total=100_000,
        reason="out of time",
    ).dump()
    worker.push_many([{"id": f"import-{number}", "payload": {"file": "prices.csv"}} for number in (1, 2, 3)])
    Starter(app, worker, "import-1", progress).settle(
        ("import-2", "saved", progress),
        ("import-3", "saved", progress),
        ("import-1", "later", repr(time.time() + 900), 1),
        ("import-2", "retried", 0, time.time() + 900, b"no such file", "s", False, b"no such file"),
        ("import-3", "dead", b"no such file", "s", b"no such file"),
    )


@pytest.fixture
def token(app: Lowkiq, queues: dict[str, str]) -> int:
    """The one of the lease on the shard with jobs that run."""
    (shard,) = app.operate(next(worker for worker in app.workers if worker.queue_name == queues["queue"])).shards()
    assert shard.token
    return shard.token


@pytest.mark.parametrize("name", mostly_nightly(PAGES, *SEEN_EACH_TIME))
def test_every_page_suits_everybody(name: str, queues: dict[str, str], visit: Visit, complaints: list[str]) -> None:
    """No page violates WCAG A or AA, in light or dark; none is wider than a phone; none breaks its own policy."""
    page = visit(PAGES[name].format(**queues))
    expect(page.locator("main")).to_be_visible()

    assert [] == look_around(page, name)
    assert STATUSES.get(name, []) == [status_in(complaint) for complaint in complaints]
    complaints.clear()


def status_in(complaint: str) -> str:
    """The HTTP status that a browser complains of, or else all that it says."""
    found = re.search(r"status of (\d+)", complaint)
    return found[1] if found else complaint


def test_a_row_is_short_on_a_phone(queues: dict[str, str], visit: Visit) -> None:
    """Without scripts, too: a list of a hundred is a few screens long, and no usual screen scrolls sideways."""
    page = visit(java_script_enabled=False, viewport=PHONE)
    for path, most in ROWS.items():
        page.goto(page.url.split("?")[0].rpartition("/")[0] + "/" + path.format(**queues))
        rows = page.locator("section:not([aria-labelledby=holders]) tbody tr:visible").all()
        boxes = [row.bounding_box() for row in rows]
        assert boxes
        assert [] == [box for box in boxes if box is None or box["height"] > most], path
        for width in (1024, 1440, PHONE["width"]):
            page.set_viewport_size({"width": width, "height": PHONE["height"]})
            assert 0 == overhang(page), (path, width)


def test_a_phone_shows_all_of_a_row_on_request(queues: dict[str, str], visit: Visit) -> None:
    """Without scripts, too: a job that failed has its error in the second line, and its payload behind one box."""
    page = visit(f"waiting?queue={queues['retried']}", java_script_enabled=False, viewport=PHONE)
    payload = page.locator("td[data-name=Payload]").first
    expect(page.locator("td[data-name='Last error']").first).to_contain_text("closed warehouse")
    expect(payload).to_be_hidden()
    page.get_by_label("Two lines each").uncheck()
    expect(payload).to_be_visible()


@pytest.fixture
def look(queues: dict[str, str], visit: Visit) -> Iterator[Look]:
    """Sends a form from a queue's page, as an operator or somebody else, and looks at what comes."""
    found, pages = list[str](), dict[str, Page]()

    def look(name: str, role: str, path: str, *fields: Field, method: str = "post", **options: Any) -> Page:
        page = visit(f"shards?queue={queues[role]}", **options)
        if path:
            send(page, path, ("queue", queues[role]), *fields, method=method)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        found.extend(look_around(page, name))
        return pages.setdefault(name, page)

    yield look
    assert pages
    assert [] == found


@pytest.mark.parametrize("name", mostly_nightly(QUESTIONS, "searched"))
def test_every_question_suits_everybody(name: str, look: Look) -> None:
    """As every page: what is asked before anything changes."""
    do, role, *fields = QUESTIONS[name]
    look(f"ask-{name}", role, "actions/ask", ("do", do), *fields)


@pytest.mark.parametrize("name", mostly_nightly(OF_QUEUES, "pause"))
def test_every_question_about_a_queue_suits_everybody(name: str, token: int, look: Look) -> None:
    """As every page: what is asked before a queue is paused, or goes on, or somebody loses his lease."""
    do, role, *fields = OF_QUEUES[name]
    look(f"ask-{name}", role, "actions/queue", ("do", do.format(token=token)), *fields, method="get")


def test_what_came_too_late_suits_everybody(token: int, look: Look) -> None:
    """As every page, the one that says that the lease was another's by then."""
    look("evicted-nobody", "queue", "actions/queue", ("do", f"evict:0:{token - 1}"))


def test_what_was_done_suits_everybody(look: Look) -> None:
    """As every page: a question about some jobs, of which one is gone; and what became of them."""
    page = look("ask-selected", "queue", "actions/ask", ("do", "picked:requeue"), ("ids", "dead-1"), ("ids", "gone"))
    page.locator("main").get_by_role("button", name="Requeue").click()
    expect(page.get_by_text("1 of the selected ids was not changed")).to_be_visible()
    assert [] == look_around(page, "done")


def test_what_a_reader_sees_suits_everybody(look: Look, complaints: list[str]) -> None:
    """As every page: a queue without actions, and the refusal of one that is tried all the same."""
    look("reader", "queue", "", password=READER)
    assert [] == complaints
    look("rejected", "queue", "actions/queue", ("do", "pause"), password=READER)
    assert [True] == ["403" in complaint for complaint in complaints]
    complaints.clear()


def test_an_app_without_workers_suits_everybody(visit: Visit) -> None:
    """As every page, the overview of an app that declares none."""
    page = visit()
    expect(page.get_by_text("No queues yet")).to_be_visible()

    assert [] == look_around(page, "overview-no-queues")


def test_the_door_suits_everybody(site: str, open_window: OpenWindow, complaints: list[str]) -> None:
    """As every page, the one that asks for the password, and the one that did not get it."""
    page = open_window()
    page.goto(site)
    found = look_around(page, "sign-in")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("The password is wrong.")).to_be_visible()
    found += look_around(page, "sign-in-wrong")

    assert [] == found
    assert page.get_by_label("Password").is_visible()
    assert ["401" in complaint for complaint in complaints] == [True]
    complaints.clear()

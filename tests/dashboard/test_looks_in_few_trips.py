"""What many queues are asked for takes as many round trips as for one."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeAlias

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.dashboard import dashboard
from lowkiq_lambda.dashboard.needs import Needs
from lowkiq_lambda.operate.doctor.checkup import look_for_needs
from lowkiq_lambda.testing import ManualClock
from tests.kit.accounts import AUTH, OPERATOR
from tests.kit.apps import MakeApp
from tests.kit.handlers import FailingHandler
from tests.kit.sends import counted_sends
from tests.kit.web import Browser
from tests.kit.workers import declare

QUEUES: Final = 50
LONG: Final = 20.0
"""Seconds after which everything is read anew."""
LATE: Final = 600.0
"""Seconds after which what is due is late."""


def first_of(app: Lowkiq) -> str:
    """The name of a queue."""
    return next(iter(app.core.queues))


def see_of_queue(page: str, app: Lowkiq, browser: Browser) -> object:
    """One of its pages."""
    return browser.get(f"/{page}?queue={first_of(app)}")


Look: TypeAlias = Callable[[Lowkiq, Browser], object]
LOOKS: Final[Mapping[str, tuple[Look, int]]] = {
    # First, as the queue is late by the next ones.
    "a queue's page": (lambda app, browser: browser.get(f"/queue?queue={first_of(app)}"), 4),
    "app.find": (lambda app, _: app.operate.find("1"), 5),
    "app.stats": (lambda app, _: app.operate.stats(), 3),
    "app.metrics": (lambda app, _: app.operate.metrics(), 3),
    "app.errors": (lambda app, _: app.operate.errors(), 6),
    "app.schedules.all": (lambda app, _: app.schedules.all(), 2),
    "what needs somebody": (lambda app, _: look_for_needs(app.operate), 5),
    "what the first page looks for now and then": (lambda app, _: Needs(time.time).latest(app.operate), 5),
    "app.duties": (lambda app, _: app.operate.duties(), 2),
    "the first page": (lambda _, browser: browser.get("/"), 6),
    "GET stats": (lambda _, browser: browser.get("/api/v1/stats"), 3),
    "GET queues": (lambda _, browser: browser.get("/api/v1/queues"), 3),
    "GET errors": (lambda _, browser: browser.get("/api/v1/errors"), 6),
    "GET schedules": (lambda _, browser: browser.get("/api/v1/schedules"), 3),
    # One for all queues and servers, one of what limits keep back, one of all else, and one of open tasks.
    "GET metrics": (lambda _, browser: browser.get("/metrics"), 4),
    "the search": (lambda _, browser: browser.get("/search?q=1"), 6),
    "the page of errors": (lambda _, browser: browser.get("/errors"), 6),
    "the page of schedules": (lambda _, browser: browser.get("/schedules"), 6),
    "the page of tasks": (lambda _, browser: browser.get("/tasks"), 6),
    "the page of processes": (lambda _, browser: browser.get("/processes"), 6),
    "the page of the activity": (lambda _, browser: browser.get("/activity"), 3),
    "a job's page": (lambda app, browser: browser.get(f"/job?queue={first_of(app)}&id=1"), 3),
    "the page of an unknown job": (lambda app, browser: browser.get(f"/job?queue={first_of(app)}&id=9"), 3),
    **{
        f"a queue's {page}": (partial(see_of_queue, page), 6)
        for page in ("waiting", "processing", "morgue", "errors", "shards", "runs", "recovered", "limits")
    },
}
"""Each with the most round trips that it may take: those of errors read 32 of the 100 lists of ids at a time, and none
of queues without errors."""


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One entry for each time that something is sent."""
    return counted_sends(monkeypatch)


def opened(app: Lowkiq, queue_name: str, clock: ManualClock, **fields: object) -> Browser:
    """A browser on the dashboard of many queues with a job and a schedule entry each."""
    for number in range(QUEUES):
        worker = declare(app, f"{queue_name}-{number}", FailingHandler(), **fields)
        worker.push_many([{"id": 1}])
        app.every(60, worker, id="nightly", name="sync")
    app.schedules.tick()
    browser = Browser(dashboard(app, auth=AUTH, clock=clock))
    browser.come_in(AUTH, OPERATOR, clock.time())
    return browser


def test_looks_at_many_queues_take_few_round_trips(
    make_app: MakeApp, queue_name: str, clock: ManualClock, trips: list[object]
) -> None:
    """Declarations are read in one round trip for all queues, and so is each kind of thing, such as limits."""
    app = make_app()
    browser = opened(app, queue_name, clock, max_running=1)
    counts = {}
    for name, (see, _) in LOOKS.items():
        # The second look finds each script on the server, those too that only due ids call for.
        for _ in range(2):
            clock.advance(LONG)
            trips.clear()
            see(app, browser)
        counts[name] = len(trips)

    assert {} == {name: count for name, count in counts.items() if count > LOOKS[name][1]}


def test_the_page_of_a_late_queue_takes_six_round_trips(
    make_app: MakeApp, queue_name: str, clock: ManualClock, trips: list[object]
) -> None:
    """What tells why it is late is read side by side: its minutes and hours, its shards, and who is at it."""
    app = make_app()
    browser = opened(app, queue_name, clock)
    clock.advance(LATE)
    trips.clear()

    page = browser.get(f"/queue?queue={first_of(app)}")

    assert "Why is it late?" in page.words
    assert len(trips) <= 6

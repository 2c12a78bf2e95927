"""What needs somebody, at the top of the first page: looked for now and then, each line with its act."""

import threading
from typing import Any, TypeAlias

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.dashboard.needs import LASTS, LASTS_FOR_NEW, SHARE, Looked, Needs
from lowkiq_lambda.operate.doctor import checkup
from lowkiq_lambda.operate.doctor.findings import Act, Need
from lowkiq_lambda.operate.inspect.sampling import AppSample
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import READER
from tests.kit.web import Browser

ACT = Act(label="See the server", page="")
LookedSampled: TypeAlias = tuple[tuple[Need, ...], list[AppSample]]


@pytest.fixture
def namespace(queue_name: str) -> str:
    """One of the test alone."""
    return queue_name


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Need, ...]]:
    """What comes of each look; the last one comes again."""
    results: list[tuple[Need, ...]] = [()]

    def look(_operations: object) -> LookedSampled:
        return (results.pop(0) if len(results) > 1 else results[0]), []

    monkeypatch.setattr(checkup, "look_and_sample", look)
    return results


def need(number: int = 0, **fields: Any) -> Need:
    """A line."""
    about, sentence = f"queue-{number}", f"it is bad {number}"
    made = {"check": "memory", "mark": "warning", "about": about, "says": sentence, "advice": "Mend it.", "act": ACT}
    return Need(**{**made, **fields})


def test_a_look_counts_for_some_seconds(
    browser: Browser, clock: ManualClock, looks: list[tuple[Need, ...]], worker: Any
) -> None:
    """Whoever visits; for a page that is opened it counts for longer. What somebody changes here is looked at anew."""
    looks[:] = [(need(1),), (need(2),), (need(3),), (need(4),)]
    pages = [browser.get("/").words]
    clock.advance(LASTS - 0.1)
    pages.append(browser.part("/").words)
    clock.advance(0.1)
    pages += [browser.get("/").words, browser.part("/").words]
    clock.advance(LASTS_FOR_NEW)
    pages.append(browser.get("/").words)
    browser.send("/actions/queue", {"queue": worker.queue_name, "do": "pause", "seconds": "60"})
    pages.append(browser.get("/").words)

    assert [1, 1, 1, 2, 3, 4] == [int(page.partition("it is bad ")[2][0]) for page in pages]
    assert " memory: it is bad 1. Mend it. See the server queue-" in pages[0]


def test_a_reader_is_led_to_the_queue(app: Lowkiq, make_browser: MakeBrowser, browser: Browser, worker: Any) -> None:
    """A line whose act changes something leads an operator to the confirmation."""
    app.core.queues.agreed(worker)
    app.operate(worker).pause()
    pages = [one.get("/").text for one in (browser, make_browser(READER))]

    assert [True, False] == ["Resume…" in page and "actions/queue?queue=" in page for page in pages]
    assert "Open the queue" in pages[1]


def test_of_many_lines_the_first_are_there(browser: Browser, looks: list[tuple[Need, ...]]) -> None:
    """And how many more there are."""
    looks[:] = [tuple(need(number) for number in range(100, 135))]
    words = browser.get("/").words

    assert "it is bad 129. " in words
    assert "it is bad 130. " not in words
    assert "and 5 more: lowkiq doctor has all of them." in words


def test_a_look_that_is_refused_hides_nothing_else(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page says why there is no list."""

    def look(_operations: object) -> LookedSampled:
        raise LowkiqError("Somebody may not look.")

    monkeypatch.setattr(checkup, "look_and_sample", look)
    page = browser.get("/")

    assert (200, True) == (
        page.status,
        "What needs somebody could not be looked for. Somebody may not look." in page.words,
    )
    assert "Nothing needs anybody" not in page.words


def test_a_slow_look_counts_for_longer(app: Lowkiq, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a dashboard far away from its server does not do little else."""
    looks = list[float]()

    def look(_operations: object) -> LookedSampled:
        looks.append(clock.time())
        clock.advance(2.0)
        return (), []

    monkeypatch.setattr(checkup, "look_and_sample", look)
    needs = Needs(clock.time)
    for seconds in (0.0, 2.0 * SHARE - 0.1, 0.2):
        clock.advance(seconds)
        needs.latest(app.operate)

    assert 2 == len(looks)


def test_who_comes_while_another_looks_gets_the_look_before(
    app: Lowkiq, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only who comes before there is any waits."""
    needs, begins, may_end = Needs(clock.time), threading.Event(), threading.Event()
    results = [(need(1),), (need(2),)]

    def look(_operations: object) -> LookedSampled:
        if len(results) == 1:
            begins.set()
            may_end.wait()
        return results.pop(0), []

    monkeypatch.setattr(checkup, "look_and_sample", look)
    needs.latest(app.operate)
    clock.advance(LASTS)
    slow = threading.Thread(target=needs.latest, args=(app.operate,))
    slow.start()
    begins.wait()
    meanwhile = needs.latest(app.operate)
    may_end.set()
    slow.join()

    assert [Looked(needs=(need(1),)), Looked(needs=(need(2),))] == [meanwhile, needs.latest(app.operate)]

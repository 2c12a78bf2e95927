"""Twenty tasks of operators in a browser: each by at most four clicks, and all their pages within fifteen seconds."""

import re
import statistics
import time
from collections.abc import Callable
from typing import Any, Final

from playwright.sync_api import Locator, Page, expect

from lowkiq_lambda import BatchJob, Lowkiq, Rate, Worker
from tests.browser.conftest import Visit
from tests.kit.handlers import Notes
from tests.kit.workers import declare

MOST_CLICKS: Final = 4
MOST_SECONDS: Final = 15.0
"""Of all pages together, on a quiet machine."""
PLAIN_SECONDS: Final = 0.1
"""Of the page that signs in, on a quiet machine. Other tests run beside this one and slow all pages down alike."""


class Stopwatch:
    """What an operator does on a page, counted and timed."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.origin = page.url
        self.clicks = 0
        self.seconds = 0.0
        self.plain_page = page.context.new_page()
        self.plain_seconds: list[float] = []

    def compare(self) -> None:
        """Time a page that asks Redis for nothing, so that it is clear how fast the machine is at the moment."""
        began_at = time.monotonic()
        self.plain_page.goto(f"{self.origin}sign-in")
        self.plain_seconds.append(time.monotonic() - began_at)

    def quiet_seconds(self) -> float:
        """Seconds that the pages would have taken on a quiet machine."""
        return self.seconds * PLAIN_SECONDS / statistics.mean(self.plain_seconds)

    def open(self, path: str) -> None:
        """Begin a task at a page that is one click away from any other."""
        self.clicks = 0
        self._timed(lambda: self.page.goto(path))

    def click(self, what: Locator) -> None:
        """One click, until the page has come that it leads to."""
        self.clicks += 1
        self._timed(what.click)

    def link(self, name: str) -> None:
        """Click the first link of this name."""
        self.click(self.page.get_by_role("link", name=name, exact=True).first)

    def button(self, name: str) -> None:
        """Click the first button whose name begins so."""
        self.click(self.page.get_by_role("button", name=re.compile(f"^{re.escape(name)}")).first)

    def search(self, text: str) -> None:
        """Type into the box of all pages; it counts as a click."""
        self.clicks += 1
        self.page.keyboard.press("/")
        self.page.keyboard.type(text)
        self._timed(lambda: self.page.keyboard.press("Enter"))

    def sees(self, text: str | re.Pattern[str]) -> None:
        """The task is done: the page says so."""
        expect(self.page.locator("main")).to_contain_text(text)
        assert self.clicks <= MOST_CLICKS

    def _timed(self, act: Callable[[], object]) -> None:
        began_at = time.monotonic()
        act()
        self.page.wait_for_load_state()
        self.seconds += time.monotonic() - began_at


def sync(_worker: Worker, job: BatchJob) -> None:
    """Ids that begin with bad fail."""
    if job.id.startswith("bad"):
        raise TimeoutError(f"the bank did not answer request {job.id} in time")


class PlantedShop:
    """Queues that have what the tasks are about."""

    def __init__(self, app: Lowkiq, suffix: str) -> None:
        self.app = app
        # A job that fails waits for its retry for long.
        nothing = Notes()
        body: dict[str, Any] = {"perform_job": sync, "retry_in": lambda _self, _count: 3_600}
        self.orders = declare(app, f"SyncOrder-{suffix}", nothing, shards_count=3, keep_runs=1_000, **body)
        self.dead = declare(app, f"SyncErp-{suffix}", nothing, max_retry_count=0, **body)
        self.tenants = declare(app, f"SyncShop-{suffix}", nothing, tenants="home", **body)
        self.limited = declare(app, f"CallBank-{suffix}", nothing, rate=Rate(2, per=3_600), **body)
        self.task = app.task("Enrol the products")

    def plant(self) -> None:
        """Some ids have run, some have failed, some wait."""
        self.orders.push_many([{"id": f"order-{number}"} for number in range(20)])
        self.orders.push_many([{"id": f"bad-{number}"} for number in range(3)])
        self.dead.push_many([{"id": f"bad-{number}", "payload": {"customer": number % 4}} for number in range(12)])
        self.tenants.push_many([{"id": f"{tenant}:{number}"} for tenant in ("acme", "globex") for number in range(3)])
        self.limited.push_many([{"id": f"call-{number}"} for number in range(6)])
        with self.task:
            self.task.push_many(self.dead, [{"id": f"row-{number}", "item": f"row {number}"} for number in range(4)])
            self.task.push_many(self.dead, [{"id": "row-later", "item": "row 9", "delay": 86_400}])
        self.app.drain()
        self.app.schedules.put("nightly", self.orders, id="report", cron="0 3 * * *")
        self.tenants.push_many([{"id": "acme:9", "delay": 86_400}])
        for total in (10, 12):
            self.orders.push("4711", {"customer": {"id": 17}, "total": total}, delay=86_400)


def why_is_it_not_done(desk: Stopwatch, _shop: PlantedShop) -> None:
    """Why 4711 is not done."""
    desk.search("4711")
    desk.link("4711")
    desk.sees("due")


def what_ran(desk: Stopwatch, shop: PlantedShop) -> None:
    """Runs of a moment, as of 03:12 yesterday."""
    desk.open(f"{desk.origin}runs?queue={shop.orders.queue_name}")
    desk.page.get_by_label("What ran at").fill(str(int(time.time())))
    desk.click(desk.page.locator("main").get_by_role("button", name="Show", exact=True))
    desk.sees("order-7")


def which_shards_are_held(desk: Stopwatch, shop: PlantedShop) -> None:
    """Shards, with their holders."""
    desk.open(desk.origin)
    desk.link(shop.orders.queue_name)
    desk.click(desk.page.get_by_role("link", name=re.compile("^Shards")).first)
    desk.sees("free")


def the_most_frequent_error_again(desk: Stopwatch, _shop: PlantedShop) -> None:
    """The most frequent error since the deploy, and its jobs alone again: at a rate, after a dry run."""
    desk.open(f"{desk.origin}errors")
    desk.sees("the bank did not answer request")
    desk.button("Requeue")
    desk.page.get_by_label("Ids a second").fill("10")
    desk.button("Dry run")
    desk.sees("Dry run of the first")
    desk.click(desk.page.get_by_role("button", name="Requeue", exact=True))
    desk.sees("Requeue")


def kill_and_undo(desk: Stopwatch, shop: PlantedShop) -> None:
    """Kill one poison id, and take it back."""
    desk.open(f"{desk.origin}job?queue={shop.orders.queue_name}&id=bad-1")
    desk.button("Kill")
    desk.click(desk.page.locator("main").get_by_role("button", name="Kill", exact=True))
    desk.button("Undo")
    desk.sees("is as before the action")


def pause_a_tenant(desk: Stopwatch, shop: PlantedShop) -> None:
    """Pause a tenant."""
    desk.open(f"{desk.origin}tenants?queue={shop.tenants.queue_name}")
    desk.page.get_by_role("textbox", name="Tenant").fill("acme")
    desk.click(desk.page.locator("main").get_by_role("button", name="Show", exact=True))
    desk.button("Pause… acme")
    desk.click(desk.page.locator("main").get_by_role("button", name="Pause", exact=True))
    desk.sees("paused")


def effect_of_a_limit(desk: Stopwatch, shop: PlantedShop) -> None:
    """The effect of a limit."""
    desk.open(f"{desk.origin}limits?queue={shop.limited.queue_name}")
    desk.sees("2")


def change_an_entry(desk: Stopwatch, shop: PlantedShop) -> None:
    """Change an entry, and see its next five times."""
    desk.open(f"{desk.origin}schedule?queue={shop.orders.queue_name}&name=nightly")
    desk.click(desk.page.get_by_role("link", name=re.compile("Change")))
    desk.page.get_by_label("Times", exact=True).fill("0 4 * * *")
    desk.button("Try")
    desk.sees(re.compile("0[56]:00:00"))
    desk.button("Save")
    desk.sees("0 4 * * *")


def find_by_payload(desk: Stopwatch, shop: PlantedShop) -> None:
    """Find jobs by a text in their payloads."""
    desk.open(f"{desk.origin}morgue?queue={shop.dead.queue_name}")
    desk.page.get_by_label("Payload has").fill("customer:3")
    desk.click(desk.page.locator("main").get_by_role("button", name="Show", exact=True))
    desk.sees("a payload has")


def compare_payloads(desk: Stopwatch, shop: PlantedShop) -> None:
    """Compare two versions of a payload."""
    desk.open(f"{desk.origin}job?queue={shop.orders.queue_name}&id=4711")
    desk.click(desk.page.get_by_text("What changed"))
    desk.sees("total")


def stop_one_for_good(desk: Stopwatch, _shop: PlantedShop) -> None:
    """Stop one job for good, and pause another."""
    desk.link("Stop for good…")
    desk.button("Stop for good")
    desk.sees(re.compile("stopped|no job", re.IGNORECASE))


def progress_of_a_task(desk: Stopwatch, shop: PlantedShop) -> None:
    """How far a long task is, and its end."""
    desk.open(f"{desk.origin}task?id={shop.task.id}")
    desk.sees("4")
    desk.button("Cancel the task")
    desk.button("Cancel the task")
    desk.sees("cancelled")


def more_shards(desk: Stopwatch, shop: PlantedShop) -> None:
    """Give a queue more shards, and watch."""
    desk.open(f"{desk.origin}shards?queue={shop.orders.queue_name}")
    desk.page.get_by_label("New number of shards").fill("6")
    desk.button("Change")
    desk.button("Begin the move")
    desk.sees("6")


def export(desk: Stopwatch, shop: PlantedShop) -> None:
    """Export what failed."""
    desk.open(f"{desk.origin}morgue?queue={shop.dead.queue_name}")
    with desk.page.expect_download() as download:
        desk.click(desk.page.get_by_role("link", name=re.compile("CSV")))
    assert download.value.suggested_filename.endswith(".csv")


def share_a_list(desk: Stopwatch, shop: PlantedShop) -> None:
    """Share a filtered list: its address is all."""
    desk.open(f"{desk.origin}morgue?queue={shop.dead.queue_name}&payload=customer%3A3")
    desk.sees("customer:3")


def who_did_what(desk: Stopwatch, _shop: PlantedShop) -> None:
    """Who did what."""
    desk.open(f"{desk.origin}activity")
    for act in ("kill", "pause", "undo"):
        desk.sees(act)


def be_told(desk: Stopwatch, _shop: PlantedShop) -> None:
    """Be told: the list that alarms send, too."""
    desk.open(desk.origin)
    desk.sees("Needs somebody")


def times_over_days(desk: Stopwatch, shop: PlantedShop) -> None:
    """How long jobs took over days."""
    desk.open(f"{desk.origin}queue?queue={shop.orders.queue_name}&span=72h")
    desk.sees("3 days")


def on_a_phone(desk: Stopwatch, _shop: PlantedShop) -> None:
    """At night on a phone: trouble first, nothing sideways."""
    desk.page.set_viewport_size({"width": 390, "height": 844})
    desk.open(desk.origin)
    assert desk.page.evaluate("document.documentElement.scrollWidth") <= 390
    expect(desk.page.get_by_role("heading", name="Needs somebody")).to_be_in_viewport()


def by_keyboard(desk: Stopwatch, _shop: PlantedShop) -> None:
    """By keyboard alone."""
    desk.page.set_viewport_size({"width": 1440, "height": 900})
    desk.search("order-7")
    desk.sees("order-7")


TASKS: Final = (
    why_is_it_not_done,
    what_ran,
    which_shards_are_held,
    the_most_frequent_error_again,
    kill_and_undo,
    pause_a_tenant,
    effect_of_a_limit,
    change_an_entry,
    find_by_payload,
    compare_payloads,
    stop_one_for_good,
    progress_of_a_task,
    more_shards,
    export,
    share_a_list,
    who_did_what,
    be_told,
    times_over_days,
    on_a_phone,
    by_keyboard,
)


def test_twenty_tasks_take_few_clicks_and_seconds(app: Lowkiq, queue_name: str, visit: Visit) -> None:
    """Each is tried as an operator would, on a shop whose queues have what the task is about."""
    shop = PlantedShop(app, queue_name)
    shop.plant()
    desk = Stopwatch(visit())
    for task in TASKS:
        desk.compare()
        task(desk, shop)
        assert desk.clicks <= MOST_CLICKS, task.__name__
    assert len(TASKS) == 20
    assert desk.quiet_seconds() < MOST_SECONDS

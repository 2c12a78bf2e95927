"""Takes the pictures of docs/images: `python -m tests.browser.docs_images`, with a browser on this machine."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any, Final

from playwright.sync_api import Page, expect

from lowkiq_lambda import Batch, Config, Lowkiq, Worker
from lowkiq_lambda.dashboard import dashboard
from lowkiq_lambda.jobs.job import shard_for
from lowkiq_lambda.store.server.pipelines import send_each
from lowkiq_lambda.store.shard.history import SECONDS, Slot, bucket, commands
from tests.kit.accounts import AUTH, OPERATOR
from tests.kit.apps import closing_app, message_of
from tests.kit.servers import Server
from tests.kit.serving import Served
from tests.kit.waiting import eventually
from tests.kit.windows import running_browser, windows
from tests.kit.workers import declare

IMAGES: Final = Path(__file__).parents[2] / "docs" / "images"
QUEUES: Final = {
    "ApplyBenchmarks": (0.06, 0.0, 0, 0),
    "ApplyCode": (0.45, 0.005, 7, 31),
    "ApplyDocs": (0.05, 0.01, 0, 3),
    "ApplySettings": (0.08, 0.03, 0, 12),
    "ApplyTests": (0.35, 0.02, 0, 0),
    "RebuildSearchIndex": (0.01, 0.0, 1, 440),
}
"""The share of all work, the share that fails, ids in flight, and ids that wait."""
MINUTES: Final = 10
ERRORS: Final = [
    "the warehouse did not answer within 5 s",
    "the warehouse answered 503: Service Unavailable",
    "the warehouse did not answer within 5 s",
]


def history(app: Lowkiq, randomness: Random) -> None:
    """The last minutes of the queues, as drains would have written them."""
    now, rate, pending = int(time.time() // SECONDS.step), 500.0, {}
    done, failed = Counter[str](), Counter[str]()
    # A little ahead, so that the chart is whole until the pictures are taken.
    for number in range(now - (MINUTES + 1) * 60 // SECONDS.step, now + 60 // SECONDS.step):
        rate = max(60.0, rate + randomness.gauss(0.0, 130.0) + (900.0 - rate) / 30)
        for name, (share, failing, _, _) in QUEUES.items():
            own = rate * share * randomness.uniform(0.6, 1.4)
            slot = Slot(ended=int(own), failed=int(own * failing * 2 * randomness.random()))
            done[name] += slot.ended
            failed[name] += slot.failed
            for _ in range(5):
                slot.took[bucket(randomness.lognormvariate(-4.5, 0.7))] += 1
                slot.waited[bucket(randomness.lognormvariate(-3.7, 1.2))] += 1
            pending[name, number] = slot
    send_each(app.core.backend.client, [*commands(pending)])
    for worker in app.workers:
        meta, name = app.core.queues.agreed(worker).shards[0].key("meta"), worker.queue_name or ""
        app.core.backend.client.hincrby(meta, "done", done[name])
        app.core.backend.client.hincrby(meta, "retried", failed[name])


@contextmanager
def busy(url: str, site: Lowkiq) -> Iterator[None]:
    """Queues with jobs that wait, that are in flight, that have failed, and that died; `site` shows them."""
    go_on = Event()
    with ExitStack() as stack:

        def queue(name: str, handler: Callable[[Batch], object], **fields: Any) -> tuple[Lowkiq, type[Worker]]:
            app = stack.enter_context(closing_app(Lowkiq(Config(redis_url=url, format_error=message_of))))
            declare(site, name, handler, shards_count=5, **fields)
            return app, declare(app, name, handler, shards_count=5, **fields)

        app, worker = queue(
            "ImportPrices", lambda batch: batch.fail("price 4711", "no such currency"), max_retry_count=0
        )
        worker.push_many([{"id": "price 4711"}])
        app.drain(5.0)

        errors = iter(ERRORS)
        app, worker = queue(
            "SyncOrders",
            lambda batch: batch.fail("order 48014", next(errors)),
            max_retry_count=5,
            retry_in=lambda _self, retry_count: (1, 1, 150)[int(retry_count)],
        )
        payloads = [{"status": "paid", "total": "184.50 EUR"}, {"status": "shipped", "total": "184.50 EUR"}]
        moment = int(time.time()) - 8_000 + 0.2
        worker.push_many(
            [{"id": "order 48014", "score": moment + 61.7 * n, "payload": one} for n, one in enumerate(payloads)]
        )
        eventually(lambda: app.drain(1.0) and app.operate.metrics()["SyncOrders"].failed == len(ERRORS))

        for name, (_, _, in_flight, waiting) in QUEUES.items():
            app, worker = queue(name, lambda _batch: go_on.wait(), batch_size=max(in_flight, 1))
            if in_flight:
                # In one shard, as a drain performs one shard at a time.
                ids = [f"{n}" for n in range(100) if shard_for(f"{n}", 5) == 0][:in_flight]
                worker.push_many([{"id": job_id} for job_id in ids])
                thread = Thread(target=app.drain, args=(60.0,))
                stack.callback(thread.join)
                thread.start()
                eventually(app.operate(worker).in_flight.list)
            worker.push_many([{"id": f"waiting {n}", "delay": 20 * (n % 4)} for n in range(waiting)])
        stack.callback(go_on.set)
        yield


def take(page: Page, address: str, name: str, *, whole: bool = False) -> None:
    """A picture of a page, whole or as much of it as fits on a screen."""
    page.goto(address)
    expect(page.locator("#live")).to_have_text("live")
    page.screenshot(path=IMAGES / f"{name}.png", full_page=whole)


def main() -> None:
    """Take all pictures."""
    with ExitStack() as stack:
        server = stack.enter_context(Server())
        app = stack.enter_context(closing_app(Lowkiq(Config(redis_url=server.url))))
        stack.enter_context(busy(server.url, app))
        history(app, Random(7))
        site = stack.enter_context(Served(dashboard(app, auth=AUTH))).origin
        browser = stack.enter_context(running_browser())
        page = stack.enter_context(windows(browser, []))(viewport={"width": 1280, "height": 1000})
        page.goto(site)
        page.get_by_label("Password").fill(OPERATOR)
        page.get_by_role("button", name="Sign in").click()
        take(page, f"{site}/", "overview", whole=True)
        take(page, f"{site}/job?queue=SyncOrders&id=order+48014", "job")


if __name__ == "__main__":
    main()

"""An app as somebody declared it with 0.1.0: each feature once, by public names alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from lowkiq_lambda import (
    Batch,
    BatchJob,
    Config,
    Debounce,
    Incoming,
    KeepRuns,
    Lowkiq,
    MorgueLimits,
    Rate,
    Rejected,
    Worker,
    discard_on,
    iterate,
    kill_on,
    message_only,
    retry_on,
)
from lowkiq_lambda.testing import ManualClock

HANDED: list[tuple[str, str, Any]] = []
"""Each payload that a handler got, in order: queue, id, payload."""
BROKEN: set[str] = set()
"""Ids whose handler fails."""


@dataclass
class Price:
    """A typed payload."""

    sku: str
    cents: int = 0


def note(queue: str, job_id: str, payloads: list[Any]) -> None:
    """Note what a handler got. Raises what the id asks for."""
    if job_id in BROKEN:
        raise Rejected("no picture") if "refused" in job_id else ValueError(f"{job_id}: " + "the ERP is away. " * 8)
    HANDED.extend((queue, job_id, payload) for payload in payloads)


def new_app(redis_url: str, clock: ManualClock) -> Lowkiq:
    """The app on this server, by this clock."""
    config = Config(
        redis_url=redis_url,
        namespace="shop",
        release="r1",
        history_days=2,
        format_error=message_only,
        morgue=MorgueLimits(entries=1_000, age=90 * 86_400.0),
    )
    app = Lowkiq(config, clock=clock)

    class Noting(Worker):
        def retry_in(self, retry_count: int) -> float:
            return 3_000.0 * (retry_count + 1)

        def perform(self, batch: Batch) -> None:
            for job_id, payloads in batch.items():
                try:
                    note(self.queue_name, job_id, payloads)
                except Exception as error:
                    batch.fail(job_id, error)

    @app.worker
    class Orders(Noting):
        shards_count = 2
        batch_size = 10
        max_retry_count = 1
        keep_runs = KeepRuns(100, age=timedelta(days=7), payloads=True)
        on_error = (discard_on(LookupError), kill_on(PermissionError), retry_on(TimeoutError, most=3, delay=10))

        def retries_exhausted(self, jobs: Any) -> None:
            del jobs

    @app.worker
    class Latest(Noting):
        shards_count = 1
        merge = "latest"
        debounce = Debounce(5.0, at_most=60.0)

    @app.worker
    class Blocking(Noting):
        shards_count = 1
        merge = "never"
        dead_head = "block"
        max_retry_count = 0

    @app.worker
    class Spread(Noting):
        shards_count = 1
        tenants = "spread"
        weight = 2.0
        concurrency = 1  # more would settle in an order of their own

    @app.worker
    class Home(Noting):
        shards_count = 2
        tenants = "home"
        tenant_rate = Rate(2, per=3_600)

    @app.worker
    class Limited(Noting):
        shards_count = 1
        merge = "max"
        max_running = 1
        rate = Rate(3, per=3_600)
        waits_for = ("Blocking",)

    @app.worker
    class Import(Worker):
        shards_count = 1
        payloads_at_once = 1
        max_run_items = 2
        max_retry_count = 1
        cursor_version = 1
        turn = 5.0

        def retry_in(self, retry_count: int) -> float:
            return 3_000.0 * (retry_count + 1)

        def perform_job(self, job: Any) -> Iterator[Any]:
            [rows] = job.payloads
            job.expect(rows)
            for row, cursor in iterate.sequence(range(rows), after=job.cursor):
                if row and job.id in BROKEN:
                    raise ValueError("the file is cut")
                HANDED.append(("Import", job.id, row))
                yield cursor

    @app.worker
    class Prices(Worker[Price]):
        shards_count = 1
        expires_in = timedelta(days=3)
        expired = "kill"
        retry_for = timedelta(days=1)
        max_run_time = 60.0
        isolate = False
        ordered = False

        def perform_job(self, job: BatchJob[Price]) -> None:
            note("Prices", job.id, [[price.sku, price.cents] for price in job.payloads])

    @app.worker(queue_name="Moving", shards_count=4, batch_size=5)
    def moving(batch: Batch) -> None:
        for job_id, payloads in batch.items():
            note("Moving", job_id, payloads)

    @app.worker(queue_name="Held", shards_count=1, max_retry_count=5)
    async def held(batch: Batch) -> None:
        for job_id, payloads in batch.items():
            note("Held", job_id, payloads)

    del Prices, held, moving, Blocking, Spread, Home, Limited, Import, Latest
    app.cron("0 4 * * *", Orders, id="nightly", payload={"full": True}, tz="Europe/Berlin", missed="all", grace=7_200)
    app.every(600, Orders, id="poll", name="often", offset=30, jitter=5, overlap="skip", description="asks the ERP")
    app.at(datetime(2027, 1, 15, 9, tzinfo=UTC), Orders, id="once", expires_in=3_600)
    app.inbox("inbox-*", queues=["Orders", "Latest"])

    @app.ingest("invoices-*")
    def invoices(record: Incoming) -> Iterator[Any]:
        yield Orders, {"id": record.body["order"], "payload": record.body}

    del invoices
    return app

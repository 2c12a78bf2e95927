"""What a test and its child processes share: a queue, its worker, and a journal of what the handlers did."""

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any, Literal

import msgspec

from lowkiq_lambda import Batch, BatchJob, Config, Lowkiq, MorgueJob, Worker
from lowkiq_lambda.engine.budget import VisitResult
from tests.kit.waiting import eventually

Reach = Callable[[str], None]
"""ChildLine the name of a point whenever it is reached; a child may stop there."""


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that a handler did; `event` is begin, end or exhausted."""

    event: str
    pid: int
    id: str
    payloads: list[Any] = []
    token: int = 0
    repeated: bool = False
    stopping: bool = False


class Journal:
    """A file that any number of processes append lines to, each in one write."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, line: Line) -> None:
        """The line is in the file when this returns, even if the process dies right after."""
        with self._path.open("ab", buffering=0) as file:
            file.write(msgspec.json.encode(line) + b"\n")

    def lines(self, event: str) -> list[Line]:
        """All lines of an event, in order."""
        text = self._path.read_bytes() if self._path.exists() else b""
        lines = [msgspec.json.decode(line, type=Line) for line in text.splitlines()]
        return [line for line in lines if line.event == event]

    def performed(self, event: str = "end") -> dict[str, list[list[Any]]]:
        """For each id the payloads of each execution, in order."""
        found: dict[str, list[list[Any]]] = {}
        for line in self.lines(event):
            found.setdefault(line.id, []).append(line.payloads)
        return found


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A queue of one shard. `handler`: "note" what it is given, "fail" each id, or "heed" the stop.

    `is_async`: the handler is a coroutine; "heed" then waits until it is cancelled. `is_hard`: what runs is cancelled
    when the visit's time is over. Where there are `items`, each job has a cursor and so many of them, each of which
    takes `item_seconds`, in turns of `turn`; the id "short" has one. `dies_at` is the one at which the process of the
    id "poison" ends.
    """

    url: str
    queue_name: str
    journal: str
    lease_ttl: float = 1.0
    batch_size: int = 3
    max_retry_count: int = 3
    merge: Literal["min", "latest"] = "min"
    shards_count: int = 1
    handler: str = "note"
    redis_timeout: float = 5.0
    settle_interval: float = 0.0
    concurrency: int = 1
    visit_seconds: float = 30.0
    is_async: bool = False
    is_hard: bool = False
    items: int = 0
    item_seconds: float = 0.0
    turn: float = 5.0
    dies_at: int = -1

    def app(self, reach: Reach = lambda _point: None) -> Lowkiq:
        """An app with the queue's worker."""
        config = Config(
            redis_url=self.url,
            lease_ttl=self.lease_ttl,
            settle_interval=self.settle_interval,
            redis_timeout=self.redis_timeout,
        )
        app = Lowkiq(config)
        scenario = self

        class Noting(Worker):
            queue_name = scenario.queue_name
            shards_count = scenario.shards_count
            max_retry_count = scenario.max_retry_count
            merge = scenario.merge
            concurrency = scenario.concurrency

            def retry_in(self, retry_count: int) -> float:
                del retry_count
                return 0.0

            def retries_exhausted(self, jobs: list[MorgueJob]) -> None:  # type: ignore[override]  # a list it is
                for job in jobs:
                    payloads = [scored.payload for scored in job.payloads]
                    scenario.note(Line("exhausted", os.getpid(), job.id, payloads))
                reach("in hook")

        class NotingBatches(Noting):
            batch_size = scenario.batch_size

            def perform(self, batch: Batch) -> None:
                scenario.perform(batch, reach)

        class NotingCoroutines(Noting):
            batch_size = scenario.batch_size

            async def perform(self, batch: Batch) -> None:
                await scenario.perform_awaited(batch, reach)

        class NotingItems(Noting):
            turn = scenario.turn

            def perform_job(self, job: BatchJob) -> Iterator[int]:
                yield from scenario.perform_items(job, reach)

        app.worker(NotingItems if self.items else NotingCoroutines if self.is_async else NotingBatches)
        return app

    def note(self, line: Line) -> None:
        """Write it into the journal."""
        Journal(Path(self.journal)).note(line)

    def perform(self, batch: Batch, reach: Reach) -> None:
        """The handler."""
        for line in self._lines("begin", batch):
            self.note(line)
        reach("in handler")
        if self.handler == "heed":
            eventually(lambda: batch.stopping, timeout=30.0, what="batch.stopping")
        for line in self._lines("end", batch):
            self.note(line)
        if self.handler == "fail":
            for job_id in batch:
                batch.fail(job_id, "told to fail")
        reach("after handler")

    async def perform_awaited(self, batch: Batch, reach: Reach) -> None:
        """The handler that is a coroutine."""
        for line in self._lines("begin", batch):
            self.note(line)
        reach("in handler")
        try:
            await asyncio.sleep(30.0 if self.handler == "heed" else 0.0)
        finally:
            reach("in cleanup")
            for line in self._lines("end", batch):
                self.note(line)

    def perform_items(self, job: BatchJob, reach: Reach) -> Iterator[int]:
        """The handler of jobs with a cursor; each item that is done is in the journal, with the retry_count."""
        self.note(Line("begin", os.getpid(), job.id, [*job.payloads], job.token, job.repeated))
        try:
            for item in range(job.cursor or 0, 1 if job.id == "short" else self.items):
                reach("in item")
                if (job.id, item) == ("poison", self.dies_at):
                    os._exit(9)
                Event().wait(self.item_seconds)
                self.note(Line("item", os.getpid(), job.id, [item, job.retry_count], job.token))
                yield item + 1
        finally:
            reach("in cleanup")
        self.note(Line("end", os.getpid(), job.id, [*job.payloads], job.token))

    @staticmethod
    def _lines(event: str, batch: Batch) -> Iterator[Line]:
        for job_id, payloads in batch.items():
            repeated = batch.job(job_id).repeated
            yield Line(event, os.getpid(), job_id, payloads, batch.token, repeated, batch.stopping)


class Ended(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a child's work ended: a visit's reason and counts, or the name of an error."""

    reason: str = ""
    counts: dict[str, int] = {}
    error: str = ""

    @classmethod
    def of(cls, result: VisitResult) -> "Ended":
        """The end of a visit."""
        return cls(result.reason, dict(result.counts))

"""What a test and its child processes share: a queue, its worker, and a journal of what the handlers did."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from lowkiq_lambda import Batch, Config, Lowkiq, MorgueJob, Worker
from lowkiq_lambda.engine.visit import DrainResult
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
    """A queue of one shard. `handler`: "note" what it is given, "fail" each id, or "heed" the stop."""

    url: str
    queue_name: str
    journal: str
    lease_ttl: float = 1.0
    batch_size: int = 3
    max_retry_count: int = 3
    shards_count: int = 1
    handler: str = "note"
    redis_timeout: float = 5.0

    def app(self, reach: Reach = lambda _point: None) -> Lowkiq:
        """An app with the queue's worker."""
        config = Config(
            redis_url=self.url, lease_ttl=self.lease_ttl, ack_interval=0.0, redis_timeout=self.redis_timeout
        )
        app = Lowkiq(config)
        scenario = self

        @app.worker
        class Noting(Worker):
            queue_name = scenario.queue_name
            shards_count = scenario.shards_count
            batch_size = scenario.batch_size
            max_retry_count = scenario.max_retry_count

            def retry_in(self, retry_count: int) -> float:
                del retry_count
                return 0.0

            def perform(self, batch: Batch) -> None:
                scenario.perform(batch, reach)

            def retries_exhausted(self, jobs: list[MorgueJob]) -> None:  # type: ignore[override]  # a list it is
                for job in jobs:
                    payloads = [scored.payload for scored in job.payloads]
                    scenario.note(Line("exhausted", os.getpid(), job.id, payloads))
                reach("in hook")

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
    def of(cls, result: DrainResult) -> "Ended":
        """The end of a visit."""
        return cls(result.reason, dict(result.counts))

"""The handler's side of the demo: applies changes to the table, meets with faults, and counts."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from secrets import token_hex
from threading import Condition
from typing import Any

from local.demo.faults import FaultKind, Faults, InjectedFailure, InjectedInterruption
from local.demo.history import Change
from local.demo.table import Table
from lowkiq_lambda.engine.batch import Batch
from lowkiq_lambda.jobs.job import NEVER_FAILED


@dataclass(slots=True)
class Counts:
    """What happened to the batches so far."""

    batches: int = 0
    retries: int = 0
    """Deliveries of an id that had failed."""
    interruptions: int = 0
    """Threads that were interrupted in the midst of a batch."""
    overlaps: int = 0
    """Ids that were begun while they still ran elsewhere: there must be none."""


class Replay:
    """One run of the demo, as its handlers share it. Safe to use from several threads."""

    def __init__(self, table: Table, faults: Faults) -> None:
        self.table = table
        self.counts = Counts()
        self._faults = faults
        self._run = token_hex(4)
        self._running: set[str] = set()
        self._progressed = Condition()

    def job(self, change: Change) -> dict[str, object]:
        """The job of a change: the file is the id, the commit's number the score.

        The payload holds the number too: without it two commits that give a file the same content would be
        equal payloads, of which the older one stays. It holds the run too, as a run that was killed may have
        left jobs in the queue.
        """
        payload = {"run": self._run, "commit": change.seq, "blob": change.blob}
        return {"id": change.path, "score": change.seq, "payload": payload}

    def perform(self, batch: Batch) -> None:
        """Apply the changes of a batch, file by file, each file's in order."""
        fault = self._faults.draw(len(batch))
        with self.execution(batch):
            for place, (path, payloads) in enumerate(batch.items()):
                changes = list(self._own(path, payloads))
                if fault and place == fault.victim:
                    self._apply(changes[: len(changes) // 2], batch.token)
                    self._suffer(fault.kind, batch, path)
                else:
                    self._apply(changes, batch.token)

    def wait(self, timeout: float) -> None:
        """Return after the next batch, or after `timeout` seconds."""
        with self._progressed:
            self._progressed.wait(timeout)

    def _own(self, path: str, payloads: Iterable[Any]) -> Iterator[Change]:
        for payload in payloads:
            if payload["run"] == self._run:
                yield Change(payload["commit"], path, payload["blob"])

    def _apply(self, changes: Sequence[Change], token: int) -> None:
        for change in changes:
            self.table.apply(change, token)

    def _suffer(self, kind: FaultKind, batch: Batch, path: str) -> None:
        if kind is FaultKind.INTERRUPT:
            with self._progressed:
                self.counts.interruptions += 1
            raise InjectedInterruption(f"{path}: interrupted on purpose")
        failure = InjectedFailure(f"{path}: failed on purpose")
        if kind is FaultKind.RAISE:
            raise failure
        batch.fail(path, failure)

    @contextmanager
    def execution(self, batch: Batch) -> Iterator[None]:
        """Marks the ids as running, from the batch's begin to its end: that is what must never overlap."""
        retries = sum(batch.job(path).retry_count > NEVER_FAILED for path in batch)
        with self._progressed:
            self.counts.batches += 1
            self.counts.retries += retries
            self.counts.overlaps += len(self._running & batch.keys())
            self._running |= batch.keys()
        try:
            yield
        finally:
            with self._progressed:
                self._running -= batch.keys()
                self._progressed.notify_all()

"""Loops in jobs that are drained: what the engine keeps of their cursors brings them back to the right item."""

from collections.abc import Iterator
from io import BytesIO
from typing import Any

from lowkiq_lambda import BatchJob, Lowkiq, Worker
from lowkiq_lambda.iterate import chunks, csv_rows, nested, phases, sequence
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Notes
from tests.kit.looks import left_behind
from tests.kit.workers import declare

FILES = {"eu": b"n\n1\n2\n3\n4\n", "us": b'n\n5\n"6\n6"\n7\n'}
ROWS = ["1", "2", "3", "4", "5", "6\n6", "7"]


def test_rows_of_files_over_several_drains(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """B-10, J-33, J-35: files of two payloads, row by row, in drains of a few seconds, with a failure on the way."""
    done: list[str] = []

    def rows(name: str, after: Any) -> Any:
        return csv_rows(BytesIO(FILES[name]), after)

    def perform_job(_self: Worker, job: BatchJob) -> Iterator[Any]:
        for (_, row), cursor in nested(lambda c: sequence(job.payloads, c), rows, after=job.cursor):
            clock.advance(1.0)
            if row["n"] == "6\n6" and job.retry_count == -1:
                raise ValueError("a bad moment")
            done.append(row["n"])
            yield cursor

    worker = declare(app, queue_name, Notes(), perform_job=perform_job)
    worker.push_many([{"id": "a", "payload": name, "score": score} for score, name in enumerate(FILES)])
    counts: list[dict[str, int]] = []
    while not counts or "done" not in counts[-1]:
        counts.append(dict(app.drain(seconds=3.5)))
        clock.advance(10.0)

    assert ROWS == done
    assert [{"later": 1, "checkpointed": 1}, {"retried": 1, "failed": 1}, {"done": 1}] == counts
    assert {} == left_behind(app, worker)


def test_phases_and_chunks_over_several_drains(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A phase of chunks, then one of items: each begins where the last drain left it."""
    done: list[object] = []

    def perform_job(_self: Worker, job: BatchJob) -> Iterator[Any]:
        loop: Iterator[tuple[object, Any]] = phases(
            job.cursor,
            load=lambda after: chunks(sequence(range(7), after), 2),
            check=lambda after: sequence("xyz", after),
        )
        for item, cursor in loop:
            clock.advance(1.0)
            done.append(item)
            yield cursor

    worker = declare(app, queue_name, Notes(), perform_job=perform_job)
    worker.push_many([{"id": "a"}])
    drains = 0
    while app.drain(seconds=2.5).get("later"):
        drains += 1

    assert [[0, 1], [2, 3], [4, 5], [6], "x", "y", "z"] == done
    assert drains > 1
    assert {} == left_behind(app, worker)

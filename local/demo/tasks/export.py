"""A large table is exported in parts, by jobs of one task; the job that runs when all have ended joins the parts."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from local.demo.tasks.demo import Demo, DemoFailed
from lowkiq_lambda import Batch, Lowkiq
from lowkiq_lambda.tasks.task import Task
from lowkiq_lambda.tasks.views import Progress

PART = 1_000
"""Rows of a job."""


class Export(Demo):
    """500,000 rows by 500 jobs."""

    size = 500_000
    unit = "rows"

    def declare(self, app: Lowkiq, folder: Path) -> None:
        """A worker for the parts, and one that joins them. Whatever runs twice writes the same again."""
        self._file, self._parts = folder / "orders.csv", folder / "parts"

        @app.worker(queue_name=self.queue_name("ExportPart"), shards_count=5, batch_size=5)
        def export_parts(batch: Batch) -> None:
            for number, [part] in batch.items():
                rows = range(part["from"], part["to"])
                _write(self._parts / f"{int(number):06}.csv", "".join(map(_row, rows)))
                batch.note(number, f"{len(rows):,} rows")

        @app.worker(queue_name=self.queue_name("JoinParts"), shards_count=1)
        def join_parts(_batch: Batch) -> None:
            joined = self._file.with_suffix(".joining")
            with joined.open("wb") as whole:
                whole.write(b"order,customer,total\n")
                for part in sorted(self._parts.glob("*.csv")):
                    with part.open("rb") as rows:
                        shutil.copyfileobj(rows, whole)
            joined.replace(self._file)

        self.worker, self.on_complete = export_parts, (join_parts, None)

    def push(self, task: Task, size: int) -> Iterator[None]:
        """One item for each part."""
        self._file.unlink(missing_ok=True)
        shutil.rmtree(self._parts, ignore_errors=True)
        self._parts.mkdir()
        parts = [(first, min(first + PART, size)) for first in range(0, size, PART)]
        task.push_many(
            self.worker,
            [
                {"id": number, "payload": {"from": first, "to": end}, "item": f"rows {first + 1:,} to {end:,}"}
                for number, (first, end) in enumerate(parts)
            ],
        )
        yield

    def is_over(self, progress: Progress) -> bool:
        """Whether the parts are joined, too."""
        return super().is_over(progress) and self._file.exists()

    def outcome(self, _task: Task, size: int) -> Iterator[str]:
        """The file, which must have all rows in their order."""
        with self._file.open() as file:
            numbers = [int(line.partition(",")[0]) for line in list(file)[1:]]
        yield f"  {len(numbers):,} rows in {self._file}, {self._file.stat().st_size / 1e6:.1f} MB"
        if numbers != [*range(size)]:
            raise DemoFailed("the file does not have each row once, in order")


def _row(number: int) -> str:
    return f"{number},customer {number % 977},{number * 37 % 10_000 / 100:.2f}\n"


def _write(path: Path, text: str) -> None:
    """Write a file that nobody ever sees half-written."""
    half = path.with_suffix(".writing")
    half.write_text(text)
    half.replace(path)

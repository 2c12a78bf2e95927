"""A shop enrols products at a slow service: each seventh cannot be enrolled, and its item says why."""

import time
from collections.abc import Iterator
from pathlib import Path

from local.demo.tasks.demo import Demo, DemoFailed
from lowkiq_lambda import BatchJob, Lowkiq, Rejected, Worker
from lowkiq_lambda.tasks.task import Task

PAUSE = 0.05
"""Seconds that the service takes for a product."""
SHOWN = 5


class Enrolment(Demo):
    """200 products."""

    size = 200
    unit = "products"

    def declare(self, app: Lowkiq, folder: Path) -> None:
        """The worker: five products at once, as its queue has five shards."""
        del folder

        @app.worker
        class EnrolProduct(Worker):
            queue_name = self.queue_name("EnrolProduct")
            shards_count = 5

            def perform_job(self, job: BatchJob) -> None:
                time.sleep(PAUSE)
                job.note("asked the service")
                number = int(job.id)
                if number % 7 == 0:
                    # A person has to do something: another attempt would not help.
                    raise Rejected(f"product {number} has no picture")

        self.worker = EnrolProduct

    def push(self, task: Task, size: int) -> Iterator[None]:
        """One item for each product."""
        task.push_many(self.worker, [{"id": number, "item": f"product {number}"} for number in range(1, size + 1)])
        yield

    def outcome(self, task: Task, size: int) -> Iterator[str]:
        """The products that could not be enrolled, with the reason of each."""
        refused = task.items("failed", limit=SHOWN)
        for item in refused.items:
            yield f"  {item.label}: {item.text}"
        count = task.progress().counts["failed"]
        if count > SHOWN:
            yield f"  and {count - SHOWN} more"
        if count != size // 7:
            raise DemoFailed(f"{count} products were refused, not {size // 7}")

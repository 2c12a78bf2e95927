"""What the pages of a queue have in common."""

from typing import Final

from starlette.responses import Response

from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.worker import Worker

PAGE: Final = 100
"""Jobs on one page of a list."""


def chosen(visit: Visit) -> type[Worker] | None:
    """The worker of the queue that the address names."""
    name = visit.query.get("queue", "")
    return next((worker for worker in visit.app.workers if worker.queue_name == name), None)


def no_queue(visit: Visit) -> Response:
    """The answer where the address names none."""
    return visit.refuse(404, "The app has no queue of that name.")

"""Cancelling a task: pages and API both do it."""

from typing import Final

from lowkiq_lambda.dashboard import audit
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.tasks.views import Progress

SECONDS: Final = 5.0
"""A request takes no longer: a daemon or tick deletes what waits then."""


def cancel_task(context: RequestContext, task_id: str) -> Progress:
    """Cancels the task, and writes that to the audit log; how far the task has come by then. Raises NoSuchTask."""
    task = context.app.tasks.get(task_id)
    before = task.progress().counts["cancelled"]
    task.cancel(SECONDS)
    progress = task.progress()
    audit.note_task(context, "cancel", task_id, progress.name, progress.counts["cancelled"] - before)
    return progress

"""Cancelling a task: pages and API both do it."""

from lowkiq_lambda.dashboard import audit
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.tasks.views import Progress


def cancel_task(context: RequestContext, task_id: str) -> Progress:
    """Cancels the task, and writes that to the audit log; how far the task has come by then. Raises NoSuchTask."""
    task = context.app.tasks.get(task_id)
    before = task.progress().counts["cancelled"]
    task.cancel()
    progress = task.progress()
    audit.note_task(context, "cancel", task_id, progress.name, progress.counts["cancelled"] - before)
    return progress

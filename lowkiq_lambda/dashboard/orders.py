"""Orders for processes and tasks: pages and API both give them, and the activity log has them."""

from typing import Final, Literal

from lowkiq_lambda.dashboard import activity
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.tasks.family import family_of
from lowkiq_lambda.tasks.views import Progress
from lowkiq_lambda.views.activity import need_reason
from lowkiq_lambda.views.processes import Process

NO_PROCESS: Final = "There is no such process: it has ended, or nobody has heard of it for a day."

SECONDS: Final = 5.0
"""A request takes no longer: a daemon or housekeeping run deletes what waits then."""


def find(context: RequestContext, process_id: str) -> Process | None:
    """The process of that id; None where it is not known."""
    return next((process for process in context.app.operate.processes() if process.id == process_id), None)


def give(context: RequestContext, process_id: str, order: Literal["quiet", "stop"]) -> bool:
    """Gives the order, and writes that to the activity log; False where the process is not known."""
    processes = context.app.operate.processes()
    is_known = processes.quiet(process_id) if order == "quiet" else processes.stop(process_id)
    if is_known:
        activity.note_process(context, order, process_id)
    return is_known


def cancel_task(context: RequestContext, task_id: str, *, running: bool) -> Progress:
    """Cancels the task and those below it, and writes that to the activity log; how far the task has come by then.

    `running`: what runs for it alone is asked to stop. Raises NoSuchTask, and ReasonMissing.
    """
    task = context.app.tasks.get(task_id)
    before = family_of(context.app.tasks, task_id)
    need_reason(context.reason, before.would_touch(running=running))
    task.cancel(SECONDS, running=running)
    after = before.again(context.app.tasks)
    cancelled = after.count("cancelled") - before.count("cancelled")
    activity.note_task(context, "cancel", task_id, after.top.name, cancelled)
    return after.top

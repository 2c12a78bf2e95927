"""Orders for processes: pages and API both give them."""

from typing import Final, Literal

from lowkiq_lambda.dashboard import audit
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.views.processes import Process

NO_PROCESS: Final = "There is no such process: it has ended, or nobody has heard of it for a day."


def find(context: RequestContext, process_id: str) -> Process | None:
    """The process of that id; None where it is not known."""
    return next((process for process in context.app.operate.processes() if process.id == process_id), None)


def give(context: RequestContext, process_id: str, order: Literal["quiet", "stop"]) -> bool:
    """Gives the order, and writes that to the audit log; False where the process is not known."""
    processes = context.app.operate.processes()
    known = processes.quiet(process_id) if order == "quiet" else processes.stop(process_id)
    if known:
        audit.note_process(context, order, process_id)
    return known

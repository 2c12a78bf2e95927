"""Operations on tasks."""

from lowkiq_lambda.dashboard.api.task_reader import (
    ItemPageResponse,
    ItemsParams,
    TaskPageResponse,
    TaskParams,
    TaskReader,
    TaskResponse,
    TasksParams,
    known,
)
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.task_cancelling import cancel_task


def tasks(context: RequestContext, params: TasksParams) -> TaskPageResponse:
    """Get all tasks: those that go on, then those that have ended, the latest first."""
    return TaskReader(context.app).page(params)


def task(context: RequestContext, params: TaskParams) -> TaskResponse:
    """Get a task, with the number of its items by status."""
    return TaskReader(context.app).one(params)


def task_items(context: RequestContext, params: ItemsParams) -> ItemPageResponse:
    """Get items of a task, of one status or of all."""
    return TaskReader(context.app).items(params)


def cancel(context: RequestContext, params: TaskParams) -> TaskResponse:
    """Cancel a task. Delete its waiting jobs, unless others pushed them too; running ones end by themselves.

    What is not deleted within seconds is deleted within minutes, by a daemon or tick.
    """
    with known():
        return TaskResponse.of(cancel_task(context, params.id))

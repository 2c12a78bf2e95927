"""Operations on tasks."""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from lowkiq_lambda.base.errors import NoSuchTask
from lowkiq_lambda.dashboard.api.operations import ApiError
from lowkiq_lambda.dashboard.api.requests import Cursor
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.orders import cancel_task
from lowkiq_lambda.operate.presentation.tasks import ItemPageResponse, TaskPageResponse, TaskReader, TaskResponse
from lowkiq_lambda.tasks.items import MOST_ERRORS
from lowkiq_lambda.tasks.views import Status
from lowkiq_lambda.views.activity import Reason

NO_TASK: Final = "There is no task of this id: it was forgotten, or it never was."
TaskId: TypeAlias = Annotated[
    str, Meta(pattern="^[A-Za-z0-9_-]{16}$", description="The id of a task: 16 letters, digits, `-` and `_`.")
]
TaskLimit: TypeAlias = Annotated[
    int, Meta(ge=1, le=1_000, description="The largest number of entries; fewer if they are large.")
]


class TasksParams(msgspec.Struct, frozen=True, kw_only=True):
    """A page of all tasks."""

    after: Cursor | UnsetType = UNSET
    limit: TaskLimit = 100


def tasks(context: RequestContext, params: TasksParams) -> TaskPageResponse:
    """Get all tasks: those that go on, then those that have ended, the latest first."""
    return read_page(TaskReader(context.app.tasks), params)


class TaskParams(msgspec.Struct, frozen=True, kw_only=True):
    """One task."""

    id: TaskId


class ProgressParams(TaskParams, frozen=True, kw_only=True):
    """How far a task has come."""

    errors: Annotated[
        int, Meta(ge=0, le=MOST_ERRORS, description="Of how many items that failed, died or were lost it tells.")
    ] = 0


def task(context: RequestContext, params: ProgressParams) -> TaskResponse:
    """Get a task, with the number of its items by status, and the last that failed."""
    return read_one(TaskReader(context.app.tasks), params)


class ItemsParams(TaskParams, frozen=True, kw_only=True):
    """A page of the items of a task."""

    status: Annotated[Status, Meta(description="Only items of this status; any status if absent.")] | UnsetType = UNSET
    after: Cursor | UnsetType = UNSET
    limit: TaskLimit = 100


def task_items(context: RequestContext, params: ItemsParams) -> ItemPageResponse:
    """Get items of a task, of one status or of all."""
    return read_items(TaskReader(context.app.tasks), params)


class CancelParams(TaskParams, frozen=True, kw_only=True):
    """One task. `running`: its running jobs are asked to stop, unless their runs have payloads that others pushed.

    More than 100 jobs need a `reason`.
    """

    running: bool = False
    reason: Reason = ""


def cancel(context: RequestContext, params: CancelParams) -> TaskResponse:
    """Cancel a task. Delete its waiting jobs, unless others pushed them too; without `running`, running jobs go on.

    Jobs that are not deleted within seconds are deleted within minutes, by a daemon or tick.
    """
    with known():
        return TaskResponse.of(cancel_task(context, params.id, running=params.running))


def read_page(reader: TaskReader, params: TasksParams) -> TaskPageResponse:
    """Some of all tasks. Raises ApiError."""
    with _readable():
        return reader.page(params.after or None, params.limit)


def read_one(reader: TaskReader, params: ProgressParams) -> TaskResponse:
    """A task, and how far it has come. Raises ApiError."""
    with known():
        return reader.one(params.id, params.errors)


def read_items(reader: TaskReader, params: ItemsParams) -> ItemPageResponse:
    """Items of a task. Raises ApiError."""
    with known(), _readable():
        return reader.items(params.id, params.status or None, params.after or None, params.limit)


@contextmanager
def known() -> Iterator[None]:
    """Makes an ApiError of NoSuchTask."""
    try:
        yield
    except NoSuchTask as error:
        raise ApiError(HTTPStatus.NOT_FOUND, "unknown_task", NO_TASK) from error


@contextmanager
def _readable() -> Iterator[None]:
    """Makes an ApiError of the ValueError for an `after` that is the `next` of no page."""
    try:
        yield
    except ValueError as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, "bad_cursor", str(error)) from error

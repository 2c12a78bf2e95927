"""Operations on tasks."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Annotated, Final, Self, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.errors import NoSuchTask
from lowkiq_lambda.dashboard.api.operations import ApiError
from lowkiq_lambda.dashboard.api.requests import Cursor
from lowkiq_lambda.dashboard.api.responses import Polled, fitting, version_of
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.orders import cancel_task
from lowkiq_lambda.settings.protocols import Mask
from lowkiq_lambda.tasks.items import MOST_ERRORS
from lowkiq_lambda.tasks.views import ChildState, Item, Kind, Progress, State, Status, TaskPage, TaskSummary
from lowkiq_lambda.views.activity import Reason

logger = logging.getLogger(__name__)

NO_TASK: Final = "There is no task of this id: it was forgotten, or it never was."
LIST_POLL: Final = 5.0
"""Seconds after which it is worth asking for the list again: anybody may make a task."""
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


class TaskPageResponse(Polled, frozen=True, kw_only=True):
    """Tasks without the counts of their items. `next`: the `after` of the next page; null on the last one.

    Times are Unix seconds by the server's clock; null: not yet. `pushed`: how many items a task was given.
    """

    tasks: list[TaskSummary]
    next: str | None


def tasks(context: RequestContext, params: TasksParams) -> TaskPageResponse:
    """Get all tasks: those that go on, then those that have ended, the latest first."""
    return TaskReader(context.app).page(params)


class TaskParams(msgspec.Struct, frozen=True, kw_only=True):
    """One task."""

    id: TaskId


class ProgressParams(TaskParams, frozen=True, kw_only=True):
    """How far a task has come."""

    errors: Annotated[
        int, Meta(ge=0, le=MOST_ERRORS, description="Of how many items that failed, died or were lost it tells.")
    ] = 0


class ItemErrorResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An item that failed, died or was lost: when it ended, and why."""

    number: int
    label: str | None
    queue: str
    id: str
    status: Status
    at: float | None
    text: str


class TaskResponse(Polled, frozen=True, kw_only=True):
    """How far a task has come. Its shards are read one after the other, so the numbers may be a moment apart.

    `counts`: items by status; every status is there. `ended`: how many of the `total` have ended, in whatever way.
    Times are Unix seconds by the server's clock; null: not yet. `closed_at`: when it was closed, or cancelled.
    `completed_at`: when all items of a closed or cancelled task had ended. `expires_at`: when the task and its items
    are forgotten, as far as is known now. `failed_at`, `succeeded_at`: when `on_failure`, `on_success` was pushed.
    `children`: the states of the tasks that are items of it, by id. `errors`: items that failed, died or were lost.
    """

    id: str
    name: str
    state: State
    counts: dict[Status, int]
    total: int
    ended: int
    created_at: float
    closed_at: float | None
    completed_at: float | None
    expires_at: float
    failed_at: float | None
    succeeded_at: float | None
    parent: str | None
    children: dict[str, ChildState]
    errors: list[ItemErrorResponse]

    @classmethod
    def of(cls, progress: Progress) -> Self:
        """The response."""
        errors = [
            ItemErrorResponse(queue=fields.pop("queue_name"), **fields)
            for fields in (error._asdict() for error in progress.errors)
        ]
        return cls(**{**msgspec.structs.asdict(progress), "errors": errors}, total=progress.total, ended=progress.ended)


def task(context: RequestContext, params: ProgressParams) -> TaskResponse:
    """Get a task, with the number of its items by status, and the last that failed."""
    return TaskReader(context.app).one(params)


class ItemsParams(TaskParams, frozen=True, kw_only=True):
    """A page of the items of a task."""

    status: Annotated[Status, Meta(description="Only items of this status; any status if absent.")] | UnsetType = UNSET
    after: Cursor | UnsetType = UNSET
    limit: TaskLimit = 100


class MessageResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A line of an item's course: when, what kind, and a text, empty where the kind says all."""

    at: float | None
    text: str
    kind: Kind


class ItemResponse(msgspec.Struct, frozen=True, kw_only=True):
    """One item of a task: one job that was pushed through it.

    `number`: from 1, in the order of the pushes. `label`: what the push called it. `id`: of its job. `attempts`: how
    often it was tried. `messages`: what its handler noted and why it failed, oldest first. `joined`: the number of the
    item whose fate a merged one shares. `course`: all that became of it, but `left_out` lines between the first 10 and
    the last 40. `params`: the payload as JSON, cut after 1,024 of its `params_size` bytes. `took`: seconds from its
    first run to its end.
    """

    number: int
    label: str | None
    queue: str
    id: str
    status: Status
    attempts: int
    messages: list[str]
    joined: int | None
    course: list[MessageResponse]
    left_out: int
    params: str | None
    params_size: int | None
    enqueued_at: float | None
    began_at: float | None
    ended_at: float | None
    took: float | None


class ItemPageResponse(Polled, frozen=True, kw_only=True):
    """Items of a task: those that failed first, then by number. `next`: the `after` of the next page; null: none."""

    items: list[ItemResponse]
    next: str | None


def task_items(context: RequestContext, params: ItemsParams) -> ItemPageResponse:
    """Get items of a task, of one status or of all."""
    return TaskReader(context.app).items(params)


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


@dataclass(frozen=True, slots=True)
class TaskReader:
    """Reads tasks of an app's server. `mask`: what people may see of labels and messages. Methods raise ApiError."""

    app: Lowkiq
    mask: Mask | None = None

    def page(self, params: TasksParams) -> TaskPageResponse:
        """Some of all tasks: those that go on, then those that have ended, the latest first."""
        with _readable():
            page: TaskPage = self.app.tasks.list(params.after or None, params.limit)
        version = version_of(page.tasks, page.next)
        return TaskPageResponse(version=version, next_poll=LIST_POLL, tasks=page.tasks, next=page.next)

    def one(self, params: ProgressParams) -> TaskResponse:
        """A task, and how far it has come."""
        with known():
            response = TaskResponse.of(self.app.tasks.get(params.id).progress(params.errors))
        if self.mask is None or not response.errors:
            return response
        errors = []
        for one in response.errors:
            label, text = self._masked(one.queue, one.id, [one.label, one.text])
            errors.append(msgspec.structs.replace(one, label=label, text=text or ""))
        return msgspec.structs.replace(response, errors=errors)

    def items(self, params: ItemsParams) -> ItemPageResponse:
        """Items of a task."""
        with known():
            task = self.app.tasks.get(params.id)
            progress = task.progress()
            read_page = partial(task.items, params.status or None, params.after or None)
            with _readable():
                page = read_page(params.limit)
            items = [self._response(item) for item in page.items]
            fit = len(fitting(items))
            if fit < len(items):
                page = read_page(fit)
                items = [self._response(item) for item in page.items]
        version = version_of(items, page.next)
        return ItemPageResponse(version=version, next_poll=progress.next_poll, items=items, next=page.next)

    def _response(self, item: Item) -> ItemResponse:
        texts = [item.label, item.params, *(message.text for message in item.messages)]
        label, params, *masked = self._masked(item.queue_name, item.id, texts)
        course = [
            MessageResponse(at=message.at, text=text or "", kind=message.kind)
            for message, text in zip(item.messages, masked, strict=True)
        ]
        return ItemResponse(
            number=item.number,
            label=label,
            queue=item.queue_name,
            id=item.id,
            status=item.status,
            attempts=item.attempts,
            messages=[*(one.text for one in course if one.text), *(["paused"] if item.is_paused else [])],
            joined=item.joined,
            course=course,
            left_out=item.messages_left_out,
            params=params,
            params_size=item.params_size,
            enqueued_at=item.enqueued_at,
            began_at=item.began_at,
            ended_at=item.ended_at,
            took=item.took,
        )

    def _masked(self, queue_name: str, job_id: str, texts: Sequence[str | None]) -> Sequence[str | None]:
        """The texts of an item that people may see; none of them where the mask fails."""
        if self.mask is None:
            return texts
        try:
            return [str(self.mask(queue_name, job_id, text)) if text else text for text in texts]
        except Exception:
            logger.exception("the mask failed on a text of an item of queue %r; none is shown", queue_name)
            return [None] * len(texts)


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

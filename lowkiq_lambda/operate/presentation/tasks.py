"""Tasks as JSON, for the API and for the command line."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import msgspec

from lowkiq_lambda.operate.presentation.pages import Polled, fitting, version_of
from lowkiq_lambda.settings.protocols import Mask
from lowkiq_lambda.tasks.views import ChildState, Item, Kind, Progress, State, Status, TaskSummary

if TYPE_CHECKING:
    from lowkiq_lambda.tasks.tasks import Tasks

logger = logging.getLogger(__name__)

_NAMED: Final = 5
"""Of the open tasks below a task so many are named."""
LIST_POLL: Final = 5.0
"""Seconds after which it is worth asking for the list again: anybody may make a task."""


class TaskPageResponse(Polled, frozen=True, kw_only=True):
    """Tasks without the counts of their items. `next`: the `after` of the next page; null on the last one.

    Times are Unix seconds by the server's clock; null: not yet. `pushed`: how many items a task was given.
    """

    tasks: list[TaskSummary]
    next: str | None


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

    `counts`: its own items by status; every status is there. `ended`: how many of the `total` have ended, in whatever
    way. Times are Unix seconds by the server's clock; null: not yet. `closed_at`: when it was closed, or else
    cancelled. `completed_at`: when all items of a closed or cancelled task had ended. `expires_at`: when the task and
    its items are forgotten, as far as is known now. `failed_at`, `succeeded_at`: when `on_failure`, `on_success` was
    pushed. `children`: the states of the tasks that are items of it, by id. `errors`: items that failed, died or were
    lost.
    """

    id: str
    name: str
    state: State
    counts: dict[Status, int]
    total: int
    ended: int
    created_at: float
    closed_at: float | None
    cancelled_at: float | None
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


def below_words(progress: Progress) -> str:
    """Which tasks below the task are open, in a sentence without an end; empty if there are none."""
    below = [child for child, state in progress.children.items() if state == "open"]
    more = f" and {len(below) - _NAMED:,} more" if len(below) > _NAMED else ""
    tasks = "1 task below it is" if len(below) == 1 else f"{len(below):,} tasks below it are"
    return f"{tasks} open: {', '.join(below[:_NAMED])}{more}" if below else ""


@dataclass(frozen=True, slots=True)
class TaskReader:
    """Reads tasks of an app's server. `mask`: what people may see of labels and messages.

    Its methods raise NoSuchTask, BackendError, and ValueError for an `after` that is the `next` of no page.
    """

    tasks: "Tasks"
    mask: Mask | None = None

    def page(self, after: str | None = None, limit: int = 100) -> TaskPageResponse:
        """Some of all tasks: those that go on, then those that have ended, the latest first."""
        page = self.tasks.list(after, limit)
        version = version_of(page.tasks, page.next)
        return TaskPageResponse(version=version, next_poll=LIST_POLL, tasks=page.tasks, next=page.next)

    def one(self, task_id: str, errors: int = 0) -> TaskResponse:
        """A task, and how far it has come."""
        response = TaskResponse.of(self.tasks.get(task_id).progress(errors))
        if self.mask is None or not response.errors:
            return response
        masked = []
        for one in response.errors:
            label, text = self._masked(one.queue, one.id, [one.label, one.text])
            masked.append(msgspec.structs.replace(one, label=label, text=text or ""))
        return msgspec.structs.replace(response, errors=masked)

    def items(self, task_id: str, status: Status | None, after: str | None, limit: int) -> ItemPageResponse:
        """Items of a task."""
        task = self.tasks.get(task_id)
        progress = task.progress()
        page = task.items(status, after, limit)
        items = [self._response(item) for item in page.items]
        fit = len(fitting(items))
        if fit < len(items):
            page = task.items(status, after, fit)
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

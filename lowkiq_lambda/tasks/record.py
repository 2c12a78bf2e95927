"""What is kept of a task beside its items: one JSON text, replaced as a whole."""

import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final, NamedTuple, Self

import msgspec

from lowkiq_lambda.base.errors import NoSuchTask
from lowkiq_lambda.tasks.views import State, TaskSummary

ID_BYTES: Final = 12
COMPLETING: Final = 30.0
"""Seconds for which one process pushes the callback; then another one does it again, and the receipt swallows that."""
MOST_ITEMS: Final = 2**32 - 1


class Callback(NamedTuple):
    """The job that is pushed when the task is complete: its queue, and its payload as the app dumps it, in base64."""

    queue_name: str
    payload: str


class TaskRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task. Times are Unix seconds by the clock of its node; None: not yet.

    `version`: a random text, new with each change, so that no two records are ever equal. `next`: how many numbers of
    items were given out. `queues`: the shards_count of each queue that it was pushed to. `verified_at`: when its open
    items were last compared with the jobs that are there. `expires_in`: seconds from its completion. `abandoned_in`:
    seconds from its last push, if it never completes.
    """

    version: str = ""
    name: str
    created_at: float
    expires_in: float
    abandoned_in: float
    callback: Callback | None = None
    next: int = 0
    queues: dict[str, int] = {}
    pushed_at: float | None = None
    closed_at: float | None = None
    cancelled_at: float | None = None
    completing_at: float | None = None
    completed_at: float | None = None
    verified_at: float | None = None
    expired: bool = False

    @classmethod
    def of(cls, text: bytes) -> Self:
        """The record as it was written. Raises msgspec.MsgspecError."""
        return msgspec.json.decode(text, type=cls)

    def written(self) -> bytes:
        """It as a text that was never written before."""
        return msgspec.json.encode(self.changed(version=secrets.token_urlsafe(9)))

    def changed(self, **fields: object) -> Self:
        """The record with other values."""
        return msgspec.structs.replace(self, **fields)

    @property
    def state(self) -> State:
        """What became of it so far."""
        if self.expired:
            return "expired"
        if self.cancelled_at is not None:
            return "cancelled"
        if self.completed_at is not None:
            return "completed"
        if self.completing_at is not None:
            return "completing"
        return "open" if self.closed_at is None else "closed"

    @property
    def is_open(self) -> bool:
        """Whether it takes pushes from everybody."""
        return self.state == "open"

    @property
    def is_over(self) -> bool:
        """Whether nobody has to look at it any more, until it is forgotten."""
        return self.completed_at is not None or self.expired

    @property
    def last_change(self) -> float:
        """When it was last pushed to, closed or cancelled."""
        return max(at for at in (self.created_at, self.pushed_at, self.closed_at, self.cancelled_at) if at is not None)

    @property
    def cancelled_or_closed_at(self) -> float | None:
        """When it was cancelled, also where it had been closed before; else when it was closed."""
        return self.closed_at if self.cancelled_at is None else self.cancelled_at

    @property
    def expires_at(self) -> float:
        """When it is forgotten."""
        if self.completed_at is not None:
            return self.completed_at + self.expires_in
        return self.last_change + self.abandoned_in

    def summary(self, task_id: str) -> TaskSummary:
        """It in a list."""
        return TaskSummary(
            id=task_id,
            name=self.name,
            state=self.state,
            pushed=self.next,
            created_at=self.created_at,
            closed_at=self.cancelled_or_closed_at,
            completed_at=self.completed_at,
        )


def new_id() -> str:
    """An id that nobody can guess."""
    return id_text(secrets.token_bytes(ID_BYTES))


def id_text(raw: bytes) -> str:
    """The id of a task as people and programs have it."""
    return urlsafe_b64encode(raw).decode()


def id_bytes(task_id: str) -> bytes:
    """The id as shards have it. Raises NoSuchTask for a text that is no id."""
    given: object = task_id
    try:
        raw = urlsafe_b64decode(task_id) if isinstance(given, str) else b""
    except ValueError:
        raw = b""
    if len(raw) != ID_BYTES or id_text(raw) != task_id:
        raise NoSuchTask(f"{task_id!r} is not the id of a task: that has 16 letters, digits, '-' and '_'.")
    return raw

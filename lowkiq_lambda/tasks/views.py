"""Views of tasks for people and programs: frozen values, no I/O."""

from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

Status: TypeAlias = Literal[
    "enqueued", "running", "done", "failed", "dead", "cancelled", "superseded", "merged", "lost"
]
"""What became of an item, so far.

Open: `enqueued`, it waits, for the first time or again; `running`. Ended: `done`; `failed`, its handler raised
`Rejected`; `dead`, its retries are used up, or it was killed; `cancelled`, somebody deleted it, or cancelled the task;
`superseded`, a newer payload of its id took its place; `merged`, it shares the payload, and so the fate, of the item
`joined`; `lost`, its job is gone, as a key of Redis was evicted or deleted by hand.
"""

State: TypeAlias = Literal["open", "closed", "completing", "completed", "cancelled", "expired"]
"""Of a task. `open`: it takes pushes. `closed`: only from its own running items. `completing`: all items have ended,
and its callback is being pushed. `completed`. `cancelled`: it takes no pushes, and its callback is not pushed.
`expired`: it is being forgotten.
"""

STATUSES: Final[dict[str, Status]] = {
    "f": "failed",
    "x": "dead",
    "l": "lost",
    "r": "running",
    "e": "enqueued",
    "c": "cancelled",
    "s": "superseded",
    "m": "merged",
    "d": "done",
}
"""By the letter that a shard keeps, in the order in which `items` lists them: what people look for comes first."""
FAILED: Final = "fxl"
"""The letters of statuses in which nobody wants an item to end."""
GOOD: Final[frozenset[Status]] = frozenset({"done", "merged", "superseded"})
"""All items of a task that succeeds have one of these."""
Kind: TypeAlias = Literal[
    "enqueued",
    "working",
    "done",
    "failed",
    "dead",
    "retried",
    "interrupted",
    "later",
    "requeued",
    "note",
    "expired",
    "cancelled",
    "superseded",
    "merged",
    "lost",
]
"""What a message of an item tells: a status that it got, or why it waits again, or a note of its handler."""
OPEN: Final[frozenset[Status]] = frozenset({"enqueued", "running"})


ChildState: TypeAlias = Literal["open", "completed", "succeeded", "cancelled", "abandoned"]
"""Of a task that is an item. `open`: it goes on. `abandoned`: it was forgotten without ever having been complete."""


class Message(NamedTuple):
    """A line of an item's course: when (Unix seconds by the server's clock; None where it was not kept), and a text.

    The text is empty where the kind says all.
    """

    at: float | None
    text: str
    kind: Kind


class ItemError(NamedTuple):
    """An item that failed, died or was lost: when it ended, and its last text."""

    number: int
    label: str | None
    queue_name: str
    id: str
    status: Status
    at: float | None
    text: str


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a task has come. Its shards are read one after the other, so the numbers may be a moment apart.

    Times are Unix seconds by the server's clock.
    """

    id: str
    name: str
    state: State
    counts: dict[Status, int]
    """Its own items by status; every status is there. Items of tasks below it are not counted."""
    created_at: float
    closed_at: float | None
    """When it was closed, or cancelled without having been closed."""
    completed_at: float | None
    """When all items had ended, of a task that was closed or cancelled."""
    expires_at: float
    """When the task and its items are forgotten, as far as is known now."""
    version: str
    """Another text whenever anything here, but `next_poll`, is another one: an ETag."""
    cancelled_at: float | None = None
    failed_at: float | None = None
    """When its `on_failure` was pushed, or that of a task above it."""
    succeeded_at: float | None = None
    """When its `on_success` was pushed, or it had succeeded for a task above it."""
    parent: str | None = None
    """The id of the task whose item it is."""
    children: dict[str, ChildState] = {}
    """The tasks that are items of this one, by id."""
    errors: tuple[ItemError, ...] = ()
    """Items that failed, died or were lost, as many as were asked for: the one that ended last comes first.

    Of more of them in a shard those that were pushed last are taken.
    """
    next_poll: float | None
    """In how many seconds it is worth asking again: more of them as the task gets older; None if it is over."""

    @property
    def total(self) -> int:
        """All items."""
        return sum(self.counts.values())

    @property
    def ended(self) -> int:
        """Items that have ended, in whatever way."""
        return self.total - self.counts["enqueued"] - self.counts["running"]


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One item of a task: one job that was pushed through it."""

    number: int
    """From 1, in the order of the pushes."""
    label: str | None
    """What the push called it."""
    queue_name: str
    id: str
    """Of its job."""
    status: Status
    attempts: int
    """How often it was tried and failed, or was interrupted for good."""
    messages: tuple[Message, ...]
    """Its course: each status that it got, what its handler noted, and why it failed, oldest first.

    Of more than 50 the first 10 and the last 40 are kept. A text has 200 characters at most.
    """
    joined: int | None
    """The number of the item whose fate a `merged` one shares."""
    messages_left_out: int = 0
    """How many messages between the first 10 and the last 40 are not kept."""
    is_paused: bool = False
    """Whether it waits while an operator has paused its id."""
    params: str | None = None
    """The payload as canonical JSON, cut after 1,024 bytes, of a task with `keep_params`."""
    params_size: int | None = None
    """How many bytes the whole payload has then."""
    enqueued_at: float | None = None
    began_at: float | None = None
    """When it ran first."""
    ended_at: float | None = None

    @property
    def took(self) -> float | None:
        """Seconds from its first run to its end."""
        return None if self.began_at is None or self.ended_at is None else self.ended_at - self.began_at

    @property
    def text(self) -> str:
        """The last text of its course, empty without one."""
        return next((message.text for message in reversed(self.messages) if message.text), "")


class ItemPage(NamedTuple):
    """Some items, and what the next page comes `after`; None on the last one."""

    items: list[Item]
    next: str | None


class TaskSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One task of a list. Its items are not counted: `progress` of the task does that."""

    id: str
    name: str
    state: State
    pushed: int
    """How many items were pushed, or were about to be."""
    created_at: float
    closed_at: float | None
    completed_at: float | None


class TaskPage(NamedTuple):
    """Some tasks, and what the next page comes `after`; None on the last one."""

    tasks: list[TaskSummary]
    next: str | None

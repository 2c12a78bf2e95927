"""The items of tasks as their shards have them: counted, listed, verified, withdrawn and forgotten."""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import Any, Final, NamedTuple

from lowkiq_lambda.store.shard.keys import REQUESTS, TRACKING, ShardRef
from lowkiq_lambda.store.shard.layout import Layout
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Argument, Reply, ReplyShape
from lowkiq_lambda.tasks.places import tracked
from lowkiq_lambda.tasks.views import STATUSES, Item, ItemPage, Status

LETTERS: Final = "".join(STATUSES)
LETTER_OF: Final = {status: letter for letter, status in STATUSES.items()}
VERIFIED_AT_ONCE: Final = 200
_NUMBER: Final = struct.Struct(">I")
_REASONS: Final = {
    1: "failed in company",
    2: "interrupted",
    3: "its process ended",
    4: "goes on later",
    5: "killed by an operator",
    6: "requeued",
    7: "blocked",
    8: "went to the morgue with the oldest of its id",
    9: "expired",
}
"""What scripts keep as a number, as include/mark_items.lua names them."""

LARGEST_PAGE = 1_000


class ItemReply(ReplyShape, frozen=True):
    """One item in the reply of task_items.lua."""

    number: bytes
    id: bytes
    label: bytes
    attempts: int
    messages: list[Any]
    joined: bytes
    paused_until: bytes = b""


class TaskItemsReply(ReplyShape, frozen=True):
    """The reply of task_items.lua."""

    scripts = ("task_items",)
    items: list[ItemReply]


class TaskCountsReply(ReplyShape, frozen=True):
    """The reply of task_counts.lua for a shard: how many items have each status, in the order asked for."""

    scripts = ("task_counts",)
    counts: list[int]
    revived: int


class VerifyReply(ReplyShape, frozen=True):
    """The reply of task_verify.lua: how many it ended, and the number to go on after, or empty."""

    scripts = ("task_verify",)
    status: bytes
    lost: int
    next: bytes


class ExpireReply(ReplyShape, frozen=True):
    """The reply of task_expire.lua."""

    scripts = ("task_expire",)
    status: bytes
    gone: int


class ItemCounts(NamedTuple):
    """Items by status, and how often one that had ended was opened again, over all shards of a task."""

    by_status: Mapping[Status, int]
    revived: int

    @property
    def open(self) -> int:
        """Items that have not ended."""
        return self.by_status["enqueued"] + self.by_status["running"]


@dataclass(frozen=True)
class TaskItems:
    """The items of one task in the shards of these queues. Each method raises BackendError."""

    reader: ShardReader
    task: bytes
    layouts: Mapping[str, Layout]
    """Of the queues, by name."""
    read_error: Callable[[bytes], str]

    @property
    def shards(self) -> list[ShardRef]:
        """All that may have any."""
        return [shard for name in self.layouts for shard in self.shards_of(name)]

    def shards_of(self, queue_name: str) -> Sequence[ShardRef]:
        """Those of this queue: while it is being resharded, those that ids leave come first."""
        return tracked(queue_name, self.layouts[queue_name], self.reader.backend.prefix)

    def counts(self) -> ItemCounts:
        """How many there are, shard by shard, in one round trip for each node."""
        return counts_of(self.reader, [self])

    def page(self, status: Status, after: int, limit: int) -> list[Item]:
        """Items of that status by number, after this one."""
        position = _NUMBER.pack(after) if after else b""
        args = (self.task, LETTER_OF[status], position, limit)
        # Only items that wait can wait for the end of a pause.
        shards = [shard.using((REQUESTS,)) for shard in self.shards] if status == "enqueued" else self.shards
        replies = self.reader.read(
            "task_items",
            dict.fromkeys(shards, args),
            lambda shard, reply: [self._item(shard, status, one) for one in TaskItemsReply.of(reply).items],
        )
        return [*islice(merge(*replies, key=attrgetter("number")), limit)]

    def refs_in(self, shard: ShardRef, status: Status, after: bytes, limit: int) -> list[ItemReply]:
        """Items of that status in one shard, after that number."""
        args = (self.task, LETTER_OF[status], after, limit)
        (refs,) = self.reader.read(
            "task_items", {_tracked(shard): args}, lambda _, reply: TaskItemsReply.of(reply).items
        )
        return refs

    def verify(self, remaining: Callable[[], float]) -> tuple[int, bool]:
        """End open items that no job has; how many, and whether all were looked at in the time."""
        missing = 0
        for shard in self.shards:
            for letter in (LETTER_OF["enqueued"], LETTER_OF["running"]):
                after: bytes | None = b""
                while after is not None:
                    if remaining() <= 0:
                        return missing, False
                    reply = VerifyReply.of(
                        self._run("task_verify", shard, [self.task, letter, after, VERIFIED_AT_ONCE])
                    )
                    missing, after = missing + reply.lost, reply.next or None
        return missing, True

    def forget(self, at_once: int, remaining: Callable[[], float]) -> bool:
        """Forget all items; whether all are forgotten, in the time."""
        for shard in self.shards:
            is_forgotten = at_once
            while is_forgotten == at_once:
                if remaining() <= 0:
                    return False
                is_forgotten = ExpireReply.of(self._run("task_expire", shard, [self.task, at_once])).gone
        return True

    def _run(self, name: str, shard: ShardRef, args: Sequence[Argument]) -> Reply:
        return self.reader.backend.run(name, shard, args, retry_for=self.reader.retry_for)

    def _item(self, shard: ShardRef, status: Status, reply: ItemReply) -> Item:
        is_ours = reply.joined[: len(self.task)] == self.task
        is_paused = reply.paused_until and float(reply.paused_until) > self.reader.backend.now(shard)
        return Item(
            number=_number(reply.number),
            label=reply.label.decode() or None,
            queue_name=shard.queue_name,
            id=reply.id.decode(),
            status=status,
            attempts=reply.attempts,
            messages=(*self._messages(reply), *(["paused"] if is_paused else [])),
            joined=_number(reply.joined[len(self.task) :]) if is_ours else None,
        )

    def _messages(self, reply: ItemReply) -> Iterator[str]:
        for message in reply.messages:
            yield self.read_error(message) if isinstance(message, bytes) else _REASONS.get(message, "")


def counts_of(reader: ShardReader, tasks: Sequence[TaskItems]) -> ItemCounts:
    """How many items these tasks have together, in one round trip for each node. Raises BackendError."""
    requests = [(group, (items.task, LETTERS)) for items in tasks for group in reader.groups(items.shards)]
    counts = [TaskCountsReply.of(own) for reply in reader.ask_each("task_counts", requests) for own in reply]
    by_status = {
        status: sum(one.counts[position] for one in counts) for position, status in enumerate(STATUSES.values())
    }
    return ItemCounts(by_status, sum(one.revived for one in counts))


def _tracked(shard: ShardRef) -> ShardRef:
    return ShardRef(shard.queue_name, shard.shards_count, shard.index, (TRACKING,), prefix=shard.prefix)


def _number(packed: bytes) -> int:
    (number,) = _NUMBER.unpack(packed)
    return int(number)


def check_limit(limit: int) -> None:
    """Raises ValueError if a page cannot have so many entries."""
    value: object = limit
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= limit <= LARGEST_PAGE:
        raise ValueError(f"limit must be from 1 to {LARGEST_PAGE:,}, not {limit!r}.")


def item_page(items: TaskItems, status: Status | None, after: str | None, limit: int) -> ItemPage:
    """Items of one status, or of all in the order of `STATUSES`. Raises ValueError."""
    check_limit(limit)
    if status is not None and status not in STATUSES.values():
        raise ValueError(f"status must be one of {', '.join(sorted(STATUSES.values()))}, not {status!r}.")
    statuses = [*STATUSES.values()] if status is None else [status]
    first, number = (statuses[0], 0) if after is None else _position(after, statuses)
    counts = items.counts().by_status
    all_items: list[Item] = []
    for one in statuses[statuses.index(first) :]:
        if counts[one] and len(all_items) <= limit:
            all_items += items.page(one, number if one == first else 0, limit + 1 - len(all_items))
    page = all_items[:limit]
    return ItemPage(page, f"{page[-1].status}-{page[-1].number}" if len(all_items) > limit else None)


def _position(after: str, statuses: list[Status]) -> tuple[Status, int]:
    """Status and number that the page before ended with."""
    value: object = after
    name, _, number = after.partition("-") if isinstance(value, str) else ("", "", "")
    status = next((one for one in statuses if one == name), None)
    if status is None or not (number.isascii() and number.isdecimal()) or len(number) > len("4294967295"):
        raise ValueError(f"after={after!r} is not the `next` of a page of these items.")
    return status, min(int(number), 2**32 - 1)

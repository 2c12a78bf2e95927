"""The items of tasks as their shards have them: counted, listed, verified, withdrawn and forgotten."""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lowkiq_lambda.store.shard.codec import dump_json
from lowkiq_lambda.store.shard.keys import REQUESTS, TRACKING, ShardRef
from lowkiq_lambda.store.shard.layout import Layout
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Argument, Reply, ReplyShape
from lowkiq_lambda.tasks.places import tracked
from lowkiq_lambda.tasks.views import FAILED, GOOD, STATUSES, Item, ItemError, ItemPage, Kind, Message, Status

if TYPE_CHECKING:
    from lowkiq_lambda.declare.worker import Worker

LETTERS: Final = "".join(STATUSES)
LETTER_OF: Final = {status: letter for letter, status in STATUSES.items()}
VERIFIED_AT_ONCE: Final = 200
_NUMBER: Final = struct.Struct(">I")
MOST_ERRORS: Final = 100
_KINDS: Final[dict[str, Kind]] = {
    "f": "failed",
    "x": "dead",
    "l": "lost",
    "r": "working",
    "e": "enqueued",
    "c": "cancelled",
    "s": "superseded",
    "m": "merged",
    "d": "done",
    "n": "note",
}
"""Of a line that begins with this letter."""
_REASONS: Final[dict[int, tuple[str, Kind]]] = {
    1: ("failed in company", "retried"),
    2: ("interrupted", "interrupted"),
    3: ("its process ended", "interrupted"),
    4: ("goes on later", "later"),
    5: ("killed by an operator", "dead"),
    6: ("requeued", "requeued"),
    7: ("blocked", "enqueued"),
    8: ("went to the morgue with the oldest of its id", "dead"),
    9: ("expired", "expired"),
    10: ("edited", "note"),
    11: ("put back", "enqueued"),
}
"""What scripts keep as a number, as include/mark_items.lua names them."""
PARAMS_BYTES: Final = 1_024

LARGEST_PAGE = 1_000


class ItemReply(ReplyShape, frozen=True):
    """One item as include/item_rows.lua returns it."""

    status: bytes
    number: bytes
    id: bytes
    label: bytes
    attempts: int
    course: list[Any]
    joined: bytes
    times: list[Any]
    left_out: int
    params: bytes
    paused_until: bytes = b""

    @property
    def milliseconds(self) -> Sequence[int | bytes]:
        """Behind the time at which it was pushed: when it began, and ended; b"" for not yet."""
        return self.times[1:] or (b"", b"")

    @property
    def enqueued_at(self) -> float | None:
        """Unix seconds; None in a row of an earlier form."""
        return float(self.times[0]) if self.times else None

    def at(self, milliseconds: int | bytes) -> float | None:
        """The time so long after it was pushed."""
        return self.enqueued_at + milliseconds / 1_000 if self.enqueued_at is not None and milliseconds != b"" else None  # type: ignore[operator]  # an int


class TaskItemsReply(ReplyShape, frozen=True):
    """The reply of task_items.lua."""

    scripts = ("task_items",)
    items: list[ItemReply]


class TaskCountsReply(ReplyShape, frozen=True):
    """The reply of task_counts.lua for a shard: how many items have each status, in the order asked for."""

    scripts = ("task_counts",)
    counts: list[int]
    revived: int
    failed: list[ItemReply]


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
    def has_failures(self) -> bool:
        """Whether an item failed, died or was lost."""
        return any(self.by_status[STATUSES[letter]] for letter in FAILED)

    @property
    def are_good(self) -> bool:
        """Whether all items have ended as a task needs that succeeds."""
        return not any(count for status, count in self.by_status.items() if status not in GOOD)

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

    def counts_and_errors(self, errors: int) -> tuple[ItemCounts, tuple[ItemError, ...]]:
        """The counts, and so many items that failed, the last that ended first: in the same round trips."""
        counts, failed = _counted(self.reader, [self], errors)
        listed = [
            ItemError(item.number, item.label, item.queue_name, item.id, item.status, item.ended_at, item.text)
            for item in (self._item(shard, reply) for shard, reply in failed)
        ]
        listed.sort(key=lambda error: (error.at or 0.0, error.number), reverse=True)
        return counts, tuple(listed[:errors])

    def page(self, status: Status, after: int, limit: int) -> list[Item]:
        """Items of that status by number, after this one."""
        position = _NUMBER.pack(after) if after else b""
        args = (self.task, LETTER_OF[status], position, limit)
        # Only items that wait can wait for the end of a pause.
        shards = [shard.using((REQUESTS,)) for shard in self.shards] if status == "enqueued" else self.shards
        replies = self.reader.read(
            "task_items",
            dict.fromkeys(shards, args),
            lambda shard, reply: [self._item(shard, one) for one in TaskItemsReply.of(reply).items],
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

    def _item(self, shard: ShardRef, reply: ItemReply) -> Item:
        is_ours = reply.joined[: len(self.task)] == self.task
        is_paused = reply.paused_until and float(reply.paused_until) > self.reader.backend.now(shard)
        began, ended = reply.milliseconds
        size, _, params = reply.params.partition(b" ")
        return Item(
            number=_number(reply.number),
            label=reply.label.decode() or None,
            queue_name=shard.queue_name,
            id=reply.id.decode(),
            status=STATUSES[reply.status.decode()],
            attempts=reply.attempts,
            messages=(*self._course(reply),),
            joined=_number(reply.joined[len(self.task) :]) if is_ours else None,
            messages_left_out=reply.left_out,
            is_paused=bool(is_paused),
            params=params.decode() if size else None,
            params_size=int(size) if size else None,
            enqueued_at=reply.enqueued_at,
            began_at=reply.at(began),
            ended_at=reply.at(ended),
        )

    def _course(self, reply: ItemReply) -> Iterator[Message]:
        if not reply.times:
            for line in reply.course:
                text = self.read_error(line) if isinstance(line, bytes) else _REASONS.get(line, ("", "note"))[0]
                yield Message(None, text, "note")
            return
        # That of an item which ended as it was pushed is empty.
        letter = "e" if reply.course else reply.status.decode()
        yield Message(reply.enqueued_at, "", _KINDS.get(letter, "note"))
        for milliseconds, line in zip(reply.course[::2], reply.course[1::2], strict=True):
            text, kind = self._line(line) if isinstance(line, bytes) else _REASONS.get(line, ("", "note"))
            yield Message(reply.at(milliseconds), text, kind)

    def _line(self, line: bytes) -> tuple[str, Kind]:
        letter, dumped = line[:1].decode(), line[1:]
        kind = _KINDS.get(letter, "note")
        return (self.read_error(dumped), "retried" if letter == "e" else kind) if dumped else ("", kind)


def counts_of(reader: ShardReader, tasks: Sequence[TaskItems]) -> ItemCounts:
    """How many items these tasks have together, in one round trip for each node. Raises BackendError."""
    return _counted(reader, tasks, 0)[0]


def _counted(
    reader: ShardReader, tasks: Sequence[TaskItems], errors: int
) -> tuple[ItemCounts, list[tuple[ShardRef, ItemReply]]]:
    requests = [
        (group, (items.task, LETTERS, errors, FAILED)) for items in tasks for group in reader.groups(items.shards)
    ]
    replies = reader.ask_each("task_counts", requests)
    counts = [
        (shard, TaskCountsReply.of(own))
        for (group, _), reply in zip(requests, replies, strict=True)
        for shard, own in zip(group.shards, reply, strict=True)
    ]
    by_status = {
        status: sum(one.counts[position] for _, one in counts) for position, status in enumerate(STATUSES.values())
    }
    failed = [(shard, item) for shard, one in counts for item in one.failed]
    return ItemCounts(by_status, sum(one.revived for _, one in counts)), failed


def plain_of(worker: "type[Worker[Any]]", payload: object) -> object:
    """The payload as JSON values. Raises JobError if it is not of the worker's type."""
    if worker.payload is None:
        return payload
    from lowkiq_lambda.declare.payloads import plain_payload  # noqa: PLC0415 - only where a type is declared: cold start

    return plain_payload(worker.payload, payload)


def packed_params(payload: object) -> bytes:
    """What an item keeps of a payload: its size as canonical JSON, and the first KiB of that. Raises JobError."""
    dumped = dump_json(payload)
    return b"%d %b" % (len(dumped), dumped[:PARAMS_BYTES].decode(errors="ignore").encode())


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

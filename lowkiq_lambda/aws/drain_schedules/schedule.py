"""One schedule as a value: what it is called, what it calls, and what sets two of them apart."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from typing import Final, NamedTuple

NAME_LENGTH: Final = 64
"""What EventBridge Scheduler allows."""
_HIGHEST_INDEX: Final = 99_999
PREFIX_LENGTH: Final = NAME_LENGTH - len(f"-shard-{_HIGHEST_INDEX}")
_DIGEST: Final = 8
EACH_QUEUE_PREFIX_LENGTH: Final = NAME_LENGTH - len(f"-shards.x-{_HIGHEST_INDEX}") - _DIGEST - 1
"""With room for a queue's name, or for a part of it and a digest."""
_RATE: Final = re.compile(r"rate\([1-9]\d* (minute|hour|day)s?\)")
_CRON: Final = re.compile(r"cron\((?P<fields>[0-9A-Z*?,/#\- ]+)\)")
_CRON_FIELDS: Final = 6
_DESCRIPTION_LENGTH: Final = 512


class ScheduledShard(NamedTuple):
    """The shards that a schedule drains: those of a number, of all queues or of one."""

    queue: str
    """As names of schedules have it; empty for all."""
    number: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """What EventBridge Scheduler is told of one schedule. `event_age` is seconds; without a time zone of its own.

    `enabled` and `kms_key` are the operator's: where a wanted schedule has None there, they stay as they are found.
    """

    name: str
    expression: str
    function: str
    """The ARN of what it invokes."""
    role: str
    """The ARN of the role that it invokes it as."""
    event: str
    """JSON, as the function gets it."""
    dead_letters: str | None = None
    """The ARN of the queue for events that could not be delivered."""
    retries: int = 2
    event_age: int = 60
    window: str = "OFF"
    timezone: str = "UTC"
    description: str = ""
    starts_at: str | None = None
    ends_at: str | None = None
    at_the_end: str = "NONE"
    enabled: bool | None = field(default=None)
    kms_key: str | None = field(default=None)


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """A field of a schedule that is not as it should be."""

    field: str
    found: object
    wanted: object


def name_of(prefix: str, index: int, queue: str = "") -> str:
    """What the schedule of a shard index is called: of all queues, or of one.

    >>> name_of("shop", 3), name_of("shop", 3, "SyncOrder"), name_of("shop", 3, "a queue")
    ('shop-shard-3', 'shop-shards.SyncOrder-3', 'shop-shards.a-queue-162b39e2-3')
    """
    return f"{prefix}-shards.{_short(prefix, queue)}-{index}" if queue else f"{prefix}-shard-{index}"


def place_of(prefix: str, name: str) -> ScheduledShard | None:
    """What a schedule with that name drains; None where the name is not of the form.

    >>> place_of("shop", "shop-shard-12"), place_of("shop", "shop-shards.SyncOrder-12")
    (ScheduledShard(queue='', number=12), ScheduledShard(queue='SyncOrder', number=12))
    >>> place_of("shop", "shop-shard-012"), place_of("shop", "backup")
    (None, None)
    """
    match = re.fullmatch(re.escape(prefix) + r"-shard(?:-|s\.(.+)-)(0|[1-9][0-9]{0,4})", name)
    return ScheduledShard(match[1] or "", int(match[2])) if match else None


def _short(prefix: str, queue: str) -> str:
    """A queue's name as names of schedules may have it: with a digest of it if they can't have all of it."""
    room = EACH_QUEUE_PREFIX_LENGTH - len(prefix) + _DIGEST + 2
    if len(queue) <= room and re.fullmatch(r"[0-9a-zA-Z\-_.]+", queue):
        return queue
    digest = sha256(queue.encode()).hexdigest()[:_DIGEST]
    return f"{re.sub(r'[^0-9a-zA-Z]+', '-', queue)[: room - _DIGEST - 1]}-{digest}"


def indexes_of(shards_counts: Iterable[int]) -> range:
    """The shard indexes that queues with so many shards have among them."""
    return range(max(shards_counts, default=0))


def is_expression(text: str) -> bool:
    """Whether EventBridge Scheduler takes it for a time that comes again, as far as its form tells.

    >>> [is_expression(text) for text in ("rate(1 minute)", "rate(5 minutes)", "cron(0/5 8-18 ? * MON-FRI *)")]
    [True, True, True]
    >>> [is_expression(text) for text in ("every minute", "rate(0 minutes)", "cron(* * * * *)", "cron(* * * * * *)")]
    [False, False, False, False]
    """
    if match := _CRON.fullmatch(text):
        fields = match["fields"].split(" ")
        # A day is one of a month or one of a week, and the other field says so.
        return len(fields) == _CRON_FIELDS and all(fields) and (fields[2] == "?") != (fields[4] == "?")
    return _RATE.fullmatch(text) is not None


def wanted_schedule(prefix: str, index: int, like: Schedule, queue: str = "") -> Schedule:
    """The schedule that drains a shard index of all queues, or of one; the rest is as in `like`."""
    event = {"queue": queue, "shard": index} if queue else {"shard": index}
    of = f"queue {queue}" if queue else "every queue"
    return replace(
        like,
        name=name_of(prefix, index, queue),
        event=json.dumps(event),
        description=f"Drains shard {index} of {of}. Made by lowkiq stack schedules."[:_DESCRIPTION_LENGTH],
    )


def differences(planned: Schedule, deployed: Schedule) -> tuple[FieldDifference, ...]:
    """What sets the found one apart, but for what is left to the operator."""
    pairs = [(field.name, getattr(deployed, field.name), getattr(planned, field.name)) for field in fields(Schedule)]
    return tuple(
        FieldDifference(name, there, here)
        for name, there, here in pairs
        if there != here and not (here is None and name in {"enabled", "kms_key"})
    )


def corrected(planned: Schedule, deployed: Schedule) -> Schedule:
    """The wanted one, with what is left to the operator as it was found."""
    return replace(
        planned,
        enabled=deployed.enabled if planned.enabled is None else planned.enabled,
        kms_key=deployed.kms_key if planned.kms_key is None else planned.kms_key,
    )

"""One schedule as a value: what it is called, what it calls, and what sets two of them apart."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Final

NAME_LENGTH: Final = 64
"""What EventBridge Scheduler allows."""
_HIGHEST_INDEX: Final = 99_999
PREFIX_LENGTH: Final = NAME_LENGTH - len(f"-shard-{_HIGHEST_INDEX}")


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


def name_of(prefix: str, index: int) -> str:
    """What the schedule of a shard index is called."""
    return f"{prefix}-shard-{index}"


def index_of(prefix: str, name: str) -> int | None:
    """The shard index of a schedule with that name; None where the name is not of the form.

    >>> index_of("shop", "shop-shard-12"), index_of("shop", "shop-shard-012"), index_of("shop", "backup")
    (12, None, None)
    """
    match = re.fullmatch(re.escape(prefix) + r"-shard-(0|[1-9][0-9]{0,4})", name)
    return int(match[1]) if match else None


def indexes_of(shards_counts: Iterable[int]) -> range:
    """The shard indexes that queues with so many shards have among them."""
    return range(max(shards_counts, default=0))


def wanted_schedule(prefix: str, index: int, like: Schedule) -> Schedule:
    """The schedule that drains a shard index of all queues; the rest is as in `like`."""
    return replace(
        like,
        name=name_of(prefix, index),
        event=f'{{"shard": {index}}}',
        description=f"Drains shard {index} of every queue. Made by lowkiq stack schedules.",
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

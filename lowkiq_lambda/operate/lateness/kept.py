"""The samples and the hours of queues in Redis.

A queue that is watched has two keys: `samples`, a list with the last minutes, which ends by itself, and `hours`, a hash
with a digest of each hour of 35 days, and the sample with which the present one began.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec

from lowkiq_lambda.operate.lateness.causes import LOOKED
from lowkiq_lambda.operate.lateness.samples import Sample
from lowkiq_lambda.store.server.faults import unless_error
from lowkiq_lambda.store.server.pipelines import send_each
from lowkiq_lambda.store.shard.backend import Backend, ExtraCommand
from lowkiq_lambda.store.shard.keys import queue_key
from lowkiq_lambda.views.lateness import HourDigest

KEPT: Final = LOOKED + 1
"""Samples: each minute is between two."""
SAMPLES_FOR: Final = 1_800
"""Seconds after the last sample for which they are kept: older ones explain nothing that is so now."""
HOURS: Final = 35 * 24
"""Five whole weeks, so that a week can be compared with the four before it."""
HOUR: Final = 3_600
OPEN: Final = b"open"
"""The field with the hour that goes on."""
Kept = TypeVar("Kept")


class OpenHour(msgspec.Struct, frozen=True, array_like=True):
    """The hour that goes on: its number, the sample that it began with, and ids of its busiest minute so far."""

    number: int
    began: Sample
    last: Sample
    busiest: int = 0
    cause: str = ""
    """That was told last, as long as the queue is late."""


_encode: Final = msgspec.msgpack.Encoder().encode
_sample: Final = msgspec.msgpack.Decoder(Sample)
_hour: Final = msgspec.msgpack.Decoder(HourDigest)
_open: Final = msgspec.msgpack.Decoder(OpenHour)


def read_samples(backend: Backend, queue_names: Sequence[str], retry_for: float) -> list[list[Sample]]:
    """The samples of each queue, the oldest first, in one round trip. Raises BackendError."""
    keys = [queue_key(name, "samples", backend.prefix) for name in queue_names]
    answers = _ask(backend, [(key, ("LRANGE", key, 0, KEPT - 1)) for key in keys], retry_for)
    return [[*_readable(_sample, reversed(answer))] for answer in answers]


def read_hours(backend: Backend, queue_name: str, retry_for: float) -> list[HourDigest]:
    """The hours of a queue that are over, the oldest first. Raises BackendError."""
    key = queue_key(queue_name, "hours", backend.prefix)
    (fields,) = _ask(backend, [(key, ("HGETALL", key))], retry_for)
    flat = [*fields.items()] if isinstance(fields, dict) else [*zip(fields[::2], fields[1::2], strict=True)]
    hours = _readable(_hour, [value for field, value in flat if field != OPEN])
    return sorted(hours, key=lambda hour: hour.at)


def read_open(backend: Backend, queue_names: Sequence[str], retry_for: float) -> list[OpenHour | None]:
    """The hour of each queue that goes on, if it was begun. Raises BackendError."""
    keys = [queue_key(name, "hours", backend.prefix) for name in queue_names]
    answers = _ask(backend, [(key, ("HGET", key, OPEN)) for key in keys], retry_for)
    return [next(_readable(_open, [] if answer is None else [answer]), None) for answer in answers]


def writing(
    prefix: str, queue_name: str, sample: Sample, now: OpenHour, over: HourDigest | None
) -> Iterator[ExtraCommand]:
    """The commands that keep a sample, the hour that goes on, and one that is over."""
    key = queue_key(queue_name, "samples", prefix)
    yield key, ("LPUSH", key, _encode(sample))
    yield key, ("LTRIM", key, 0, KEPT - 1)
    yield key, ("EXPIRE", key, SAMPLES_FOR)
    key = queue_key(queue_name, "hours", prefix)
    number = now.number
    if over is None:
        yield key, ("HSET", key, OPEN, _encode(now))
        return
    ended = int(over.at // HOUR)
    yield key, ("HSET", key, OPEN, _encode(now), ended, _encode(over))
    # All hours that have become too old since the one that is over began.
    yield key, ("HDEL", key, *range(ended - HOURS, number - HOURS + 1))
    yield key, ("EXPIRE", key, HOURS * HOUR)


def write(backend: Backend, commands: Sequence[ExtraCommand], retry_for: float) -> None:
    """Write all that, in one round trip. Raises BackendError."""
    _ask(backend, commands, retry_for)


def _ask(backend: Backend, commands: Sequence[ExtraCommand], retry_for: float) -> list[Any]:
    return backend.retrying(retry_for, lambda: [unless_error(each) for each in send_each(backend.client, commands)])


def _readable(decoder: "msgspec.msgpack.Decoder[Kept]", stored: Any) -> Iterator[Kept]:  # noqa: ANN401 - replies of Redis
    """Records of another version in another form are left out."""
    for value in stored:
        with suppress(msgspec.MsgspecError):
            yield decoder.decode(value)

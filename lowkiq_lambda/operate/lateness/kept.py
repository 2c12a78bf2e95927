"""The samples and the hours of queues in Redis.

A queue that is watched has two keys: `samples`, a list with the last minutes, which ends by itself, and `hours`, a hash
with a field for each of 35 days and of the present one, and the sample with which the present hour began. A day is
stored whole, as the overhead of a field is as large as an hour, and as hours that are alike compress well.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, groupby, pairwise
from operator import sub
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
DAYS: Final = 35
"""Five whole weeks, so that a week can be compared with the four before it."""
HOUR: Final = 3_600
DAY: Final = 24 * HOUR
OPEN: Final = b"open"
"""The field with the hour that goes on."""
PARTS: Final = {"at": 1, "seconds": 10, "busy": 1_000, "computing": 1_000, "held": 1_000} | dict.fromkeys(
    ("p50", "p95", "p99"), 10_000
)
"""Times are stored as integers: these parts of a second, in fields of `HourDigest`.

No more is measured: samples have milliseconds, and waits are estimated by the buckets of the history.
"""
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
_rows: Final = msgspec.msgpack.Decoder(list[list[Any]])
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
    hours = (hour for field, value in flat if field != OPEN for hour in unpacked(value))
    return sorted(hours, key=lambda hour: hour.at)


def read_day(backend: Backend, queue_name: str, at: float, retry_for: float) -> list[HourDigest]:
    """The hours of the day of `at` (Unix seconds, in UTC) that are before it. Raises BackendError."""
    key = queue_key(queue_name, "hours", backend.prefix)
    (value,) = _ask(backend, [(key, ("HGET", key, _day(at)))], retry_for)
    return [hour for hour in unpacked(value or b"") if hour.at < at]


def read_open(backend: Backend, queue_names: Sequence[str], retry_for: float) -> list[OpenHour | None]:
    """The hour of each queue that goes on, if it was begun. Raises BackendError."""
    keys = [queue_key(name, "hours", backend.prefix) for name in queue_names]
    answers = _ask(backend, [(key, ("HGET", key, OPEN)) for key in keys], retry_for)
    return [next(_readable(_open, [] if answer is None else [answer]), None) for answer in answers]


def writing(
    prefix: str, queue_name: str, sample: Sample, now: OpenHour, over: Sequence[HourDigest] = ()
) -> Iterator[ExtraCommand]:
    """The commands that keep a sample, the hour that goes on, and of each day of hours that are over all its hours."""
    key = queue_key(queue_name, "samples", prefix)
    yield key, ("LPUSH", key, _encode(sample))
    yield key, ("LTRIM", key, 0, KEPT - 1)
    yield key, ("EXPIRE", key, SAMPLES_FOR)
    key = queue_key(queue_name, "hours", prefix)
    days = ((day, packed(hours)) for day, hours in groupby(over, key=lambda hour: _day(hour.at)))
    yield key, ("HSET", key, OPEN, _encode(now), *(word for day in days for word in day))
    if over:
        # All days that have become too old since the first of these.
        yield key, ("HDEL", key, *range(_day(over[0].at) - DAYS - 1, _day(now.number * HOUR) - DAYS))
        yield key, ("EXPIRE", key, DAYS * DAY)


def write(backend: Backend, commands: Sequence[ExtraCommand], retry_for: float) -> None:
    """Write all that, in one round trip. Raises BackendError."""
    _ask(backend, commands, retry_for)


def packed(hours: Iterable[HourDigest]) -> bytes:
    """A day, as it is stored."""
    return zlib.compress(_encode([[*_row(hour)] for hour in hours]))


def _row(hour: HourDigest) -> Iterator[object]:
    for name, value in msgspec.structs.asdict(hour).items():
        if name == "skew":
            # Shares fall, and the steps between them are small numbers that are alike.
            yield value and [value[0], *(more - less for more, less in pairwise(value))]
        else:
            yield value if value is None else round(value * PARTS.get(name, 1))


def unpacked(stored: bytes) -> Iterator[HourDigest]:
    """The hours of a day; none where it is stored in the form of another version."""
    with suppress(zlib.error, msgspec.MsgspecError, TypeError, KeyError):
        yield from [_hour(row) for row in _rows.decode(zlib.decompress(stored))]


def _hour(row: Sequence[Any]) -> HourDigest:
    fields = dict(zip(HourDigest.__struct_fields__, row, strict=False))
    for name, parts in PARTS.items():
        if fields[name] is not None:
            fields[name] /= parts
    if fields["skew"]:
        fields["skew"] = tuple(accumulate(fields["skew"], sub))
    return msgspec.convert([*fields.values()], HourDigest)


def _day(at: float) -> int:
    return int(at // DAY)


def _ask(backend: Backend, commands: Sequence[ExtraCommand], retry_for: float) -> list[Any]:
    return backend.retrying(retry_for, lambda: [unless_error(each) for each in send_each(backend.client, commands)])


def _readable(decoder: "msgspec.msgpack.Decoder[Kept]", stored: Any) -> Iterator[Kept]:  # noqa: ANN401 - replies of Redis
    """Records of another version in another form are left out."""
    for value in stored:
        with suppress(msgspec.MsgspecError):
            yield decoder.decode(value)

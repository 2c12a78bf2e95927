"""One sample a minute, from a look that is made anyway: the payloads that arrived in each queue, the app's numbers.

Each process that makes such looks may write it, if nobody has written one since it read the last. A push counts
nothing: payloads are numbered, and the numbers at two looks differ by what arrived in between.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, TypeVar

import msgspec

from lowkiq_lambda.operate.inspect.history import command, times_in, waited_by_all
from lowkiq_lambda.store.server.faults import unless_error
from lowkiq_lambda.store.server.pipelines import send_each
from lowkiq_lambda.store.shard.backend import Backend, ExtraCommand
from lowkiq_lambda.store.shard.duty_claims import DutyKey
from lowkiq_lambda.store.shard.history import ARRIVALS, TIMES
from lowkiq_lambda.store.shard.keys import queue_key
from lowkiq_lambda.store.shard.layout import Layout
from lowkiq_lambda.views.processes import Process
from lowkiq_lambda.views.queues import Metrics

PAST: Final = 600.0
"""Seconds that the lines of the app's numbers reach back."""
SHORTEST: Final = 50.0
"""The least seconds between two samples: less than a minute, because a look may come a little early."""
LONGEST: Final = 150.0
"""If more seconds lie between two samples, nobody knows in which of the minutes the payloads arrived."""
_JUMP: Final = 2**31
"""If two samples differ by as many payloads, the number has jumped or fallen."""
_WRAPS: Final = 2**52
"""The script counts.lua returns the sum of the numbers modulo this."""
_KEPT_FOR: Final = 3_600
_WRITE: Final = """
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
for i = 2, #KEYS do
  redis.call('BITFIELD', KEYS[i], 'SET', 'u32', '#' .. ARGV[2 * i + 1], ARGV[2 * i + 2])
  redis.call('EXPIRE', KEYS[i], ARGV[4])
end
"""


class AppSample(msgspec.Struct, frozen=True, array_like=True):
    """The app at a moment (Unix seconds): the longest lag, due ids, the 95th percentile of waits, living processes."""

    at: float
    lag: float
    due: int
    waited: float
    processes: int


class QueueSample(msgspec.Struct, frozen=True, array_like=True):
    """A queue at a moment (Unix seconds). `arrivals`: as in `Metrics`. `shape`: of its shards, and of what was mended.

    `begun`: how many payloads have arrived in the minute that goes on; None if nobody knows.
    """

    at: float
    shape: str
    arrivals: int
    begun: int | None = None


Stored = TypeVar("Stored")


class Sampled(NamedTuple):
    """What is there of an app, as it is stored: its samples, and of each queue the last one, and times of batches."""

    app: bytes
    queues: Mapping[str, bytes]
    times: Sequence[Mapping[int, bytes]]


class LookedAt(NamedTuple):
    """A queue of the app in numbers, `now` (Unix seconds)."""

    name: str
    now: float
    layout: Layout
    metrics: Metrics


def read_sampled(backend: Backend, names: Sequence[str], retry_for: float) -> Sampled:
    """What is there of the app with these queues, in one round trip. Raises BackendError."""
    now = backend.clock.time()
    recent = [(TIMES, int((now - ago) // TIMES.window)) for ago in (TIMES.window, 0)]
    commands: list[ExtraCommand] = [(key := _app_key(backend, names), ("GET", key))]
    for name in names:
        _, (_, *keys) = command(name, recent, backend.prefix)
        commands.append((key := _queue_key(backend, name), ("MGET", key, *keys)))
    app, *queues = backend.retrying(retry_for, lambda: [*map(unless_error, send_each(backend.client, commands))])
    stored = {name: queue[0] or b"" for name, queue in zip(names, queues, strict=True)}
    return Sampled(app or b"", stored, [times_in(queue[1:], recent) for queue in queues])


def past_of(stored: bytes) -> list[AppSample]:
    """The samples of an app, the oldest first."""
    return _decoded(stored, list[AppSample]) or []


def sampling(
    backend: Backend, there: Sampled, looked: Sequence[LookedAt], processes: Iterable[Process]
) -> Iterator[ExtraCommand]:
    """The commands that write the next samples, of the app and of its queues; none of what was sampled just now."""
    # A worker that another thread has declared since has nothing there yet.
    looked = [queue for queue in looked if queue.name in there.queues]
    at = max((queue.now for queue in looked), default=0.0)
    past = [each for each in past_of(there.app) if 0 <= at - each.at <= PAST]
    if looked and (not past or at - past[-1].at >= SHORTEST):
        waited = waited_by_all(there.times)
        sample = AppSample(
            at=at,
            lag=max(queue.metrics.lag for queue in looked),
            due=sum(queue.metrics.due for queue in looked),
            waited=waited.p95 if waited else 0.0,
            processes=sum(not process.is_gone for process in processes),
        )
        yield _writing(_app_key(backend, there.queues), there.app, [*past, sample])
    for queue in looked:
        stored = there.queues[queue.name]
        before = _decoded(stored, QueueSample)
        if before is None or not 0 <= queue.now - before.at < SHORTEST:
            shape = f"{queue.layout.shape} {queue.metrics.damaged}"
            sampled, minutes = following(before, QueueSample(queue.now, shape, queue.metrics.arrivals))
            slots = [
                (ARRIVALS.key(queue.name, at, backend.prefix), ARRIVALS.slot(at), count + 1) for at, count in minutes
            ]
            yield _writing(_queue_key(backend, queue.name), stored, sampled, slots)


def following(before: QueueSample | None, sample: QueueSample) -> tuple[QueueSample, list[tuple[float, int]]]:
    """The sample as it follows the one before; and each minute that is over in between, with what arrived in it.

    Payloads between two samples are spread evenly over the time. A minute of which a part is not known is left out.
    """
    arrived = None if before is None else arrived_between(before, sample)
    # What begins with a minute knows all of it.
    begun = None if sample.at % ARRIVALS.step else 0
    if before is None or arrived is None:
        return msgspec.structs.replace(sample, begun=begun), []
    minutes, rest, placed, seconds = list[tuple[float, int]](), before.begun, 0, sample.at - before.at
    for number in range(int(before.at // ARRIVALS.step), int(sample.at // ARRIVALS.step)):
        until = round(arrived * ((number + 1) * ARRIVALS.step - before.at) / seconds)
        if rest is not None:
            minutes.append((float(number * ARRIVALS.step), rest + until - placed))
        rest, placed = 0, until
    return msgspec.structs.replace(sample, begun=None if rest is None else rest + arrived - placed), minutes


def arrived_between(before: QueueSample, after: QueueSample) -> int | None:
    """How many payloads arrived between two samples; None if that is not known."""
    arrived = (after.arrivals - before.arrivals) % _WRAPS
    is_known = before.shape == after.shape and 0 < after.at - before.at <= LONGEST and arrived < _JUMP
    return arrived if is_known else None


def _app_key(backend: Backend, names: Iterable[str]) -> str:
    """In the slot of the app's duties, as it is of those that declare the same queues."""
    return f"{DutyKey.of(names, prefix=backend.prefix).keys[0]}:samples"


def _queue_key(backend: Backend, name: str) -> str:
    return queue_key(name, ARRIVALS.name, backend.prefix)


def _writing(key: str, stored: bytes, new: object, slots: Sequence[tuple[str, int, int]] = ()) -> ExtraCommand:
    args: list[bytes | int] = [stored, msgspec.msgpack.encode(new), _KEPT_FOR, ARRIVALS.kept]
    args += [number for _, slot, count in slots for number in (slot, count)]
    return key, ("EVAL", _WRITE, 1 + len(slots), key, *(slot[0] for slot in slots), *args)


def _decoded(stored: bytes, kind: type[Stored]) -> Stored | None:
    """None if there is none, or one of another version in another form."""
    with suppress(msgspec.MsgspecError):
        return msgspec.msgpack.decode(stored, type=kind) if stored else None
    return None

"""The shapes of what a user may plug into the settings, and of middlewares."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from inspect import iscoroutinefunction
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec

from lowkiq_lambda.jobs.job import Outcome

S = TypeVar("S")
Worker = TypeVar("Worker")
Batch = TypeVar("Batch")
Result = TypeVar("Result")


class Splitter(Protocol):
    """Says which drain thread of this process takes which shards."""

    def split(self, shards: Sequence[S], threads: int) -> list[list[S]]:
        """One list of shards for each of the `threads`."""
        ...


class ShardState(Protocol):
    """What a scheduler may know about a shard."""

    @property
    def ref(self) -> object:
        """Which shard: the same hashable value each time."""
        ...

    @property
    def has_work(self) -> bool:
        """Whether something is due, or left by a dead holder, and the shard may be had."""
        ...

    @property
    def lag(self) -> float | None:
        """Seconds that the oldest due job has waited; None (or negative) where nothing is due."""
        ...

    @property
    def weight(self) -> float:
        """How much its lag counts beside those of other queues: 1, unless its worker says otherwise."""
        ...


State = TypeVar("State", bound=ShardState)


class Scheduler(Protocol):
    """Says which shard a drain thread visits next; each thread has its own, so it may keep state."""

    def next(self, states: Sequence[State]) -> State | None:
        """One of `states` that has work, or None where none has."""
        ...


class RedisClient(Protocol):
    """A client of redis-py: `redis.Redis`, also one that a `Sentinel` made, or `redis.cluster.RedisCluster`."""

    def execute_command(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - as redis-py has it
        """Send a command, and wait for its answer."""
        ...


RedisPlug: TypeAlias = RedisClient | Callable[[], RedisClient]
"""A client, or what makes one: up to three times in a process, as pushes, drains and notifications have one each."""

Credentials: TypeAlias = Callable[[], tuple[str, str]]
"""User and password, asked for whenever a connection to the server signs in; the user may be empty.

From any thread, so it should keep what is good for a while. What it raises is a BackendDenied to the caller, unless it
is a BackendError itself: a BackendUnavailable is tried again.
"""


@runtime_checkable
class RenewableCredentials(Protocol):
    """Credentials that are told when the server has refused them."""

    def __call__(self) -> tuple[str, str]:
        """User and password."""
        ...

    def renew(self, refused: tuple[str, str]) -> bool:
        """Find out whether there is something newer than this; if so, the connection is opened again, once.

        Called by each connection that is refused, from any thread, so it should rest between two searches. What it
        raises is told as by the call itself.
        """
        ...


@runtime_checkable
class Overflow(Protocol):
    """Takes the jobs of pushes that Redis could not take, and sees to it that they get there later."""

    def take(self, worker: type[Any], jobs: Sequence[Mapping[str, Any]]) -> list[Any]:
        """A `Pushed` for each job, with `buffered`, in their order.

        The jobs are as `push_many` takes them, checked, and have passed the client middlewares. Raises
        PushInterrupted, with positions in `jobs`, where only some were taken, another BackendError where none was.
        """
        ...


class SettledEvent(msgspec.Struct, frozen=True, dict=True, eq=False, kw_only=True):
    """One settling of one shard, as Redis has acknowledged it; or what a new holder found of a dead one."""

    queue_name: str
    shard: int
    """Its number."""
    token: int
    """The fencing token of the lease."""
    at: float
    """Unix seconds by the clock of the shard's server."""
    counts: Mapping[str, int]
    """Ids by outcome, as `Lowkiq.drain` returns them; `failed` is the sum of `retried` and `buried`.

    `checkpointed` are those of `later` whose cursor had moved.
    """
    took: Sequence[float]
    """The seconds that each batch took, of those that ended since the last settling."""
    waited: Sequence[float]
    """The seconds for which the first id of each had been due when it began."""
    name_outcomes: Callable[[], Iterable[tuple[str, Outcome]]] = tuple
    """Names each id with its outcome. Asked for `outcomes` alone: a drain without observers makes no list of ids."""

    @cached_property
    def outcomes(self) -> Mapping[str, Outcome]:
        """The outcome of each id, made when it is read first. Ids that were recovered are only counted."""
        return dict(self.name_outcomes())


class Observer(Protocol):
    """Is told what drains got done, for telemetry. What it raises is logged, and stops nothing."""

    def settled(self, event: SettledEvent) -> None:
        """Called after each settling, from any thread."""
        ...


DumpPayload: TypeAlias = Callable[[object], bytes]
LoadPayload: TypeAlias = Callable[[bytes], object]
FormatError: TypeAlias = Callable[[BaseException], str]
DumpError: TypeAlias = Callable[[str], bytes]
LoadError: TypeAlias = Callable[[bytes], str]
OnBuffered: TypeAlias = Callable[[int], object]
"""Given how many jobs wait in the process for Redis."""
OnLost: TypeAlias = Callable[[Any, list[dict[str, Any]]], object]
"""Given a worker and jobs of it that were not delivered, such as its `push_many` takes."""
Mask: TypeAlias = Callable[[str, str, object], object]
"""Given a queue's name, an id and a payload: what people may see of the payload."""
Hook: TypeAlias = Callable[[], object]
Hooks: TypeAlias = Hook | Sequence[Hook]
"""One callable for an event, or several in the order in which they are given."""
LastWords: TypeAlias = Callable[[BaseException], object]
LoopFactory: TypeAlias = Callable[[], Any]
"""Makes an `asyncio.AbstractEventLoop`."""
StartDrain: TypeAlias = Callable[[str, int], object]
"""Given the queue's name and the number of a shard: starts its drain somewhere, and does not wait for it."""
BuildSplitter: TypeAlias = Callable[[], Splitter]
BuildScheduler: TypeAlias = Callable[[], Scheduler]

ServerMiddleware: TypeAlias = Callable[[Any, Any, Callable[..., Any]], Any]
"""Around perform: `(worker, batch, call_next)`. It calls `call_next()` once and returns what that returned.

`Any`, because a function that names its own worker's type must fit too. An object that is called may have a coroutine
function `awaited` of the same arguments, which is around coroutine handlers in its place.
"""
ClientMiddleware: TypeAlias = Callable[[Any, Any, Callable[..., Any]], Any]
"""Around a push, where `batch` is the list of jobs."""


def is_awaited(middleware: Callable[..., object]) -> bool:
    """Whether it is a coroutine function, or an object that is called as one."""
    return iscoroutinefunction(middleware) or iscoroutinefunction(type(middleware).__call__)


def around_coroutines(middleware: Callable[..., Any]) -> Callable[..., Any]:
    """What is around coroutine handlers in place of the middleware: its `awaited`, a coroutine function, if it has one.

    A plain middleware keeps a thread for each batch that it is around.
    """
    awaited: Callable[..., Any] = getattr(middleware, "awaited", middleware)
    return awaited


def compose(
    middlewares: Sequence[Callable[[Worker, Batch, Callable[..., Result]], Result]],
    inner: Callable[[Worker, Batch], Result],
) -> Callable[[Worker, Batch], Result]:
    """`inner` wrapped in the middlewares; without any, `inner` itself."""
    for middleware in reversed(middlewares):
        inner = _around(middleware, inner)
    return inner


def _around(
    middleware: Callable[[Worker, Batch, Callable[..., Result]], Result],
    inner: Callable[[Worker, Batch], Result],
) -> Callable[[Worker, Batch], Result]:
    return lambda worker, batch: middleware(worker, batch, lambda *other: inner(*(other or (worker, batch))))

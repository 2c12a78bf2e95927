"""The shapes of objects and functions in the settings, the values with several parts, and middlewares."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec
from msgspec import Meta

from lowkiq_lambda.base.error_text import headline
from lowkiq_lambda.jobs.job import Outcome

if TYPE_CHECKING:
    from lowkiq_lambda.jobs.progress import JobProgress

S = TypeVar("S")
Worker = TypeVar("Worker")
Batch = TypeVar("Batch")
Result = TypeVar("Result")

Jobs: TypeAlias = Iterable[Mapping[str, Any]]
"""What a push takes: for each job its id, its payload, and its options."""

MEBIBYTE: Final = 1024 * 1024
DAY: Final = 86_400.0
YEAR: Final = 366 * DAY

Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]


class Splitter(Protocol):
    """Says which drain thread of this process takes which shards."""

    def split(self, shards: Sequence[S], threads: int) -> list[list[S]]:
        """One list of shards for each of the `threads`."""
        ...


class ShardState(Protocol):
    """The state of a shard for a scheduler."""

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
        """Seconds that the oldest due job has waited; None (or negative) if no id is due."""
        ...

    @property
    def weight(self) -> float:
        """How much its lag counts beside those of other queues: 1, unless its worker says otherwise."""
        ...


State = TypeVar("State", bound=ShardState)


class Scheduler(Protocol):
    """Says which shard a drain thread visits next; each thread has its own, so it may keep state."""

    def next(self, states: Sequence[State]) -> State | None:
        """One of `states` that has work, or None if no state has work."""
        ...


class RedisClient(Protocol):
    """A client of redis-py: `redis.Redis`, also one that a `Sentinel` made, or `redis.cluster.RedisCluster`."""

    def execute_command(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - as redis-py has it
        """Send a command, and wait for its answer."""
        ...


RedisPlug: TypeAlias = RedisClient | Callable[[], RedisClient]
"""A client, or a factory. Pushes, drains and notifications have one client each: up to three calls in a process."""

Credentials: TypeAlias = Callable[[], tuple[str, str]]
"""Returns user and password, whenever a connection to the server signs in; the user may be empty.

Any thread may call it, so it should cache credentials while they are valid. An exception reaches the caller as
BackendDenied, unless it is a BackendError itself: after a BackendUnavailable the connection is tried again.
"""


@runtime_checkable
class RenewableCredentials(Protocol):
    """Credentials with a hook for a server that has refused them."""

    def __call__(self) -> tuple[str, str]:
        """User and password."""
        ...

    def renew(self, refused: tuple[str, str]) -> bool:
        """Find out whether there are newer credentials than these; if so, the connection is opened again, once.

        Each refused connection calls it, from any thread, so it should pause between two searches. Its exceptions are
        treated as those of `__call__`.
        """
        ...


@runtime_checkable
class Overflow(Protocol):
    """Takes the jobs of pushes that Redis could not take, and pushes them later."""

    def take(self, worker: type[Any], jobs: Sequence[Mapping[str, Any]]) -> list[Any]:
        """A `Pushed` for each job, with `buffered`, in their order.

        The jobs are as `push_many` takes them, checked, and have passed the client middlewares. Raises
        PushInterrupted, with positions in `jobs`, if only some were taken, another BackendError if none was.
        """
        ...


OnBuffered: TypeAlias = Callable[[int], object]
"""Given how many jobs wait in the process for Redis."""
OnLost: TypeAlias = Callable[[Any, list[dict[str, Any]]], object]
"""Given a worker and jobs of it that were not delivered, such as its `push_many` takes."""


def do_nothing(*_arguments: object) -> None:
    """The default of every hook."""


class Buffer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, repr_omit_defaults=True):
    """A buffer in this process for the jobs of pushes that Redis cannot take now."""

    jobs: Count = 1_000
    """How many jobs it takes."""
    full: Literal["raise", "drop_oldest"] = "raise"
    """What gives way if more come: the push, or the jobs that have waited longest."""
    on_buffered: OnBuffered = do_nothing
    """Called after jobs were kept, with the number of jobs that wait."""
    on_lost: OnLost = do_nothing
    """Called with jobs that are given up: newer jobs took their place, or the process ends."""


class MorgueLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The limits of one shard's morgue; the oldest payloads are dropped first."""

    entries: Count = 10_000
    """How many payloads it keeps."""
    bytes: Count = 64 * MEBIBYTE
    """How many bytes of payloads it keeps."""
    age: Annotated[float, Meta(gt=0, le=100 * YEAR)] = 180 * DAY
    """For how many seconds it keeps them."""

    @property
    def parts(self) -> tuple[int, int, float]:
        """All three, in this order, as the scripts take them."""
        return self.entries, self.bytes, self.age


class CursorRun(msgspec.Struct, frozen=True):
    """A run of a job with a cursor that has ended, in whatever way: its id's outcome says in which."""

    resumed: bool
    """Whether it went on with what earlier runs had saved."""
    items: int
    """How often the cursor changed in it."""
    progress: "JobProgress"
    """Over all runs: a job that is done and has no `items` did not find any; `reason` says why it was stopped last."""


class SettledEvent(msgspec.Struct, frozen=True, dict=True, eq=False, kw_only=True):
    """One settling of one shard that Redis has acknowledged, or the recovery of jobs of a dead holder."""

    queue_name: str
    shard: int
    """Its number."""
    token: int
    """The fencing token of the lease."""
    at: float
    """Unix seconds by the clock of the shard's server."""
    counts: Mapping[str, int]
    """Ids by outcome, as `Lowkiq.drain` returns them; `failed` is the sum of `retried` and `dead`.

    `checkpointed` are those of `later` whose cursor had moved.
    """
    took: Sequence[float]
    """The seconds of each batch that ended since the last settling."""
    waited: Sequence[float]
    """The seconds for which the first id of each batch had been due when the batch began."""
    name_outcomes: Callable[[], Iterable[tuple[str, Outcome]]] = tuple
    """Yields each id with its outcome. Only `outcomes` calls it: a drain without observers makes no list of ids."""
    name_cursor_runs: Callable[[], Mapping[str, CursorRun]] = dict
    """Only `cursor_runs` calls it."""

    @cached_property
    def outcomes(self) -> Mapping[str, Outcome]:
        """The outcome of each id, made when it is read first. Ids that were recovered are only counted."""
        return dict(self.name_outcomes())

    @cached_property
    def cursor_runs(self) -> Mapping[str, CursorRun]:
        """The runs of jobs with a cursor, by id; made when it is read first."""
        return self.name_cursor_runs()


class Observer(Protocol):
    """Receives the results of drains, for telemetry. Its exceptions are logged, and do not stop a drain."""

    def settled(self, event: SettledEvent) -> None:
        """Called after each settling, from any thread."""
        ...


DumpPayload: TypeAlias = Callable[[object], bytes]
LoadPayload: TypeAlias = Callable[[bytes], object]
FormatError: TypeAlias = Callable[[BaseException], str]
DumpError: TypeAlias = Callable[[str], bytes]
LoadError: TypeAlias = Callable[[bytes], str]
Mask: TypeAlias = Callable[[str, str, object], object]
"""Given a queue's name, an id and a payload: what people may see of the payload."""
Hook: TypeAlias = Callable[[], object]
Hooks: TypeAlias = Hook | Sequence[Hook]
"""One callable for an event, or several in the order in which they are given."""
LastWords: TypeAlias = Callable[[BaseException], object]
SendAlert: TypeAlias = Callable[[Mapping[str, Any]], object]
"""Given an alert, a JSON object with `text`: takes it, or raises, and is given it again."""
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


def message_only(error: BaseException) -> str:
    """As `Config.format_error`: the text of an error is `Type: message`, in one line or more, without a traceback."""
    return headline(error)


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

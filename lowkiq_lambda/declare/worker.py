"""A worker: the declaration of a queue with the code that performs its jobs, and what follows from it."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from random import SystemRandom
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal
from weakref import WeakKeyDictionary, WeakSet

from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.declare.pushable import FunctionWorker, Pushable, Q
from lowkiq_lambda.jobs.job import MorgueJob, shard_for
from lowkiq_lambda.jobs.retry import default_retry_in

if TYPE_CHECKING:
    from datetime import timedelta

    from lowkiq_lambda.declare.error_rules import ErrorRule
    from lowkiq_lambda.declare.pushable import AnyWorker, BoundApp
    from lowkiq_lambda.jobs.auto import Auto
    from lowkiq_lambda.jobs.debounce import Debounce
    from lowkiq_lambda.jobs.keep_runs import KeepRuns
    from lowkiq_lambda.jobs.rate import Rate
    from lowkiq_lambda.jobs.unique import Unique
    from lowkiq_lambda.settings.config import Config

_rng: Final = SystemRandom()


class Worker(Pushable[Q]):
    """Subclass it, decorate the subclass with `@app.worker`, and define `perform` or `perform_job`.

    An object of the class lives for one batch, so threads never share `self`. A subclass of `Worker[OrderChanged]` has
    payloads of that type; without one they are any JSON.
    """

    payload: ClassVar[Any] = None
    """The type of the payloads, if neither `Worker[...]` nor the handler's `Batch[...]` declares it."""

    shards_count: ClassVar["int | Auto | Literal['auto']"] = 5
    """Into how many shards the queue is divided; different shards run side by side. "auto", or an `Auto`: the queue has
    a count of its own, which the library proposes, or makes (docs/auto.md)."""
    batch_size: ClassVar["int | Auto | Literal['auto']"] = 1
    """How many ids one call of `perform` gets at most; 1 to 1,000. "auto", or an `Auto`: the holder finds it."""
    concurrency: ClassVar["int | Auto | Literal['auto']"] = 1
    """How many calls of the handler run side by side in one shard; 1 to 1,000, and at most 1,000 ids together.

    "auto", or an `Auto`: the holder finds the number, by how long calls take.
    """
    max_retry_count: ClassVar[int] = 25
    """How often a failed job is tried again: n retries are n + 1 executions."""
    on_error: ClassVar[Sequence["ErrorRule"]] = ()
    """Rules by error: `retry_on(...)`, `kill_on(...)`, `discard_on(...)`. The first that fits an error decides.

    If none does, `retry_in` and `max_retry_count` decide.
    """
    expires_in: ClassVar["float | timedelta | None"] = None
    """Seconds from when a job is due to when its payload is no longer handed over, for jobs that do not say it."""
    retry_for: ClassVar["float | timedelta | None"] = None
    """Seconds from the first failure of a payload in which it is tried again; None: as `max_retry_count` says."""
    expired: ClassVar[Literal["discard", "kill"]] = "discard"
    """What becomes of a payload whose time is over: it is dropped, or goes to the morgue, the list of dead jobs."""
    max_run_time: ClassVar["float | timedelta | None"] = None
    """Seconds that a call of the handler should take at most; None: as long as the drain has."""
    max_run_items: ClassVar[int | None] = None
    """How many items of a `perform_job` with a cursor one run performs at most; None: any number."""
    queue_name: ClassVar[str] = ""
    """The name of the queue; by default the name of the class."""
    merge: ClassVar[Literal["min", "max", "never", "latest"]] = "min"
    """Which score stays when an equal payload is pushed again; "never" keeps both payloads.

    With "latest" of all payloads of an id only the one with the largest score stays, and no smaller one runs after it.
    """
    dead_head: ClassVar[Literal["skip", "block", "drop", "latest"]] = "skip"
    """The rule for an id whose oldest payload has failed for the last time: docs/retries.md#dead-jobs."""
    isolate: ClassVar[bool] = True
    """If a batch fails without naming the failing ids, rerun each id alone before counting a failure."""
    ordered: ClassVar[bool] = True
    """Whether the payloads of an id end in order, so that `Batch.done(id, payload=n)` refuses one before its elders."""
    payloads_at_once: ClassVar[int] = 0
    """How many payloads of one id a handler gets at most, the oldest first; 0 for no limit of its own."""
    turn: ClassVar[float] = 5.0
    """Seconds after which a `perform_job` with a cursor makes way for other jobs, if any wait."""
    resume_in: ClassVar["float | timedelta"] = 0.0
    """Seconds until a `perform_job` with a cursor goes on after a stop; 0: at once, behind the other due ids.

    A `Later` that it raises has its own.
    """
    cursor_version: ClassVar[int] = 1
    """Stored with each cursor. For a cursor of another version, `upgrade_cursor(self, cursor, version)` is called."""

    debounce: ClassVar["Debounce | None"] = None
    """How long a new id waits for more pushes before it is due; None: it does not wait."""
    unique: ClassVar["Unique | None"] = None
    """Which pushes are stored only if their id has no work (docs/repeats.md); None: all are stored."""
    max_waiting: ClassVar[int | None] = None
    """How many ids may wait in a shard: a push of a new one more raises QueueFull; None: as many as Redis has room for.

    Those that wait for a retry or for their time count. Payloads of an id that waits are taken, and so are retries.
    """
    keep_runs: ClassVar["int | KeepRuns | None"] = None
    """How many runs the queue keeps for people to look at (docs/runs.md); None: it keeps none."""
    max_running: ClassVar[int | None] = None
    """At most so many shards of the queue are visited at once, across all processes; None: unlimited."""
    rate: ClassVar["Rate | None"] = None
    """At most `ids` ids may start in any window of `per` seconds, across all processes; None: unlimited."""
    waits_for: ClassVar[tuple[str, ...]] = ()
    """Names of queues: while a shard of one of them is visited, no visit of this queue begins."""
    block_except: ClassVar[tuple[str, ...] | None] = None
    """While a shard of this queue is visited, no visit of any other queue of the app begins, but for these; None blocks
    nothing."""
    weight: ClassVar[float] = 1.0
    """How much the lag of its shards counts where shards of several queues have work; 0.001 to 1,000."""
    tenants: ClassVar[Literal["spread", "home"] | None] = None
    """Whether tenants are served in a fair order, and whether each has one shard ("home") or all ("spread")."""
    tenant_rate: ClassVar["Rate | None"] = None
    """How many ids of each tenant may begin in any so many seconds; only with `tenants = "home"`."""

    app: ClassVar["BoundApp | None"] = None
    """The app that the class is bound to, by `@app.worker`."""

    if TYPE_CHECKING:

        def retry_in(self, *arguments: Any, **keywords: Any) -> float:  # noqa: ANN401 - as each worker defines it
            """Seconds until the next try: define it as `retry_in(self, retry_count)` or with the error behind that."""
            ...

    else:

        def retry_in(self, retry_count: int, error: "BaseException | str | None" = None) -> float:  # noqa: ARG002 - for those that look at it
            """Seconds until the next try, after the failure with this count (0 for the first); or `KILL`, or `DISCARD`.

            Define it with the count alone, or with the error too: the exception, the text of `batch.fail`, or a
            `PastError` if the id did not run because others failed alike.
            """
            return default_retry_in(retry_count, _rng)

    def retries_exhausted(self, jobs: Sequence[MorgueJob]) -> None:
        """Called with the jobs that just went to the morgue, or are blocked; what it raises is logged, no more."""


def in_seconds(time: "float | timedelta") -> float:
    """The seconds of a field that may be a timedelta."""
    return float(time) if isinstance(time, int | float) else time.total_seconds()


TIMES: Final = ("expires_in", "retry_for", "max_run_time")
"""The fields that are seconds, or a timedelta."""
HOME: Final = "home"
LATEST: Final = "latest"
LIMITS: Final = ("max_running", "rate", "waits_for", "block_except", "weight", "tenants", "tenant_rate")
"""The fields that limit a queue, or rank it among others."""


def has_limits(worker: type[Worker[Any]]) -> bool:
    """Whether it declares anything about limits."""
    return any(getattr(worker, field) is not getattr(Worker, field) for field in LIMITS)


def queues_before(worker: type[Worker[Any]], others: "Iterable[type[Worker[Any]]] | None" = None) -> tuple[str, ...]:
    """The queues that it waits for: those that it names, and those of `others`, or of its app, that block it."""
    if others is None:
        others = worker.app.workers if worker.app else ()
    name, before = worker.queue_name, worker.waits_for
    blocking = (other.queue_name for other in others if blocks(other, name) and other.queue_name not in before)
    return (*before, *blocking)


def blocks(worker: type[Worker[Any]], queue_name: str) -> bool:
    """Whether that queue waits while the worker's is visited, as the worker says."""
    return worker.block_except is not None and queue_name not in (worker.queue_name, *worker.block_except)


def is_auto(declared: object) -> bool:
    """Whether a number of a declaration is left to the library."""
    if isinstance(declared, int | float | None):
        return False
    from lowkiq_lambda.jobs.auto import AUTO, Auto  # noqa: PLC0415 - only where a worker declares it

    return declared == AUTO or isinstance(declared, Auto)


def auto_of(worker: "type[Worker[Any]] | Worker") -> "Auto | None":
    """The bounds of a worker whose queue has a count of shards of its own; None where code declares the count."""
    declared: object = worker.shards_count
    if isinstance(declared, int):
        return None
    from lowkiq_lambda.jobs.auto import Auto  # noqa: PLC0415 - only where a worker declares it

    return Auto.of(declared, f"{worker.__name__ if isinstance(worker, type) else type(worker).__name__}.shards_count")


def counts_skew(worker: "type[Worker[Any]]", config: "Config") -> bool:
    """Whether those that drain the queue count its frequent ids: by the settings, or with a count of its own."""
    return config.skew or (config.auto != "off" and is_auto(worker.shards_count))


def count_of(worker: "type[Worker[Any]] | Worker") -> int:
    """How many shards a new queue of the worker has."""
    declared: object = worker.shards_count
    if isinstance(declared, int):
        return declared
    bounds = auto_of(worker)
    return 0 if bounds is None else bounds.least


def at_most(declared: "int | Auto | Literal['auto']") -> int:
    """The number itself, or the upper bound of one that the library finds, of a worker that is declared."""
    return declared if isinstance(declared, int) else getattr(declared, "most", 1)


def worker_of(declared: "AnyWorker") -> type[Worker[Any]]:
    """The worker class behind what `@app.worker` returned. Raises DeclarationError for anything else."""
    worker: object = declared.worker if isinstance(declared, FunctionWorker) else declared
    if isinstance(worker, type) and issubclass(worker, Worker):
        return worker
    from lowkiq_lambda.base.error_text import shown  # noqa: PLC0415 - imported lazily: cold start

    if isinstance(worker, str):
        text = f"{shown(worker)} is a text, not a worker: give the class or the function that @app.worker declares."
    elif callable(worker):
        text = f"{getattr(worker, '__name__', shown(worker))} is not a worker: decorate it with @app.worker."
    else:
        text = f"{shown(worker)} is not a worker: give the class or the function that @app.worker declares."
    raise DeclarationError(text)


_resharded: Final[WeakKeyDictionary[type[Worker[Any]], Callable[[str], int]]] = WeakKeyDictionary()
"""Which shard has an id, of workers whose queues have other shards than they declare."""


def note_resharded(worker: type[Worker[Any]], number_for: Callable[[str], int]) -> None:
    """The worker's queue has other shards than it declares."""
    _resharded[worker] = number_for


def forget_resharded(worker: type[Worker[Any]]) -> None:
    """As far as is known, the worker's queue has the shards that it declares."""
    _resharded.pop(worker, None)


def shard_index(worker: "type[Worker[Any]] | Worker", job_id: str) -> int:
    """The shard that has the id, by its number, as far as this process knows."""
    number_for = _resharded.get(worker if isinstance(worker, type) else type(worker))
    return number_for(job_id) if number_for else shard_for(job_id, count_of(worker), by_tenant=worker.tenants == HOME)


_takes_error: Final[WeakSet[type[Worker[Any]]]] = WeakSet()
"""Workers whose `retry_in` takes the error, too."""


def note_retry_in(worker: type[Worker[Any]], *, takes_error: bool | None) -> bool:
    """Note whether the worker's `retry_in` takes the error. False if it can be called neither with nor without one."""
    (_takes_error.add if takes_error else _takes_error.discard)(worker)
    return takes_error is not None


def retry_in_takes_error(worker: type[Worker[Any]]) -> bool:
    """Whether the worker's `retry_in` takes the error behind the retry count."""
    return worker in _takes_error


def refuse_without_score(worker: type[Worker[Any]], what: str) -> None:
    """Raises DeclarationError for a producer of jobs without a version as the score, if scores are versions."""
    if worker.merge == LATEST:
        raise DeclarationError(
            f'{what}: {worker.__name__} has merge = "latest", so each job needs a score that is a version of its id. '
            "Let a worker with another merge push it."
        )


def handler_of(worker: type[Worker[Any]]) -> Any:  # noqa: ANN401 - a function, or what was written in place of one
    """Its `perform` or `perform_job`; None if it has neither."""
    return getattr(worker, "perform", None) or getattr(worker, "perform_job", None)


def is_coroutine(worker: type[Worker[Any]]) -> bool:
    """Whether its handler is a coroutine function."""
    return inspect.iscoroutinefunction(handler_of(worker))


def is_generator(worker: type[Worker[Any]]) -> bool:
    """Whether its `perform_job` is a generator, which yields a cursor."""
    return inspect.isgeneratorfunction(inspect.unwrap(getattr(worker, "perform_job", bool)))

"""The forms in which programs write jobs, and declare functions as workers.

A drain pushes nothing, and does not import this.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Required, TypeAlias, TypedDict

from msgspec import UNSET

if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from uuid import UUID

    from typing_extensions import TypeVar

    from lowkiq_lambda.declare.error_rules import ErrorRule
    from lowkiq_lambda.jobs.auto import Auto
    from lowkiq_lambda.jobs.debounce import Debounce
    from lowkiq_lambda.jobs.keep_runs import KeepRuns
    from lowkiq_lambda.jobs.rate import Rate
    from lowkiq_lambda.jobs.unique import OnConflict, Unique, Unless

    Id: TypeAlias = str | int | UUID
    # The default is of Python 3.13, and of no consequence when a program runs.
    PayloadT = TypeVar("PayloadT", default=Any)
else:
    from typing import TypeVar

    PayloadT = TypeVar("PayloadT")


class JobOptions(TypedDict, total=False):
    """What a job may say beside its id and its payload.

    `score`: its place among the payloads of the id, a number or an aware datetime. `due_at`: when the id is due, Unix
    seconds or an aware datetime; `delay`: the same from now. `key`: pushed twice within `key_ttl` seconds, the job
    counts once.
    `headers`: texts that travel with it. `expires_at`: after that time the payload is not handed to a handler;
    `expires_in`: the same in seconds from when it is due. `unless`: the job is stored only if its id is
    not "waiting", or not "busy", which waits or runs; `on_conflict`: what becomes of it otherwise: "drop", "raise",
    "replace", or a function.
    """

    score: "float | datetime | None"
    due_at: "float | datetime | None"
    delay: "float | timedelta | None"
    key: str | None
    key_ttl: "float | timedelta | None"
    headers: Mapping[str, str] | None
    expires_in: "float | timedelta | None"
    expires_at: "float | datetime | None"
    unless: "Unless | None"
    on_conflict: "OnConflict | None"


class JobDict(TypedDict, Generic[PayloadT], total=False):
    """A job as a dict, for a worker whose payloads have a type."""

    id: "Required[Id]"
    payload: Required[PayloadT]
    score: "float | datetime"
    due_at: "float | datetime"
    delay: "float | timedelta"
    key: str
    key_ttl: "float | timedelta"
    headers: Mapping[str, str]
    expires_in: "float | timedelta"
    expires_at: "float | datetime"
    unless: "Unless"
    on_conflict: "OnConflict"


@dataclass(frozen=True, eq=False)
class Job(Mapping[str, Any], Generic[PayloadT]):
    """A job of `push_many`; its fields mean what they mean in a dict, and None is as if not given.

    It is a mapping of what is given.
    """

    id: "Id"
    payload: PayloadT = UNSET  # type: ignore[assignment]  # as if not given, unless the worker says that it has a type
    _: KW_ONLY
    score: "float | datetime | None" = None
    due_at: "float | datetime | None" = None
    delay: "float | timedelta | None" = None
    key: str | None = None
    key_ttl: "float | timedelta | None" = None
    headers: Mapping[str, str] | None = None
    expires_in: "float | timedelta | None" = None
    expires_at: "float | datetime | None" = None
    unless: "Unless | None" = None
    on_conflict: "OnConflict | None" = None

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - a field
        value = self.__dict__[name]
        if value is UNSET or (value is None and name != "payload"):
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.__dict__ if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class WorkerOptions(TypedDict, total=False):
    """What `@app.worker(...)` takes for a function: the fields of a Worker, and `retry_in`."""

    shards_count: "int | Auto | Literal['auto']"
    batch_size: "int | Auto | Literal['auto']"
    concurrency: "int | Auto | Literal['auto']"
    max_retry_count: int
    queue_name: str
    merge: Literal["min", "max", "never", "latest"]
    dead_head: Literal["skip", "block", "drop", "latest"]
    isolate: bool
    ordered: bool
    payloads_at_once: int
    debounce: "Debounce | None"
    unique: "Unique | None"
    max_waiting: int | None
    keep_runs: "int | KeepRuns | None"
    max_running: int | None
    rate: "Rate | None"
    waits_for: tuple[str, ...]
    block_except: tuple[str, ...] | None
    weight: float
    tenants: Literal["spread", "home"] | None
    tenant_rate: "Rate | None"
    on_error: "Sequence[ErrorRule]"
    expires_in: "float | timedelta | None"
    retry_for: "float | timedelta | None"
    expired: Literal["discard", "kill"]
    max_run_time: "float | timedelta | None"
    max_run_items: int | None
    retry_in: Callable[[int], float] | Callable[[int, Any], float]
    payload: Any

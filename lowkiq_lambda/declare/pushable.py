"""The face of all that takes jobs: the class of a worker, or a function that was declared as one."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, Generic, Never, Protocol, TypeAlias, Unpack, cast, overload

from msgspec import UNSET

from lowkiq_lambda.base.errors import DeclarationError, JobError
from lowkiq_lambda.jobs.job import Pushed

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from lowkiq_lambda.declare.options import Id, Job, JobDict, JobOptions
    from lowkiq_lambda.declare.worker import Worker

    # The defaults are of Python 3.13, and of no consequence when a program runs.
    P = TypeVar("P", default=Any)
    Q = TypeVar("Q", default="Untyped")
else:
    from typing import TypeVar

    P, Q = TypeVar("P"), TypeVar("Q")


class Untyped:
    """Stands for the type of payloads where a worker declares none: any JSON."""


AnyWorker: TypeAlias = "type[Worker[Any]] | FunctionWorker[Any]"
"""A worker as `@app.worker` returns it: the class itself, or a function with its worker."""


class BoundApp(Protocol):
    """The app that a worker is bound to, as far as the worker needs it."""

    @property
    def workers(self) -> "list[type[Worker[Any]]]":
        """All workers of the app."""
        ...

    def push_many(self, worker: AnyWorker, jobs: Iterable[Mapping[str, Any]]) -> list[Pushed]:
        """Queue the jobs. Raises JobError, BackendError."""
        ...

    async def apush_many(self, worker: AnyWorker, jobs: Iterable[Mapping[str, Any]]) -> list[Pushed]:
        """As `push_many`, beside the event loop."""
        ...


class Pushable(Generic[Q]):
    """The target of a push: the class of a worker, or a function that was declared as one."""

    @overload
    @classmethod
    def push_many(cls: "type[Pushable[Untyped]]", jobs: "Iterable[Mapping[str, Any] | Job[Any]]") -> list[Pushed]: ...
    @overload
    @classmethod
    def push_many(cls, jobs: "Iterable[Job[Q] | JobDict[Q]]") -> list[Pushed]: ...
    @classmethod
    def push_many(cls, jobs: Iterable[Any]) -> list[Pushed]:
        """Queue many jobs, with one round trip for a thousand.

        Args:
            jobs: each a `Job`, or a mapping with `id` and, as needed, `payload` and the fields of `JobOptions`.

        Returns:
            A `Pushed` for each job, in their order.

        Raises:
            JobError: one of the jobs cannot be queued; nothing was written.
            BackendError: Redis cannot take the push. PushInterrupted, a kind of it, says which jobs were written.

        Example:
            SyncOrder.push_many({"id": order.id, "payload": order.status} for order in orders)
        """
        app, worker = _bound(cls, jobs, "push_many")
        return app.push_many(worker, jobs)

    @overload
    @classmethod
    async def apush_many(
        cls: "type[Pushable[Untyped]]", jobs: "Iterable[Mapping[str, Any] | Job[Any]]"
    ) -> list[Pushed]: ...
    @overload
    @classmethod
    async def apush_many(cls, jobs: "Iterable[Job[Q] | JobDict[Q]]") -> list[Pushed]: ...
    @classmethod
    async def apush_many(cls, jobs: Iterable[Any]) -> list[Pushed]:
        """`push_many` for code on an event loop: the push runs in another thread, so the loop goes on.

        It sees the caller's context variables. If the task is cancelled meanwhile, the push still runs to completion
        but its result is lost. Pushing the jobs again is safe if equal payloads merge.
        """
        app, worker = _bound(cls, jobs, "apush_many")
        return await app.apush_many(worker, jobs)

    perform_async = push_many
    """Lowkiq's name of it."""

    @overload
    @classmethod
    def push(
        cls: "type[Pushable[Untyped]]",
        id: "Id",
        payload: object = UNSET,
        **options: Unpack["JobOptions"],
    ) -> Pushed: ...
    @overload
    @classmethod
    def push(cls, id: "Id", payload: Q, **options: Unpack["JobOptions"]) -> Pushed: ...
    @classmethod
    def push(cls, id: "Id", payload: Any = UNSET, **options: Unpack["JobOptions"]) -> Pushed:
        """Queue one payload under an id.

        Args:
            id: names the entity that the job is about: a text, an int or a UUID. Payloads of one id run in order.
            payload: one change of it, any JSON, or a value of the worker's declared type; by default "".
            options: `score`, `due_at` or `delay`, `key` with `key_ttl`, `headers`, `expires_at` or `expires_in`,
                `unless` with `on_conflict`: see `JobOptions`. None is as if not given.

        Returns:
            A `Pushed`: when the id is due, and whether the payload merged with one that waits.

        Raises:
            JobError: the job cannot be queued; nothing was written.
            BackendError: Redis cannot take the push; retried for `redis_retry_for` seconds.
            Conflict: the id has work, and `on_conflict` is "raise".

        Example:
            SyncOrder.push(17, {"status": "paid"}, score=order.version)
        """
        return cls.push_many([one_job(id, payload, options)])[0]

    @overload
    @classmethod
    async def apush(
        cls: "type[Pushable[Untyped]]",
        id: "Id",
        payload: object = UNSET,
        **options: Unpack["JobOptions"],
    ) -> Pushed: ...
    @overload
    @classmethod
    async def apush(cls, id: "Id", payload: Q, **options: Unpack["JobOptions"]) -> Pushed: ...
    @classmethod
    async def apush(cls, id: "Id", payload: Any = UNSET, **options: Unpack["JobOptions"]) -> Pushed:
        """`push` for code on an event loop; see `apush_many`."""
        return (await cls.apush_many([one_job(id, payload, options)]))[0]


def one_job(id: "Id", payload: Any, options: "JobOptions") -> Any:  # noqa: ANN401 - a job, with any payload
    """The job as a mapping; an option that is None is as if it were not given."""
    fields = {name: value for name, value in options.items() if value is not None}
    return {"id": id, **fields} if payload is UNSET else {"id": id, "payload": payload, **fields}


def _bound(pushable: "type[Pushable[Any]]", jobs: object, name: str) -> "tuple[BoundApp, type[Worker[Any]]]":
    """The worker that is about to push jobs, and its app. Raises DeclarationError, JobError."""
    worker = cast("type[Worker[Any]]", pushable)
    if worker.app is None:
        raise DeclarationError(f"{worker.__name__} is not bound to an app: decorate it with @app.worker.")
    if isinstance(jobs, Mapping | str | int):
        one = f"one job: write {name}([{{...}}])" if isinstance(jobs, Mapping) else f"an id: write {name}([{{...}}])"
        raise JobError(f"{name} takes a list of jobs, not {one}, or push(id, payload)")
    return worker.app, worker


class FunctionWorker(Pushable[P]):
    """A function declared by `@app.worker(...)`: still callable, and it can be pushed to."""

    def __init__(self, function: Callable[[Any], object], worker: "type[Worker[Any]]") -> None:
        self.worker = worker
        self._function = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    def __call__(self, batch: Any) -> object:  # noqa: ANN401 - as the function declares it
        """Call the function itself, here and now, without the queue."""
        return self._function(batch)

    def __repr__(self) -> str:
        return f"<worker {self.worker.queue_name!r} of function {self.__name__}>"


def _of_its_worker(name: str) -> Callable[..., Any]:
    """The method of an object with a worker that calls the one of the worker's class."""
    method = getattr(Pushable, name).__func__

    @wraps(method)
    def called(self: FunctionWorker[Any], *arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401 - as that method has them
        return getattr(self.worker, name)(*arguments, **keywords)

    @wraps(method)
    async def awaited(self: FunctionWorker[Any], *arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401 - as above
        return await getattr(self.worker, name)(*arguments, **keywords)

    return awaited if inspect.iscoroutinefunction(method) else called


for _name in ("push_many", "apush_many", "push", "apush", "perform_async"):
    # An object of this class is not a class: it finds its worker when it is pushed to.
    setattr(FunctionWorker, _name, _of_its_worker(_name))

_METHODS_OF_OTHERS: Final = {
    "apply_async": ("Celery", "push(id, payload), with delay= or due_at= for later"),
    "delay": ("Celery", "push(id, payload)"),
    "enqueue": ("RQ and Django", "push(id, payload)"),
    "enqueue_in": ("RQ", "push(id, payload, delay=...)"),
    "perform_at": ("Sidekiq", "push(id, payload, due_at=...)"),
    "perform_in": ("Sidekiq", "push(id, payload, delay=...)"),
    "perform_later": ("Rails", "push(id, payload)"),
    "push_async": ("other libraries", "apush(id, payload)"),
    "send": ("Dramatiq", "push(id, payload)"),
}
"""Methods of workers in other libraries: the library, and ours."""


class OfOtherLibrary:
    """An attribute that is absent: the error of an attempt to use it names ours."""

    def __init__(self, name: str, library: str, ours: str) -> None:
        self._name, self._library, self._ours = name, library, ours

    def __get__(self, pushable: object, owner: type) -> Never:
        worker = getattr(pushable, "__name__", owner.__name__)
        text = f"{worker}.{self._name} is a method of {self._library}: write {worker}.{self._ours}"
        raise AttributeError(text, name=self._name, obj=pushable)


for _name, _texts in _METHODS_OF_OTHERS.items():
    setattr(Pushable, _name, OfOtherLibrary(_name, *_texts))

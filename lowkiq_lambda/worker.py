"""The declaration of a queue with the code that performs its jobs."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypedDict

from lowkiq_lambda.errors import DeclarationError, JobError
from lowkiq_lambda.job import MorgueJob, Pushed, is_number
from lowkiq_lambda.retry import default_retry_in

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq

MAX_BATCH_SIZE: Final = 1_000
MAX_SHARDS: Final = 100_000
MERGES: Final = ("min", "max", "never")

_rng: Final = Random()  # noqa: S311 - spreads retries in time, protects nothing


class Worker:
    """Subclass it, decorate the subclass with `@app.worker`, and define `perform` or `perform_job`.

    An object of the class lives for one batch, so threads never share `self`.
    """

    shards_count: ClassVar[int] = 5
    """Into how many shards the queue is divided; different shards run side by side."""
    batch_size: ClassVar[int] = 1
    """How many ids one call of `perform` gets at most; 1 to 1,000."""
    max_retry_count: ClassVar[int] = 25
    """How often a failed job is tried again: n retries are n + 1 executions."""
    queue_name: ClassVar[str] = ""
    """The name of the queue; the class's own name where it is not given."""
    merge: ClassVar[Literal["min", "max", "never"]] = "min"
    """Which score stays when an equal payload is pushed again; "never" keeps both payloads."""
    isolate: ClassVar[bool] = True
    """Whether ids that failed in company, nobody being named, run once more alone before anything is counted."""

    app: ClassVar["Lowkiq | None"] = None
    """The app that the class is bound to, by `@app.worker`."""

    def retry_in(self, retry_count: int) -> float:
        """Seconds until the next try, after the failure with this count (0 for the first)."""
        return default_retry_in(retry_count, _rng)

    def retries_exhausted(self, jobs: Sequence[MorgueJob]) -> None:
        """Called with the jobs that just went to the morgue; what it raises is logged and changes nothing."""

    @classmethod
    def perform_async(cls, jobs: Iterable[Mapping[str, Any]]) -> list[Pushed]:
        """Queue jobs, each a mapping with `id` and, as needed, `payload`, `score`, `perform_in` or `delay`.

        Raises JobError, before anything is written, where a job cannot be queued; BackendError where Redis cannot
        take it; PushInterrupted, which tells what was written, where a large push breaks off.
        """
        if cls.app is None:
            raise DeclarationError(f"{cls.__name__} is not bound to an app: decorate it with @app.worker.")
        if isinstance(jobs, dict):
            raise JobError("perform_async takes a list of jobs, not one job: write perform_async([{...}])")
        return cls.app.push(cls, jobs)


_ARGUMENTS: Final = {
    "perform": "batch",
    "perform_job": "job",
    "retry_in": "retry_count",
    "retries_exhausted": "jobs",
}


def check_declaration(worker: type[Worker]) -> None:
    """Refuses, with DeclarationError, what cannot work."""
    name = worker.__name__
    _check_handlers(worker, name)
    if own := {*dir(worker)} - {*dir(Worker), "perform", "perform_job"}:
        from lowkiq_lambda.misspelling import refuse_misspelt  # noqa: PLC0415 - few workers have names of their own

        refuse_misspelt(name, {attribute: getattr(worker, attribute) for attribute in sorted(own)})
    _check_whole_number(name, "shards_count", worker.shards_count, 1, MAX_SHARDS)
    _check_whole_number(name, "batch_size", worker.batch_size, 1, MAX_BATCH_SIZE)
    _check_whole_number(name, "max_retry_count", worker.max_retry_count, 0, 10_000)
    if worker.merge not in MERGES:
        raise DeclarationError(f"{name}.merge must be one of {', '.join(MERGES)}, not {worker.merge!r}.")
    isolate: object = worker.isolate
    if not isinstance(isolate, bool):
        raise DeclarationError(f"{name}.isolate must be True or False, not {isolate!r}.")
    queue_name: object = worker.queue_name
    if not isinstance(queue_name, str) or not queue_name:
        raise DeclarationError(f"{name}.queue_name must be a text of at least one character.")
    try:
        queue_name.encode()
    except UnicodeEncodeError as error:
        raise DeclarationError(f"{name}.queue_name holds a lone surrogate.") from error


def _check_handlers(worker: type[Worker], name: str) -> None:
    handlers = [method for method in ("perform", "perform_job") if _defines(worker, method)]
    if len(handlers) != 1:
        found = "both" if handlers else "neither"
        raise DeclarationError(f"{name} must define one of perform and perform_job; it defines {found}.")
    for method in (*handlers, "retry_in", "retries_exhausted"):
        if not _defines(worker, method):
            raise DeclarationError(f"{name}.{method} must be a function, not {getattr(worker, method)!r}.")
        function = inspect.unwrap(getattr(worker, method))
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise DeclarationError(f"{name}.{method} is a coroutine function: handlers are plain functions.")
        if method not in handlers and inspect.isgeneratorfunction(function):
            raise DeclarationError(f"{name}.{method} is a generator: its body would never run.")
    handler = inspect.unwrap(getattr(worker, handlers[0]))
    if inspect.isgeneratorfunction(handler):
        why = (
            "checkpoints in perform_job are not supported yet: do the work and return"
            if handlers[0] == "perform_job"
            else "its body would never run: do the work and return, or use perform_job"
        )
        raise DeclarationError(f"{name}.{handlers[0]} is a generator: {why}.")
    for method in (*handlers, "retry_in", "retries_exhausted"):
        _check_arguments(worker, method)


def _check_arguments(worker: type[Worker], method: str) -> None:
    """Refuses what would fail each time that it is called, as a method without `self`."""
    is_bound = isinstance(inspect.getattr_static(worker, method), staticmethod | classmethod)
    try:
        signature = inspect.signature(getattr(worker, method))
    except (TypeError, ValueError):
        # Not everything that is written in C tells what it takes.
        return
    argument = _ARGUMENTS[method]
    given = (argument,) if is_bound else ("self", argument)
    try:
        signature.bind(*given)
    except TypeError as error:
        taken = ", ".join(signature.parameters)
        raise DeclarationError(
            f"{worker.__name__}.{method}({taken}) cannot be called as {method}({', '.join(given)}): {error}."
        ) from error


def _defines(worker: type[Worker], method: str) -> bool:
    return callable(getattr(worker, method, None))


def _check_whole_number(name: str, field: str, value: object, least: int, most: int) -> None:
    if not is_number(value) or not isinstance(value, int) or not least <= value <= most:
        raise DeclarationError(f"{name}.{field} must be a whole number from {least:,} to {most:,}, not {value!r}.")


class FunctionWorker:
    """A function declared by `@app.worker(...)`: still callable, and it can be pushed to."""

    def __init__(self, function: Callable[[Any], object], worker: type[Worker]) -> None:
        self.worker = worker
        self._function = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    def __call__(self, batch: Any) -> object:  # noqa: ANN401 - as the function declares it
        """Call the function itself, here and now, without the queue."""
        return self._function(batch)

    def perform_async(self, jobs: Iterable[Mapping[str, Any]]) -> list[Pushed]:
        """Queue jobs for the function; see `Worker.perform_async`."""
        return self.worker.perform_async(jobs)

    def __repr__(self) -> str:
        return f"<worker {self.worker.queue_name!r} of function {self.__name__}>"


class WorkerOptions(TypedDict, total=False):
    """What `@app.worker(...)` takes for a function: the fields of a Worker, and `retry_in`."""

    shards_count: int
    batch_size: int
    max_retry_count: int
    queue_name: str
    merge: Literal["min", "max", "never"]
    isolate: bool
    retry_in: Callable[[int], float]


def worker_of_function(function: Callable[[Any], object], options: Mapping[str, Any]) -> type[Worker]:
    """A worker class whose `perform` is the function and whose fields are the options."""
    allowed = WorkerOptions.__annotations__
    unknown = sorted(set(options) - set(allowed))
    if unknown:
        raise DeclarationError(f"{unknown[0]!r} is not an option of a worker; there are {', '.join(allowed)}.")
    if isinstance(function, type):
        raise DeclarationError("@app.worker(...) with options takes a function; a class has them as fields.")
    if not inspect.isroutine(function):
        raise DeclarationError(f"@app.worker takes a class or a function, not {function!r}.")
    body: dict[str, Any] = {"perform": staticmethod(function), "__module__": function.__module__, **options}
    if "retry_in" in options:
        body["retry_in"] = staticmethod(options["retry_in"])
    return type(function.__name__, (Worker,), body)


def register(app: "Lowkiq", target: object, options: Mapping[str, Any], others: Iterable[type[Worker]]) -> Any:  # noqa: ANN401 - what it was given, or a FunctionWorker for a function
    """Check the declaration and bind it to the app; what takes the declared name's place.

    Raises DeclarationError where it cannot work.
    """
    if isinstance(target, type) and (target is Worker or not issubclass(target, Worker)):
        raise DeclarationError(f"{target.__name__} must be a subclass of lowkiq_lambda.Worker.")
    if isinstance(target, type) and not options:
        _bind_class(app, target, others)
        return target
    if not callable(target):
        raise DeclarationError(f"@app.worker takes a class or a function, not {target!r}.")
    worker = worker_of_function(target, options)
    _bind_class(app, worker, others)
    return FunctionWorker(target, worker)


def worker_of(declared: "type[Worker] | FunctionWorker") -> type[Worker]:
    """The worker class behind what `@app.worker` returned."""
    return declared.worker if isinstance(declared, FunctionWorker) else declared


def _bind_class(app: "Lowkiq", worker: type[Worker], others: Iterable[type[Worker]]) -> None:
    bound_to = worker.__dict__.get("app")
    if bound_to is not None:
        which = "this app already" if bound_to is app else "another app: declare a subclass for this one"
        raise DeclarationError(f"{worker.__name__} is bound to {which}.")
    # A name that a bound parent got from its class is not handed down: the child is a queue of its own.
    owner = next((one for one in inspect.getmro(worker) if one.__dict__.get("queue_name")), None)
    names_itself = owner is None or (owner is not worker and owner.__dict__.get("app") is not None)
    if names_itself:
        worker.queue_name = worker.__name__
    try:
        check_declaration(worker)
        _check_alone(worker, others)
    except DeclarationError:
        if names_itself:
            # Else it would hand the name down to its children.
            del worker.queue_name
        raise
    worker.app = app


def _check_alone(worker: type[Worker], others: Iterable[type[Worker]]) -> None:
    for other in others:
        if other.queue_name == worker.queue_name:
            raise DeclarationError(
                f"{worker.__name__} and {other.__name__} are both declared for the queue {worker.queue_name!r}: "
                "give one of them another queue_name."
            )

"""Checks how a worker is declared, and binds it to its app."""

import inspect
import logging
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MethodType
from typing import TYPE_CHECKING, Any, Final, get_origin

from lowkiq_lambda.base.errors import ConfigError, DeclarationError
from lowkiq_lambda.declare.options import WorkerOptions
from lowkiq_lambda.declare.pushable import FunctionWorker
from lowkiq_lambda.declare.worker import (
    LATEST,
    Worker,
    at_most,
    handler_of,
    has_limits,
    is_auto,
    is_coroutine,
    is_generator,
    note_retry_in,
)
from lowkiq_lambda.jobs.job import MAX_EXACT, is_number
from lowkiq_lambda.jobs.retry import takes_error
from lowkiq_lambda.settings.protocols import is_awaited

if TYPE_CHECKING:
    from lowkiq_lambda.declare.pushable import BoundApp

logger = logging.getLogger(__name__)

MAX_BATCH_SIZE: Final = 1_000
MAX_IN_FLIGHT: Final = 1_000
"""Ids of one shard that handlers may have at once: what a lease has in flight is what a crash repeats."""
MAX_SHARDS: Final = 100_000
LONGEST_TURN: Final = 86_400
MERGES: Final = ("min", "max", "never", LATEST)
DEAD_HEADS: Final = ("skip", "block", "drop", "latest")

_NO_TIMES: Final = (None, None, None, None, "discard")
"""Of workers whose jobs do not expire, and run as long as they want."""

_ARGUMENTS: Final = {
    "perform": "batch",
    "perform_job": "job",
    "retry_in": "retry_count",
    "retries_exhausted": "jobs",
}


def register(app: "BoundApp", target: object, options: Mapping[str, Any], others: Iterable[type[Worker[Any]]]) -> Any:  # noqa: ANN401 - what it was given, or a FunctionWorker for a function
    """Check the declaration and bind it to the app; what takes the declared name's place.

    Raises DeclarationError if it cannot work.
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


def worker_of_function(function: Callable[[Any], object], options: Mapping[str, Any]) -> type[Worker[Any]]:
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
    body["__qualname__"] = function.__qualname__
    if "retry_in" in options:
        body["retry_in"] = staticmethod(options["retry_in"])
    return type(function.__name__, (Worker,), body)


def _bind_class(app: "BoundApp", worker: type[Worker[Any]], others: Iterable[type[Worker[Any]]]) -> None:
    bound_to = worker.__dict__.get("app")
    if bound_to is not None:
        which = "this app already" if bound_to is app else "another app: declare a subclass for this one"
        raise DeclarationError(f"{worker.__name__} is bound to {which}.")
    # A name that a bound parent got from its class is not handed down: the child is a queue of its own.
    owner = next((base for base in inspect.getmro(worker) if base.__dict__.get("queue_name")), None)
    names_itself = owner is None or (owner is not worker and owner.__dict__.get("app") is not None)
    if names_itself:
        worker.queue_name = worker.__name__
    try:
        check_declaration(worker)
        _find_payload_type(worker)
        _check_among(worker, [*others])
    except DeclarationError:
        if names_itself:
            # Else it would hand the name down to its children.
            del worker.queue_name
        raise
    worker.app = app


def _is_again(worker: type[Worker[Any]], other: type[Worker[Any]]) -> bool:
    """Whether `worker` replaces `other`: a cell of a notebook ran twice, or a module was reloaded.

    One name twice in a script, or in the first import of a module, is a mistake.
    """
    module = sys.modules.get(worker.__module__)
    present = getattr(module, worker.__qualname__, None)
    is_named = present is other or present is worker or getattr(present, "worker", None) is other
    if module is None or not is_named or _place(worker) != _place(other):
        return False
    if worker.__module__ == "__main__":
        return in_session()
    return not getattr(module.__spec__, "_initializing", False)


def in_session() -> bool:
    """Whether people type the code: at a prompt, or in cells."""
    return hasattr(sys, "ps1") or in_notebook()


def in_notebook() -> bool:
    """Whether IPython runs the code: a cell may run twice, and waits for what it calls in any case."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return shell is not None and shell() is not None


def _place(worker: type[Worker[Any]]) -> str:
    return f"{worker.__module__}.{worker.__qualname__}"


def _find_payload_type(worker: type[Worker[Any]]) -> None:
    """Note the type of its payloads, by whichever of the ways it declares one."""
    if worker.payload is None and not _may_say_a_type(worker):
        return
    from lowkiq_lambda.declare.payloads import declared_type  # noqa: PLC0415 - only where a type is declared

    worker.payload = declared_type(worker)


def _may_say_a_type(worker: type[Worker[Any]]) -> bool:
    """Whether it has a base with brackets, or its handler an argument with some: as cheaply as it can be told."""
    bases = (base for cls in inspect.getmro(worker) for base in cls.__dict__.get("__orig_bases__", ()))
    if any(isinstance(origin := get_origin(base), type) and issubclass(origin, Worker) for base in bases):
        return True
    hints = getattr(inspect.unwrap(handler_of(worker)), "__annotations__", {})
    return any("Batch" in text and "[" in text for text in map(str, hints.values()))


def _check_among(worker: type[Worker[Any]], others: Sequence[type[Worker[Any]]]) -> None:
    for other in others:
        if other.queue_name != worker.queue_name:
            continue
        if not _is_again(worker, other):
            raise DeclarationError(
                f"{_place(worker)} and {_place(other)} are both declared for the queue {worker.queue_name!r}: "
                "give one of them another queue_name."
            )
        logger.warning("%s is declared again, as by a cell that runs twice: the newer one counts", worker.__name__)
    if worker.waits_for or any(one.block_except is not None for one in (worker, *others)):
        from lowkiq_lambda.declare.declared_limits import check_waits  # noqa: PLC0415 - imported lazily: cold start

        check_waits(worker, others)


def check_together(workers: Sequence[type[Worker[Any]]]) -> None:
    """Refuses, with DeclarationError, what the workers of an app say about each other and cannot be."""
    if any(worker.waits_for or worker.block_except for worker in workers):
        from lowkiq_lambda.declare.declared_limits import check_waited_for  # noqa: PLC0415 - imported lazily: cold start

        check_waited_for(workers)


def check_declaration(worker: type[Worker[Any]]) -> None:
    """Refuses, with DeclarationError, what cannot work."""
    name = worker.__name__
    _check_handlers(worker, name)
    if own := {*dir(worker)} - {*dir(Worker), "perform", "perform_job"}:
        from lowkiq_lambda.declare.misspelling import refuse_misspelt  # noqa: PLC0415 - few workers have names of their own

        refuse_misspelt(name, {attribute: getattr(worker, attribute) for attribute in sorted(own)})
    if not is_auto(worker.shards_count):
        _check_whole_number(name, "shards_count", worker.shards_count, 1, MAX_SHARDS)
    _bind_auto(worker, name)
    _check_whole_number(name, "batch_size", _most(worker.batch_size), 1, MAX_BATCH_SIZE)
    _check_concurrency(worker, name)
    _check_whole_number(name, "max_retry_count", worker.max_retry_count, 0, 10_000)
    _check_whole_number(name, "max_waiting", 1 if worker.max_waiting is None else worker.max_waiting, 1, MAX_EXACT)
    _check_whole_number(name, "payloads_at_once", worker.payloads_at_once, 0, MAX_EXACT)
    merge: object = worker.merge
    if callable(merge):
        raise DeclarationError(
            f"{name}.merge is a function, and none merges payloads that wait, as Redis does not decode them: declare "
            'merge = "never", and let the handler fold the payloads of an id, as functools.reduce(function, payloads).'
        )
    _check_word(name, "merge", worker.merge, MERGES)
    _check_word(name, "dead_head", worker.dead_head, DEAD_HEADS)
    if worker.merge == LATEST and worker.dead_head == "block":
        raise DeclarationError(
            f'{name}.dead_head = "block" makes no sense with merge = "latest": nothing waits behind it.'
        )
    _check_parts(worker, name)


def _check_parts(worker: type[Worker[Any]], name: str) -> None:
    """Of fields that few workers have, each by the module of its own."""
    if worker.debounce is not None:
        from lowkiq_lambda.jobs.debounce import check_debounce  # noqa: PLC0415 - imported lazily: cold start

        check_debounce(worker.debounce, name)
    if worker.unique is not None:
        from lowkiq_lambda.jobs.unique import check_unique  # noqa: PLC0415 - imported lazily: cold start

        check_unique(worker.unique, name, score_decides=worker.merge == LATEST)
    if worker.keep_runs is not None:
        from lowkiq_lambda.jobs.keep_runs import KeepRuns  # noqa: PLC0415 - imported lazily: cold start

        KeepRuns.of(worker.keep_runs, f"{name}.keep_runs")
    if has_limits(worker):
        from lowkiq_lambda.declare.declared_limits import check_limits  # noqa: PLC0415 - imported lazily: cold start

        check_limits(worker)
    if worker.on_error != ():
        from lowkiq_lambda.declare.error_rules import check_rules  # noqa: PLC0415 - imported lazily: cold start

        check_rules(name, worker.on_error)
    if (worker.expires_in, worker.retry_for, worker.max_run_time, worker.max_run_items, worker.expired) != _NO_TIMES:
        from lowkiq_lambda.declare.declared_times import check_times  # noqa: PLC0415 - imported lazily: cold start

        check_times(worker, name)
    if is_generator(worker):
        _check_cursor_fields(worker, name)
    for field in ("isolate", "ordered"):
        value: object = getattr(worker, field)
        if not isinstance(value, bool):
            raise DeclarationError(f"{name}.{field} must be True or False, not {value!r}.")
    check_queue_name(worker.queue_name, f"{name}.queue_name")


def check_queue_name(queue_name: object, what: str) -> None:
    """Raises DeclarationError for what no queue can be called."""
    if not isinstance(queue_name, str) or not queue_name:
        raise DeclarationError(f"{what} must be a text of at least one character.")
    try:
        queue_name.encode()
    except UnicodeEncodeError as error:
        raise DeclarationError(f"{what} holds a lone surrogate.") from error


def _check_handlers(worker: type[Worker[Any]], name: str) -> None:
    handlers = [method for method in ("perform", "perform_job") if _defines(worker, method)]
    if len(handlers) != 1:
        which = "both" if handlers else "neither"
        raise DeclarationError(f"{name} must define one of perform and perform_job; it defines {which}.")
    _check_making(worker, name)
    for method in (*handlers, "retry_in", "retries_exhausted"):
        _check_function(worker, method, _ARGUMENTS[method])
    for method in ("push_many", "apush_many", "push", "apush"):
        if not isinstance(inspect.getattr_static(worker, method), classmethod):
            raise DeclarationError(f"{name}.{method} hides what pushes its jobs: give it another name.")


def _check_concurrency(worker: type[Worker[Any]], name: str) -> None:
    _check_whole_number(name, "concurrency", _most(worker.concurrency), 1, MAX_IN_FLIGHT)
    calls, batch_size = at_most(worker.concurrency), at_most(worker.batch_size)
    if (ids := calls * batch_size) > MAX_IN_FLIGHT:
        raise DeclarationError(
            f"{name}.concurrency * batch_size must be at most {MAX_IN_FLIGHT:,}, not {ids:,}: lower batch_size to "
            f"{MAX_IN_FLIGHT // calls:,}, or concurrency to {MAX_IN_FLIGHT // batch_size:,}."
        )


def _most(declared: object) -> object:
    """The bound of a number that the library finds; anything else as it is, to be checked."""
    return getattr(declared, "most", declared)


def _bind_auto(worker: type[Worker[Any]], name: str) -> None:
    """Give the numbers that the library finds the bounds that they have as long as the worker says nothing else."""
    for field in ("concurrency", "batch_size"):
        declared: object = getattr(worker, field)
        if declared == "auto" or hasattr(declared, "most"):
            from lowkiq_lambda.jobs.auto import CALLS, IDS, Auto  # noqa: PLC0415 - only where a worker declares it

            bounds = CALLS if field == "concurrency" else IDS
            setattr(worker, field, Auto.of(declared, f"{name}.{field}", bounds))


def check_middlewares(middlewares: Sequence[Callable[..., object]], workers: Iterable[type[Worker[Any]]]) -> None:
    """Refuses, with ConfigError, server middlewares that cannot be around a handler of these workers."""
    are_async = [is_awaited(middleware) for middleware in middlewares]
    if not any(are_async):
        return
    names = [getattr(middleware, "__name__", repr(middleware)) for middleware in middlewares]
    first = names[are_async.index(True)]
    for worker in workers:
        if not is_coroutine(worker):
            raise ConfigError(
                f"The server middleware {first} is a coroutine function, and {worker.__name__} has a plain handler: "
                "around that one, all must be plain functions."
            )
    if not all(are_async[are_async.index(True) :]):
        inner = names[len(names) - 1 - are_async[::-1].index(False)]
        raise ConfigError(
            f"The server middleware {inner} is a plain function within {first}, a coroutine function: put plain ones "
            "first."
        )


def _check_cursor_fields(worker: type[Worker[Any]], name: str) -> None:
    if at_most(worker.batch_size) > 1:
        raise DeclarationError(f"{name}.batch_size must be 1: perform_job is a generator, and gets one id at a time.")
    _check_whole_number(name, "cursor_version", worker.cursor_version, 0, MAX_EXACT)
    turn: object = worker.turn
    if not is_number(turn) or not 0 <= worker.turn <= LONGEST_TURN:
        raise DeclarationError(f"{name}.turn must be a number from 0 to {LONGEST_TURN:,} seconds, not {turn!r}.")
    if worker.resume_in:
        from lowkiq_lambda.declare.declared_times import check_time  # noqa: PLC0415 - imported lazily: cold start

        check_time(name, "resume_in", worker.resume_in)
    if hasattr(worker, "upgrade_cursor"):
        _check_function(worker, "upgrade_cursor", "cursor", "version")


def _check_making(worker: type[Worker[Any]], name: str) -> None:
    if worker.__init__ is object.__init__ and worker.__new__ is object.__new__:
        # To tell what those of `object` take, inspect would compile the pattern of Python's words: 2 ms of each start.
        return
    try:
        signature = inspect.signature(worker)
        signature.bind()
    except TypeError as error:
        raise DeclarationError(
            f"{name}() cannot be called: {error}. A worker is made for each batch, without arguments: give those of "
            "__init__ a default, or keep what they are for in the module."
        ) from error
    except ValueError:
        # Not everything that is written in C tells what it takes.
        return


def _check_function(worker: type[Worker[Any]], method: str, *arguments: str) -> None:
    """What would fail each time that it is called is refused, as a method without `self`."""
    where = f"{worker.__name__}.{method}"
    if not _defines(worker, method):
        raise DeclarationError(f"{where} must be a function, not {getattr(worker, method)!r}.")
    function = inspect.unwrap(getattr(worker, method))
    if inspect.isasyncgenfunction(function):
        raise DeclarationError(f"{where} is an async generator: only a plain perform_job may yield cursors.")
    if inspect.iscoroutinefunction(function):
        if not method.startswith("perform"):
            raise DeclarationError(f"{where} is a coroutine function, and only handlers may be: write def.")
        if not inspect.iscoroutinefunction(getattr(worker, method)):
            wrong = f"{where} is a coroutine function within a plain one: write async def in its decorator."
            raise DeclarationError(wrong)
    if method != "perform_job" and inspect.isgeneratorfunction(function):
        hint = "; perform_job may be one, for a job with a cursor" if method == "perform" else ""
        raise DeclarationError(f"{where} is a generator: its body would never run{hint}.")
    _check_call(worker, method, arguments)


def _check_call(worker: type[Worker[Any]], method: str, arguments: Sequence[str]) -> None:
    try:
        signature = inspect.signature(getattr(worker, method))
    except (TypeError, ValueError):
        # Not everything that is written in C tells what it takes.
        return
    call_arguments = ("self", *arguments) if _gets_self(inspect.getattr_static(worker, method)) else arguments
    if method == "retry_in":
        with_error = takes_error(getattr(worker, method), *call_arguments)
        if note_retry_in(worker, takes_error=with_error):
            return
    try:
        signature.bind(*call_arguments)
    except TypeError as error:
        parameters = ", ".join(signature.parameters)
        called_as = f"{method}({', '.join(call_arguments)})"
        raise DeclarationError(
            f"{worker.__name__}.{method}({parameters}) cannot be called as {called_as}: {error}."
        ) from error


def _gets_self(attribute: object) -> bool:
    """Whether a function gets the object of its class as its first argument."""
    if isinstance(attribute, partial) and sys.version_info < (3, 14):
        return False
    return hasattr(type(attribute), "__get__") and not isinstance(attribute, staticmethod | classmethod | MethodType)


def _defines(worker: type[Worker[Any]], method: str) -> bool:
    return callable(getattr(worker, method, None))


def _check_word(name: str, field: str, value: object, words: Sequence[str]) -> None:
    if value not in words:
        raise DeclarationError(f"{name}.{field} must be one of {', '.join(words)}, not {value!r}.")


def _check_whole_number(name: str, field: str, value: object, least: int, most: int) -> None:
    if not is_number(value) or not isinstance(value, int) or not least <= value <= most:
        or_auto = ' or "auto"' if isinstance(value, str) and field in {"shards_count", "batch_size"} else ""
        raise DeclarationError(
            f"{name}.{field} must be a whole number from {least:,} to {most:,}{or_auto}, not {value!r}."
        )
